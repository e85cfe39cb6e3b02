"""The state of the printed PriTO at one node, with the paper's symbols; the rules are in `machine`."""

from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import ClassVar, Final, NamedTuple

from ordercast.model.config import GroupConfig, PriorityReadings
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, mask_of, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.protocols.prito.paper.units import NIL, Printed, PrintedData


class Stage(IntEnum):
    """How far a node is in the recovery after a loss."""

    NORMAL = 0
    AGREEING = 1
    """It has sent what it expects, and collects what the others expect."""
    REJECTING = 2
    """It has sent what it rejects, and collects what the others reject."""


class Entry(NamedTuple):
    """An entry of a receipt log: a unit with its data, or its pseudo-PDU, which has none."""

    unit: Printed
    pseudo: bool

    @property
    def rank(self) -> int:
        """PRI: 0 is for pseudo-PDUs alone, so the application's priorities, which begin at 0, are one higher here."""
        return 0 if self.pseudo or not isinstance(self.unit, PrintedData) else self.unit.packet.priority + 1


def insert_by_priority(entry: Entry, *logs: list[Entry]) -> None:
    """Priority-based insert into several logs that are one: before the first of lower priority, at the end if none."""
    for log in logs:
        for place, other in enumerate(log):
            if entry.rank > other.rank:
                log.insert(place, entry)
                return
    logs[-1].append(entry)


def first_rejected(log: Iterable[Entry], expected: Sequence[int], keeps: Sequence[int]) -> tuple[int, ...]:
    """By source, the first number that follows the first loss in a log; the expected number if none does.

    `keeps`: by source, everything below this was received by all nodes.
    """
    numbers, follows = list(expected), False
    for entry in log:
        source, seq = entry.unit.source, entry.unit.seq
        follows = follows or seq >= keeps[source]
        if follows:
            numbers[source] = min(numbers[source], seq)
    return tuple(numbers)


class PritoPaperState(DeclaredState):
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    me: Final[int]
    config: Final[GroupConfig]
    _readings: Final[PriorityReadings]
    _nodes: Final[int]
    _everybody: Final[int]

    # Transmission.
    next_seq: int
    """SEQ: the number of the next own unit."""
    next_message: int
    """The number of the next own message."""
    last_data: int
    """The number of the last own data unit."""
    waiting: deque[Submit]
    """Submitted, not yet sent."""
    sent: list[Printed]
    """SL: own units, as far as they are not pre-acknowledged here."""
    pending: bool
    """A peer waits for an acknowledgment."""
    ready_timer: bool
    """It runs while something is unfinished: then a unit without data is sent."""

    # Reception. Own units count when the channel brings them back.
    expected: list[int]
    """REQ_j: the number that is expected next from E_j."""
    accepted: list[Entry]
    """RRL: accepted and not pre-acknowledged."""
    preacknowledged: list[Entry]
    """PRL: pre-acknowledged and not delivered."""
    own_preacknowledged_below: list[int]
    """PEQ_j: what E_j sent is pre-acknowledged here below this."""
    accepted_below: list[list[int]]
    """AL: accepted_below[source][node]."""
    preacknowledged_below: list[list[int]]
    """PAL: preacknowledged_below[source][node]."""
    reported_accepted: list[int]
    """By source: packets below this have been reported to the host as accepted."""
    acknowledged: set[tuple[int, int]]
    """Source and number of what is acknowledged and not delivered; a timer runs for each."""

    # Recovery.
    stage: Stage
    """Normal; agreeing: it has sent what it expects; or rejecting: it has sent what it rejects."""
    expectations: list[tuple[int, ...]]
    """By node: its REQ_j; empty until it is received."""
    rejections: list[tuple[int, ...]]
    """By node: the numbers from which on it rejects; empty until they are received."""

    # Run synchronisation.
    synchronising: bool
    """PACK and ACK are stopped."""
    expired: set[tuple[int, int]]
    """Source and number of what has timed out and is not delivered."""
    timed_out: list[int]
    """TOSEQ_j: what E_j sent has timed out up to this number."""
    highest_preacknowledged: list[int]
    """The highest PEQ_j that any node has reported."""
    stopped: int
    """The nodes whose Run-Sync or Run-Sync-Pack was received, one bit each."""
    agreed: int
    """The nodes whose Run-Sync-Ack was received, one bit each."""
    pack_sent: bool
    """Its own Run-Sync-Pack is sent."""
    ack_sent: bool
    """Its own Run-Sync-Ack is sent: all have stopped."""
    aborted: bool
    """It has given the group up."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._readings = config.paper.priority
        self._nodes, self._everybody = nodes, everybody(nodes)

        self.next_seq, self.next_message, self.last_data = first[me], 0, first[me] - 1
        self.waiting, self.sent = deque(), []
        self.pending = self.ready_timer = False

        self.expected, self.reported_accepted = list(first), list(first)
        self.accepted, self.preacknowledged = [], []
        self.own_preacknowledged_below = list(first)
        self.accepted_below = [[seq] * nodes for seq in first]
        self.preacknowledged_below = [[seq] * nodes for seq in first]
        self.acknowledged = set()

        self.stage = Stage.NORMAL
        self.expectations, self.rejections = [()] * nodes, [()] * nodes

        self.synchronising = self.pack_sent = self.ack_sent = self.aborted = False
        self.expired, self.timed_out, self.highest_preacknowledged = set(), [NIL] * nodes, list(first)
        self.stopped = self.agreed = 0

    def is_acknowledged(self, unit: Printed) -> bool:
        """p.SEQ < minPAL; this node counts with what it has pre-acknowledged itself."""
        source = unit.source
        return unit.seq < min(self.own_preacknowledged_below[source], *self.preacknowledged_below[source])

    def unfinished(self) -> bool:
        """True if this node waits for anything from others."""
        return bool(
            self.waiting
            or self.last_data >= min(self.preacknowledged_below[self.me])
            or any(entry.rank for entry in (*self.preacknowledged, *self.accepted))
        )

    # --- inspection ---

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        data = sum(isinstance(unit, PrintedData) for unit in self.sent)
        low, high = (
            sum(entry.pseudo and isinstance(entry.unit, PrintedData) for entry in log)
            for log in (self.accepted, self.preacknowledged)
        )
        return LogSizes(waiting=len(self.waiting), sent=data, held=0, accepted=low, preacknowledged=high)

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text."""
        lines = []
        if self.stage is not Stage.NORMAL:
            received = self.expectations if self.stage is Stage.AGREEING else self.rejections
            silent = mask_of(node for node, numbers in enumerate(received) if not numbers)
            what = "expects" if self.stage is Stage.AGREEING else "rejects"
            lines.append(f"recovery: not known what {names_of(silent)} {what}")
        if self.synchronising:
            replied = self.agreed if self.ack_sent else self.stopped
            lines.append(f"run synchronisation: waiting for {names_of(self._everybody & ~replied)}")
        if self.waiting:
            lines.append(f"{len(self.waiting)} submissions wait for the window")
        pseudo = [entry.unit for entry in (*self.preacknowledged, *self.accepted) if entry.pseudo]
        if data := [unit for unit in pseudo if isinstance(unit, PrintedData)]:
            top = data[0]
            is_preacknowledged = top.seq < self.own_preacknowledged_below[top.source]
            bounds = self.preacknowledged_below if is_preacknowledged else self.accepted_below
            silent = mask_of(node for node, below in enumerate(bounds[top.source]) if below <= top.seq)
            lines.append(
                f"holds {len(data)} packets, the first of them number {top.seq} of {name_of(top.source)}"
                + (f", not confirmed by {names_of(silent)}" if silent else "")
            )
        return tuple(lines)
