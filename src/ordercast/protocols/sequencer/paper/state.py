"""The variables of the printed sequencer at one node, under their own names and with those of Figure 2 beside them.

What changes them are the rules in `sequencer_paper`.
"""

from collections import deque
from operator import attrgetter
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
from ordercast.protocols.sequencer.paper.units import PaperBroadcast, PaperData

_SCALARS = (
    "sequencer", "expected", "message_id", "next_message", "outstanding", "heard_below", "asked", "unspoken",
    "sync_through", "data_tries", "request_tries", "next_number", "phase", "replied", "in_election", "aborted", "why",
)  # fmt: skip
_LISTS = ("acknowledged", "last_message", "history", "claims")
_scalars, _lists = attrgetter(*_SCALARS), attrgetter(*_LISTS)


class SequencerPaperState:
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.ANY
    has_views: ClassVar[bool] = False

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, readings = config.nodes, config.paper.sequencer
        self.me, self.config, self._readings = me, config, readings
        self._nodes, self._everybody = nodes, everybody(nodes)
        self._history_size = config.sequencer.history  # HISTORY_SIZE
        self._dummy_after = readings.dummy_after or self._history_size
        self.sequencer = config.sequencer.node

        # On all machines.
        self.expected = 0  # LastSeqReceived, which Figure 5 takes for the next one
        self.message_id = readings.first_id  # MessageId
        self.next_message = 0
        self.waiting: deque[Submit] = deque()  # not yet taken by broadcast(), which blocks
        self.outstanding: PaperData | None = None  # what broadcast() waits for
        self.heard_below = 0  # numbers known to exist
        self.held: dict[int, PaperBroadcast] = {}  # came ahead; only with the reading `asks_once`
        self.asked = -1  # the gap that was asked about, likewise
        self.unspoken = 0  # messages received since something was sent to the sequencer
        self.sync_through = -1  # in the synchronization phase: the last number of PHASE1; else -1
        self.data_tries = self.request_tries = 0

        # At the sequencer; all zero, as C leaves them.
        none_yet = -1 if readings.acknowledges_last else 0
        self.next_number = 0  # NextSeqToUse
        self.acknowledged = [none_yet] * nodes  # SequenceNr[]: numbers up to and including it are received
        self.last_message = [0] * nodes  # MessageNr[]
        self.history: list[PaperBroadcast] = []  # History[]; with the reading `elects` every node has one
        self.phase = 0  # of the synchronization phase; 0: normal operation
        self.replied = 0  # the nodes whose ACK_COMMIT has come in this phase

        self.in_election = False
        self.claims = [-1] * nodes  # the numbers heard in an election
        self.aborted = False
        self.why = ""  # it was given up

    @property
    def is_sequencer(self) -> bool:
        """The flag in the kernel."""
        return self.me == self.sequencer

    def said(self) -> int:
        """What I tell the sequencer that I have."""
        return self.expected - 1 if self._readings.acknowledges_last else self.expected

    # --- looking at it, taking and putting back ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        held = tuple(sorted(self.held.items()))
        return (_scalars(self), tuple(map(tuple, _lists(self))), tuple(self.waiting), held)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, lists, waiting, held = parts
        for name, value in zip(_SCALARS, scalars, strict=True):
            setattr(self, name, value)
        for name, values in zip(_LISTS, lists, strict=True):
            setattr(self, name, list(values))
        self.waiting, self.held = deque(waiting), dict(held)

    def log_sizes(self) -> LogSizes:
        """How much it holds now; the history is what is accepted."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=self.outstanding is not None,
            held=len(self.held),
            accepted=len(self.history),
            preacknowledged=0,
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words that follow on its name."""
        lines = [f"gave up: {self.why}"] if self.why else []
        if self.outstanding is not None:
            lines.append(f"waits for its message {self.outstanding.message} to come back as a broadcast")
        elif self.waiting:
            lines.append("has something to send, but not while the group synchronises")
        if self.expected < self.heard_below and not self.is_sequencer:
            lines.append(f"misses broadcast {self.expected}")
        if self.phase:
            silent = names_of(self._everybody & ~self.replied & ~(1 << self.me))
            lines.append(f"waits for the ACK_COMMITs of {silent} in phase {self.phase}")
        elif self.sync_through >= 0:
            lines.append(f"has stopped sending until {name_of(self.sequencer)} says that everybody has everything")
        return tuple(lines)
