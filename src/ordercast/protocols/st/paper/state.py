"""The variables of the printed ST at one node, with the paper's symbols. The rules are in `machine`."""

from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar, Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, mask_of, members, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data
from ordercast.protocols.st.units import ResetOrder


class Stage(IntEnum):
    """What a node is doing: normal operation, or a step of recovery."""

    NORMAL = 0
    AGREEING = 1
    """It has received an RST: steps (2) to (5) of the agreement procedure."""
    RECOVERING = 2
    """The sort line is agreed on; something that it lacks has not come yet."""


class StPaperState(DeclaredState):
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    me: Final[int]
    config: Final[GroupConfig]
    nodes: Final[int]
    my_bit: Final[int]
    everybody: Final[int]

    # Sending.
    next_seq: int  # TSEQ: the number of my next packet
    next_seq_to: list[int]  # PSEQ_j: the number of my next packet among those to E_j
    next_message: int  # the number of my next message
    stamp: int  # counts statuses; the printed rules never look at it
    waiting: deque[Submit]  # submitted, but the flow condition does not hold
    sent: list[Data]  # SL: own packets that may have to be sent again
    status_due: bool  # a peer waits for my status
    transmitted: bool  # since the period began
    ready_timer: bool  # runs while something is unfinished: then a unit without data is sent

    # Receiving. Own units are received when the channel brings them back.
    expected: list[int]  # TREQ_j: the number of the packet that I expect next from E_j
    expected_to_me: list[int]  # PREQ_j: the same number among those to me: a higher one shows a gap
    accepted: list[Data]  # RRL: accepted and not pre-acknowledged, in the order of the channel
    preacknowledged: list[Data]  # PRL: pre-acknowledged and not acknowledged
    known_below: list[int]  # numbers known to exist; only `waits_for` uses it

    # What the nodes acknowledged. Intended: preacknowledged_below <= accepted_below <= expected for each source.
    accepted_below: list[list[int]]  # AL: accepted_below[source][node]
    preacknowledged_below: list[list[int]]  # PAL: preacknowledged_below[source][node]
    free: list[int]  # BUF_j: the free receive buffers of E_j

    # Recovery.
    stage: Stage  # normal; agreeing: an RST has come; or recovering: it waits for what it lacks
    reset_sent: bool  # I have sent an RST, and received none since
    sort_from: list[int]  # the TREQ_h of steps (3) to (6); empty: no RST_PAK has come
    order: list[int]  # ORDR: the nodes whose RST_PAK has come, in this order
    orders: list[ResetOrder | None]  # the RST_ACKs: PR_ij and PS_ji
    order_sent: bool  # my RST_ACK is sent: the RST_PAK of every node has come
    pairs: int  # FAIL: pairs of nodes of which the first lacks something of the second
    sent_below: list[int]  # PS_ij of this node i: what E_j had sent me when we agreed
    lacked: int  # packets that I lacked when we agreed
    inserted: int  # those of them that came
    aborted: bool  # it has given the group up

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self.nodes, self.my_bit, self.everybody = nodes, 1 << me, everybody(nodes)

        self.next_seq, self.next_seq_to, self.next_message, self.stamp = first[me], [first[me]] * nodes, 0, 0
        self.waiting, self.sent = deque(), []
        self.status_due = self.transmitted = self.ready_timer = False

        self.expected, self.expected_to_me, self.known_below = list(first), list(first), list(first)
        self.accepted, self.preacknowledged = [], []
        self.accepted_below = [[seq] * nodes for seq in first]
        self.preacknowledged_below = [[seq] * nodes for seq in first]
        self.free = [config.paper.initial_buffers] * nodes

        self.stage, self.reset_sent, self.order_sent, self.aborted = Stage.NORMAL, False, False, False
        self.sort_from, self.order, self.orders = [], [], [None] * nodes
        self.pairs, self.lacked, self.inserted = 0, 0, 0
        self.sent_below = list(first)

    def unfinished(self) -> bool:
        """True if I wait for anything from others."""
        return bool(self.waiting or self.sent or self.accepted or self.preacknowledged)

    def log_sizes(self) -> LogSizes:
        """The number of packets in each log."""
        held = sum(unit.packet.seq_to[self.me] >= self.expected_to_me[unit.source] for unit in self.accepted)
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.sent),
            held=held,
            accepted=len(self.accepted) - held,
            preacknowledged=len(self.preacknowledged),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text that follows its name."""
        lines = []
        if self.stage is not Stage.NORMAL:
            lines.append(self._recovery_waits_for())
        if self.waiting:
            row = self.accepted_below[self.me]
            slow = mask_of(node for node, below in enumerate(row) if below == min(row))
            lines.append(f"its window is closed: {names_of(slow)} is known to expect its number {min(row)}")
        for source, (expected, known) in enumerate(zip(self.expected, self.known_below, strict=True)):
            if expected < known:
                lines.append(f"misses from {name_of(source)} its number {expected} on")
        for log, verb, bounds in (
            (self.sent, "keeps its number", self.accepted_below),
            (self.accepted, "has accepted number", self.accepted_below),
            (self.preacknowledged, "has pre-acknowledged number", self.preacknowledged_below),
        ):
            if log:
                packet = log[0].packet
                row = bounds[packet.source]
                silent = mask_of(node for node in members(packet.destinations) if row[node] <= packet.seq)
                lines.append(f"{verb} {packet.seq} of {name_of(packet.source)}, not confirmed by {names_of(silent)}")
        return tuple(lines)

    def _recovery_waits_for(self) -> str:
        if self.stage is Stage.RECOVERING:
            return "waits for what it lacks to be sent again"
        if not self.order_sent:
            return f"waits for the RST_PAKs of {names_of(self.everybody & ~mask_of(self.order))}"
        silent = mask_of(node for node, unit in enumerate(self.orders) if unit is None)
        return f"waits for the RST_ACKs of {names_of(silent)}"


def is_below(packet: Packet, below: Sequence[int]) -> bool:
    """True if every destination has acknowledged more than a packet's number: p.TSEQ < min over p.DST."""
    return all(packet.seq < below[node] for node in members(packet.destinations))
