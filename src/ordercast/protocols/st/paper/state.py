"""The variables of the printed ST at one node, under their own names and with the paper's symbols beside them.

What changes them are the rules in `st_paper`.
"""

from collections import deque
from collections.abc import Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, mask_of, members, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data
from ordercast.protocols.st.units import ResetOrder


class Stage(IntEnum):
    """Where a node stands between two losses."""

    NORMAL = 0
    AGREEING = 1
    """It has heard an RST: steps (2) to (5) of the agreement procedure."""
    RECOVERING = 2
    """The sort line is agreed on; what it lacks has not come yet."""


_SCALARS = (
    "next_seq", "next_message", "stamp", "owes", "spoke", "ready_timer", "stage", "reset_said", "order_said", "pairs",
    "lacked", "inserted", "aborted",
)  # fmt: skip
_LISTS = (
    "next_seq_to", "sent", "expected", "expected_to_me", "heard_below", "accepted", "preacknowledged", "free",
    "sort_from", "order", "orders", "sent_below",
)  # fmt: skip
_scalars, _lists = attrgetter(*_SCALARS), attrgetter(*_LISTS)


class StPaperState:
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._nodes, self._my_bit, self._everybody = nodes, 1 << me, everybody(nodes)

        # Sending.
        self.next_seq = first[me]  # TSEQ
        self.next_seq_to = [first[me]] * nodes  # PSEQ_j
        self.next_message = 0
        self.stamp = 0  # counts statuses; the printed rules never look at it
        self.waiting: deque[Submit] = deque()  # submitted, but the flow condition does not hold
        self.sent: list[Data] = []  # SL
        self.owes = False  # somebody waits for my status
        self.spoke = False  # since the period began
        self.ready_timer = False

        # Receiving. My own units count when the channel brings them back.
        self.expected = list(first)  # TREQ_j
        self.expected_to_me = list(first)  # PREQ_j
        self.accepted: list[Data] = []  # RRL, in the order of the channel
        self.preacknowledged: list[Data] = []  # PRL
        self.heard_below = list(first)  # numbers known to exist; only `waits_for` looks at it

        # What the nodes said. Meant: preacknowledged_below <= accepted_below <= expected for each source.
        self.accepted_below = [[seq] * nodes for seq in first]  # AL: accepted_below[source][node]
        self.preacknowledged_below = [[seq] * nodes for seq in first]  # PAL: likewise
        self.free = [config.paper.initial_buffers] * nodes  # BUF_j

        # Recovery.
        self.stage = Stage.NORMAL
        self.reset_said = False  # I have sent an RST, and heard none since
        self.sort_from: list[int] = []  # the TREQ_h of steps (3) to (6); empty: no RST_PAK has come
        self.order: list[int] = []  # ORDR
        self.orders: list[ResetOrder | None] = [None] * nodes  # the RST_ACKs: PR_ij and PS_ji
        self.order_said = False
        self.pairs = 0  # FAIL
        self.sent_below = list(first)  # PS_ij of this node i: what E_j had sent me when we agreed
        self.lacked = self.inserted = 0
        self.aborted = False

    def unfinished(self) -> bool:
        """Whether I wait for anything that others can tell me."""
        return bool(self.waiting or self.sent or self.accepted or self.preacknowledged)

    # --- looking at it, taking and putting back ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        return (
            _scalars(self),
            tuple(map(tuple, _lists(self))),
            tuple(self.waiting),
            tuple(map(tuple, self.accepted_below)),
            tuple(map(tuple, self.preacknowledged_below)),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, lists, waiting, accepted_below, preacknowledged_below = parts
        for name, value in zip(_SCALARS, scalars, strict=True):
            setattr(self, name, value)
        for name, values in zip(_LISTS, lists, strict=True):
            setattr(self, name, list(values))
        self.waiting = deque(waiting)
        self.accepted_below = list(map(list, accepted_below))
        self.preacknowledged_below = list(map(list, preacknowledged_below))

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        held = sum(unit.packet.seq_to[self.me] >= self.expected_to_me[unit.source] for unit in self.accepted)
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.sent),
            held=held,
            accepted=len(self.accepted) - held,
            preacknowledged=len(self.preacknowledged),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words that follow on its name."""
        lines = []
        if self.stage is not Stage.NORMAL:
            lines.append(self._recovery_in_words())
        if self.waiting:
            row = self.accepted_below[self.me]
            slow = mask_of(node for node, below in enumerate(row) if below == min(row))
            lines.append(f"its window is closed: {names_of(slow)} is known to expect its number {min(row)}")
        for source, (expected, heard) in enumerate(zip(self.expected, self.heard_below, strict=True)):
            if expected < heard:
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

    def _recovery_in_words(self) -> str:
        if self.stage is Stage.RECOVERING:
            return "waits for what it lacks to be sent again"
        if not self.order_said:
            return f"waits for the RST_PAKs of {names_of(self._everybody & ~mask_of(self.order))}"
        silent = mask_of(node for node, unit in enumerate(self.orders) if unit is None)
        return f"waits for the RST_ACKs of {names_of(silent)}"


def is_below(packet: Packet, said: Sequence[int]) -> bool:
    """Whether every destination has said more than a packet's number: p.TSEQ < min over p.DST."""
    return all(packet.seq < said[node] for node in members(packet.destinations))
