"""The variables of the sequencer's broadcast at one node, with the paper's symbols beside them.

What changes them are the rules in `sequencer_receiving`, `sequencer_ordering`, `sequencer_sending` and
`sequencer_views`. All bounds are exclusive: `received_below` is the paper's LastSeqReceived as its Figure 5 uses it,
and every comparison here means it so.
"""

from collections import deque
from enum import Enum
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Abort, CancelTimer, Echo, LogSizes, Output, SetTimer, Submit
from ordercast.model.nodes import everybody, members, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
from ordercast.model.units import MessageId, Packet
from ordercast.protocols.sequencer.units import Ballot, Flushed, NextView
from ordercast.protocols.shared.gaps import missing_ranges
from ordercast.protocols.shared.timers import spread

MOST_PATIENT = 8
"""Questions back off by doubling while nothing moves, up to this many times their duration."""
MOST_PATIENT_WITH_SILENCE = 2
"""And up to so many times while those who are asked are silent, and the group may have to go on without them."""
MOST_COPIES = 32
"""Broadcasts that are asked for, and sent again, at once."""


class Fullness(Enum):
    """How far a sequencer is whose history is full, while offers wait for room."""

    NOT = 0
    WAITS = 1
    """Acknowledgments may be under way."""
    ASKED = 2
    """Those that keep it full were asked for theirs."""


_SCALARS = (
    "installed", "closed", "received_below", "delivered_below", "stable_below", "commit_below", "known_below",
    "asked_below", "gap_below", "kept_from", "said_below", "wanted_below", "next_seq", "next_message", "due_below",
    "overdue_below", "in_sync_until", "sync_round", "need_timer", "gap_timer", "moved", "heard", "asked",
    "patience", "silent", "lowest", "sync_phase", "replied", "announced_commit", "announced_stable",
    "fullness", "status_timer", "status_moved", "status_patience", "promised", "highest_round", "accepted",
    "proposal", "holder", "fetched_below", "coordinates", "accepts", "rounds", "unresolved", "guided", "suspects",
    "answered",
)  # fmt: skip
_LISTS = ("ordered_below", "rows", "unanswered")
_DEQUES = ("waiting", "outstanding", "turns", "markers")
_DICTS = ("history", "ahead", "unordered", "awaited", "number_of", "supplied", "reports")


class SequencerState:
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.ANY
    has_views: ClassVar[bool] = True

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._nodes, self._my_bit, self._everybody = nodes, 1 << me, everybody(nodes)
        # A quiet node says what it has before the history is full, and as rarely as that allows.
        self._most_ahead = config.window + config.sequencer.history
        self._dummy = config.sequencer.says_after or max(1, config.sequencer.history * 3 // 4)

        # The view, and what follows from it.
        self.enter(NextView(0, self._everybody, config.sequencer.node, 0, ""))
        self.markers: deque[NextView] = deque()  # views of which the application is told when it has all before them
        self.closed = False  # shut out, or the group is given up

        # Receiving.
        self.received_below = 0  # LastSeqReceived
        self.delivered_below = 0
        self.stable_below = 0  # everybody has these
        self.commit_below = 0  # these may be delivered, where that takes more than having them
        self.known_below = 0  # these are known to exist
        self.asked_below = 0  # of these, what is missing has been asked for
        self.gap_below = 0  # and of these it will be when the gap timer fires
        self.overdue_below = 0  # these should have come long ago
        self.kept_from = 0
        self.history: dict[int, Packet] = {}  # History, at every node: from kept_from to received_below
        self.ahead: dict[int, Packet] = {}  # came ahead of a gap
        self.ordered_below = list(first)  # MessageNr + 1, by source: of what was received
        self.unordered: dict[MessageId, Packet] = {}  # broadcast by their senders, number not known yet
        self.awaited: dict[MessageId, int] = {}  # their numbers, where these came first

        # Sending.
        self.next_seq = first[me]  # MessageId
        self.next_message = 0
        self.waiting: deque[Submit] = deque()  # submitted, but the window is closed
        self.outstanding: deque[Packet] = deque()  # numbered by me, not delivered here yet
        self.due_below = first[me]  # own packets below are under way for long enough to be offered again

        # What a node that is not the sequencer says, and asks.
        self.said_below = 0  # what the sequencer was told that I have
        self.wanted_below = 0  # it wants to hear when I have these
        self.need_timer = self.gap_timer = False
        self.moved = self.heard = self.asked = False  # since the need timer was set
        self.patience = 1
        self.silent = 0  # questions in a row after which nothing at all was heard from the sequencer
        self.answered = 0  # nodes of other views that were answered since the answer timer was set
        self.start_ordering()
        self.start_agreement()

    def start_ordering(self) -> None:
        """What the sequencer knows, and the rounds that it counts, are of one view."""
        nodes = self._nodes
        self.in_sync_until = -1  # stopped by PHASE1 until a broadcast of this number, or PHASE2, comes; -1 is not
        self.sync_round = 0  # the latest heard of, or begun
        self.rows = [0] * nodes  # SequenceNr, by node: what it has
        self.lowest = 0  # of the members' rows
        self.held: list[dict[int, tuple[Packet, bool]]] = [{} for _ in range(nodes)]  # offers, by source and id
        self.turns: deque[int] = deque()  # sources whose next offer is here, in the order in which they came
        self.number_of: dict[MessageId, int] = {}  # of what is in the history
        self.sync_phase = 0
        self.replied = 0
        self.announced_commit = self.announced_stable = 0
        self.fullness = Fullness.NOT
        self.status_timer = self.status_moved = False
        self.status_patience = 1
        self.unanswered = [0] * nodes  # questions asked since each node was heard

    def start_agreement(self) -> None:
        """Promises and ballots are about one next view."""
        self.promised: Ballot | None = None  # a node that has promised has stopped
        self.highest_round = 0  # of the ballots heard of
        self.accepted: tuple[Ballot, NextView] | None = None
        self.proposal: tuple[Ballot, NextView] | None = None  # accepted as soon as everything that it names is here
        self.holder = 0  # who has it
        self.fetched_below = 0  # up to here it was asked for
        self.supplied: dict[int, Packet] = {}  # of what others have received; mine when the view is installed
        self.coordinates = False  # the ballot that I have promised myself to is mine
        self.reports: dict[int, Flushed] = {}
        self.accepts = 0
        self.rounds = 0  # since I began to coordinate
        self.unresolved = 0  # since I stopped
        self.guided = False  # heard from the coordinator since the timer was set
        self.suspects = 0

    def enter(self, view: NextView) -> None:
        """Makes a view the present one."""
        self.installed = view
        self.view, self.members, self.sequencer = view.number, view.members, view.sequencer
        self.is_sequencer = self.sequencer == self.me
        self.others = tuple(node for node in members(view.members) if node != self.me)
        size = view.members.bit_count()
        self.resilience = min(self.config.sequencer.resilience, size - 1)
        followers = [node for node in members(view.members) if node != view.sequencer]
        self.says_at_once = self.me in followers[: self.resilience]

    # --- what rules of all roles ask ---

    def is_full(self) -> bool:
        """Whether the history has no room."""
        return self.received_below - self.stable_below >= self.config.sequencer.history

    def is_at_rest(self) -> bool:
        """Whether I wait for nothing that the sequencer can tell me."""
        return not (
            self.outstanding
            or self.waiting
            or self.stable_below < self.received_below
            or self.received_below < self.known_below
        )

    def in_need(self) -> bool:
        """Whether I have something to ask, be it only whether the sequencer lives."""
        return bool(self.config.sequencer.heartbeat) or not self.is_at_rest()

    def missing(self, start: int = 0, stop: int | None = None) -> tuple[tuple[int, int], ...]:
        """What I lack, between two numbers, of what is known to exist; as much as one request asks for."""
        if self.known_below == self.received_below + len(self.ahead):
            return ()
        stop = self.known_below if stop is None else stop
        return _first(missing_ranges(max(start, self.received_below), stop, self.ahead), MOST_COPIES)

    def lacking(self, cut_below: int) -> tuple[tuple[int, int], ...]:
        """What I lack of what a next view takes over, likewise."""
        return _first(missing_ranges(self.received_below, cut_below, {*self.ahead, *self.supplied}), MOST_COPIES)

    def laggards(self) -> int:
        """The members that are not known to have everything, as a set."""
        return sum(1 << node for node in self.others if self.rows[node] < self.received_below)

    def set_timer(self, name: str, duration: int, out: list[Output]) -> None:
        """Spread by what changes from one time to the next."""
        stamp = self.received_below + 31 * (self.patience + self.status_patience + self.silent) + 1009 * self.unresolved
        out.append(SetTimer(name, spread(duration, self.me, stamp)))

    def stop_timers(self, out: list[Output]) -> None:
        """Forgets those of a view."""
        for name in ("need", "gap", "status"):
            if getattr(self, f"{name}_timer"):
                setattr(self, f"{name}_timer", False)
                out.append(CancelTimer(name))

    def abort(self, why: str, out: list[Output]) -> None:
        """Gives the group up."""
        self.closed = True
        out.append(Abort(why))

    # --- looking at it from outside ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        return (
            tuple(getattr(self, name) for name in _SCALARS),
            tuple(tuple(getattr(self, name)) for name in (*_LISTS, *_DEQUES)),
            tuple(tuple(sorted(getattr(self, name).items())) for name in _DICTS),
            tuple(tuple(sorted(offers.items())) for offers in self.held),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, sequences, dictionaries, held = parts
        for name, value in zip(_SCALARS, scalars, strict=True):
            setattr(self, name, value)
        for name, values in zip((*_LISTS, *_DEQUES), sequences, strict=True):
            setattr(self, name, list(values) if name in _LISTS else deque(values))
        for name, items in zip(_DICTS, dictionaries, strict=True):
            setattr(self, name, dict(items))
        self.held = [dict(offers) for offers in held]
        self.enter(self.installed)

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.outstanding),
            held=len(self.ahead) + len(self.unordered) + len(self.supplied) + sum(map(len, self.held)),
            accepted=self.received_below - self.stable_below,
            preacknowledged=0,
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words."""
        if self.closed:
            return ()
        lines = []
        if self.waiting:
            lines.append(f"{len(self.waiting)} submissions wait for the window")
        if self.outstanding:
            lines.append(f"{len(self.outstanding)} packets sent wait to come back with a number")
        if self.received_below < self.known_below:
            lines.append(f"broadcasts from {self.received_below} to {self.known_below - 1} are missing")
        if self.stable_below < self.received_below:
            what = f"{self.received_below - self.stable_below} broadcasts wait to be known as received by everybody"
            lines.append(f"{what}: {names_of(self.laggards())} may lack some" if self.is_sequencer else what)
        if self.sync_phase:
            lines.append(f"phase {self.sync_phase} of synchronisation {self.sync_round} waits for answers")
        if self.promised is not None:
            leader = "I lead" if self.coordinates else f"{name_of(self.promised[1])} leads"
            lines.append(f"the view after {self.view} is being agreed on; {leader}")
        return tuple(lines)


def _first(ranges: tuple[tuple[int, int], ...], most: int) -> tuple[tuple[int, int], ...]:
    """As many of these ranges as hold so many numbers."""
    found = []
    for start, stop in ranges:
        found.append((start, min(stop, start + most)))
        most -= stop - start
        if most <= 0:
            break
    return tuple(found)
