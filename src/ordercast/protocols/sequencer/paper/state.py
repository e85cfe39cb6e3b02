"""State of the printed sequencer at one node, with the names of Figure 2 beside ours; the rules are in `machine`."""

from collections import deque
from typing import ClassVar, Final

from ordercast.model.config import GroupConfig, SequencerReadings
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.protocols.sequencer.paper.units import PaperBroadcast, PaperData


class SequencerPaperState(DeclaredState):
    """The variables of one node."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.ANY
    has_views: ClassVar[bool] = False

    me: Final[int]
    config: Final[GroupConfig]
    readings: Final[SequencerReadings]
    everybody: Final[int]
    max_history: Final[int]  # HISTORY_SIZE: broadcasts that a history has room for
    dummy_after: Final[int]

    # At all nodes.
    sequencer: int  # the node that numbers, as this one knows
    expected: int  # LastSeqReceived, which Figure 5 uses as the next number
    message_id: int  # PacketId: of the next own message
    next_message: int  # the number of the next own message
    waiting: deque[Submit]  # not yet taken by broadcast(), which blocks
    outstanding: PaperData | None  # what broadcast() waits for
    known_below: int  # numbers known to exist
    ahead: dict[int, PaperBroadcast]  # received ahead of a gap; only with the reading `asks_once`
    requested: int | None  # the number that was last requested
    unacknowledged: int  # messages received since something was sent to the sequencer
    sync_through: int | None  # in the synchronization phase: the last number of PHASE1
    data_tries: int  # how often the outstanding message was sent without an answer
    request_tries: int  # how often the missing number was requested without an answer

    # At the sequencer.
    next_number: int  # NextSeqToUse: the number of the next broadcast
    acknowledged: list[int]  # SequenceNr[]: numbers up to and including it are received
    last_message: list[int]  # MessageNr[]: by node, the last of its messages that is numbered
    history: list[PaperBroadcast]  # History[]; with the reading `elects` at every node
    phase: int  # of the synchronization phase; 0: normal operation
    replied: int  # nodes whose ACK_COMMIT has come in this phase, one bit each

    in_election: bool  # the sequencer is taken for failed, and another one is elected
    claims: dict[int, int]  # by node: the numbers claimed in an election
    aborted: bool  # it has given the group up
    why: str  # it was aborted

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, readings = config.nodes, config.paper.sequencer
        self.me, self.config, self.readings = me, config, readings
        self.everybody = everybody(nodes)
        self.max_history = config.sequencer.history
        self.dummy_after = readings.dummy_after or config.sequencer.history

        self.sequencer = config.sequencer.node
        self.expected = 0
        self.message_id, self.next_message = readings.first_id, 0
        self.waiting = deque()
        self.outstanding = None
        self.known_below = 0
        self.ahead = {}
        self.requested = None
        self.unacknowledged = 0
        self.sync_through = None
        self.data_tries = self.request_tries = 0

        # All zero, as C leaves them.
        self.next_number = 0
        self.acknowledged = [-1 if readings.acknowledges_last else 0] * nodes
        self.last_message = [0] * nodes
        self.history = []
        self.phase = self.replied = 0

        self.in_election = False
        self.claims = {}
        self.aborted, self.why = False, ""

    @property
    def is_sequencer(self) -> bool:
        """The flag in the kernel."""
        return self.me == self.sequencer

    def acknowledgment(self) -> int:
        """What this node reports to the sequencer as received."""
        return self.expected - 1 if self.readings.acknowledges_last else self.expected

    def log_sizes(self) -> LogSizes:
        """How much it holds now; the history counts as accepted."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=self.outstanding is not None,
            held=len(self.ahead),
            accepted=len(self.history),
            preacknowledged=0,
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text that follows its name."""
        lines = [f"gave up: {self.why}"] if self.why else []
        if self.outstanding is not None:
            lines.append(f"waits for its message {self.outstanding.message} to come back as a broadcast")
        elif self.waiting:
            lines.append("has something to send, but not while the group synchronises")
        if self.expected < self.known_below and not self.is_sequencer:
            lines.append(f"misses broadcast {self.expected}")
        if self.phase:
            silent = names_of(self.everybody & ~self.replied & ~(1 << self.me))
            lines.append(f"waits for the ACK_COMMITs of {silent} in phase {self.phase}")
        elif self.sync_through is not None:
            lines.append(f"has stopped sending until {name_of(self.sequencer)} says that everybody has everything")
        return tuple(lines)
