"""The variables of the printed PriTO at one node, under their own names and with the paper's symbols beside them.

What changes them are the rules in `prito_paper`.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, mask_of, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
from ordercast.protocols.prito.paper.units import NIL, Printed, PrintedData


class Stage(IntEnum):
    """Where a node stands between two losses."""

    NORMAL = 0
    AGREEING = 1
    """It has said what it expects, and hears what the others expect."""
    REJECTING = 2
    """It has said what it rejects, and hears what the others reject."""


class Entry(NamedTuple):
    """What stands in a receipt log: a unit with its data, or its pseudo-PDU, which has none."""

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
    """By source, the number from which on everything follows the first loss in a log; what is expected if nothing does.

    `keeps` is what all have received of each source.
    """
    numbers, follows = list(expected), False
    for entry in log:
        source, seq = entry.unit.source, entry.unit.seq
        follows = follows or seq >= keeps[source]
        if follows:
            numbers[source] = min(numbers[source], seq)
    return tuple(numbers)


_SCALARS = (
    "next_seq", "next_message", "last_data", "owes", "ready_timer", "stage", "synchronising", "heard", "pack_said",
    "agreed", "ack_said", "aborted",
)  # fmt: skip
_LISTS = (
    "sent", "expected", "own_preacknowledged_below", "told_accepted", "accepted", "preacknowledged",
    "expectations", "rejections", "timed_out", "highest_preacknowledged",
)  # fmt: skip
_SETS = ("acknowledged", "expired")
_scalars, _lists, _sets = attrgetter(*_SCALARS), attrgetter(*_LISTS), attrgetter(*_SETS)


class PritoPaperState:
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._readings = config.paper.priority
        self._nodes, self._everybody = nodes, everybody(nodes)

        # Sending.
        self.next_seq = first[me]  # SEQ
        self.next_message = 0
        self.last_data = first[me] - 1  # the number of my last data unit
        self.waiting: deque[Submit] = deque()
        self.sent: list[Printed] = []  # SL, as far as I have not pre-acknowledged it
        self.owes = False  # somebody waits for me to speak
        self.ready_timer = False

        # Receiving. My own units count when the channel brings them back.
        self.expected = list(first)  # REQ_j
        self.accepted: list[Entry] = []  # RRL
        self.preacknowledged: list[Entry] = []  # PRL
        self.own_preacknowledged_below = list(first)  # PEQ_j
        self.accepted_below = [[seq] * nodes for seq in first]  # AL: accepted_below[source][node]
        self.preacknowledged_below = [[seq] * nodes for seq in first]  # PAL: likewise
        self.told_accepted = list(first)  # by source: all below was accepted once, and the host knows
        self.acknowledged: set[tuple[int, int]] = set()  # not delivered yet: source and number; their timers run

        # Recovery.
        self.stage = Stage.NORMAL
        self.expectations: list[tuple[int, ...]] = [()] * nodes  # by node: its REQ_j
        self.rejections: list[tuple[int, ...]] = [()] * nodes

        # Run synchronisation.
        self.synchronising = False  # PACK and ACK are stopped
        self.expired: set[tuple[int, int]] = set()  # their timers have, and they are not delivered
        self.timed_out = [NIL] * nodes  # TOSEQ_j
        self.highest_preacknowledged = list(first)  # the highest PEQ_j that anybody said
        self.heard = 0  # whose Run-Sync or Run-Sync-Pack has come
        self.agreed = 0  # whose Run-Sync-Ack has come
        self.pack_said = self.ack_said = False
        self.aborted = False

    def is_acknowledged(self, unit: Printed) -> bool:
        """p.SEQ < minPAL. What I have not pre-acknowledged myself I would never say to be so."""
        source = unit.source
        return unit.seq < min(self.own_preacknowledged_below[source], *self.preacknowledged_below[source])

    def unfinished(self) -> bool:
        """Whether I wait for anything that others can tell me."""
        return bool(
            self.waiting
            or self.last_data >= min(self.preacknowledged_below[self.me])
            or any(entry.rank for entry in (*self.preacknowledged, *self.accepted))
        )

    # --- looking at it, taking and putting back ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        return (
            _scalars(self),
            tuple(map(tuple, _lists(self))),
            tuple([tuple(sorted(values)) for values in _sets(self)]),
            tuple(self.waiting),
            tuple(map(tuple, self.accepted_below)),
            tuple(map(tuple, self.preacknowledged_below)),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, lists, sets, waiting, accepted_below, preacknowledged_below = parts
        for name, value in zip(_SCALARS, scalars, strict=True):
            setattr(self, name, value)
        for name, values in zip(_LISTS, lists, strict=True):
            setattr(self, name, list(values))
        for name, values in zip(_SETS, sets, strict=True):
            setattr(self, name, set(values))
        self.waiting = deque(waiting)
        self.accepted_below = list(map(list, accepted_below))
        self.preacknowledged_below = list(map(list, preacknowledged_below))

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        data = sum(isinstance(unit, PrintedData) for unit in self.sent)
        low, high = (
            sum(entry.pseudo and isinstance(entry.unit, PrintedData) for entry in log)
            for log in (self.accepted, self.preacknowledged)
        )
        return LogSizes(waiting=len(self.waiting), sent=data, held=0, accepted=low, preacknowledged=high)

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words that follow on its name."""
        lines = []
        if self.stage is not Stage.NORMAL:
            said = self.expectations if self.stage is Stage.AGREEING else self.rejections
            silent = mask_of(node for node, numbers in enumerate(said) if not numbers)
            what = "expects" if self.stage is Stage.AGREEING else "rejects"
            lines.append(f"waits to hear what {names_of(silent)} {what}")
        if self.synchronising:
            heard = self.agreed if self.ack_said else self.heard
            lines.append(f"has stopped until {names_of(self._everybody & ~heard)} agrees on the end of a run")
        if self.waiting:
            lines.append(f"{len(self.waiting)} submissions wait")
        pseudo = [entry.unit for entry in (*self.preacknowledged, *self.accepted) if entry.pseudo]
        if data := [unit for unit in pseudo if isinstance(unit, PrintedData)]:
            top = data[0]
            bounds = self.preacknowledged_below if self.preacknowledged else self.accepted_below
            silent = mask_of(node for node, below in enumerate(bounds[top.source]) if below <= top.seq)
            lines.append(
                f"holds {len(data)} packets, the first of them number {top.seq} of {name_of(top.source)}"
                + (f", not confirmed by {names_of(silent)}" if silent else "")
            )
        return tuple(lines)
