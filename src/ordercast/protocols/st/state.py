"""The variables of ST's normal operation at one node, with the paper's symbols, and questions about them.

The rules that change them are in `loss_detection` and `normal_operation`, whose classes derive from this one: they read
several of these variables for every unit received, and an indirection for each would cost some per cent of the time.
Recovery (`recovery`), packets of finished epochs (`finished_epochs`) and back-off (`shared.backoff`) are parts with
states of their own.
"""

from collections import deque
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Submit
from ordercast.model.nodes import everybody, names_of
from ordercast.model.units import Packet, PacketId
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.pending_acknowledgments import UNBOUNDED, PendingAcknowledgments
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.finished_epochs import FinishedEpochs

RECEIVED, OWN = 0, 1
"""The two logs of pending acknowledgments: packets to me in the order of the channel, and packets that I sent."""


class EpochState(DeclaredState):
    """What a node knows of the running epoch. Vectors have an entry for each source, or for each peer."""

    me: Final[int]
    config: Final[GroupConfig]
    nodes: Final[int]
    my_bit: Final[int]
    everybody: Final[int]
    status_after: Final[int]
    """Packets of one source accepted without a transmission of ours after which a status is sent at once."""
    finished: Final[FinishedEpochs]
    backoff: Final[Backoff]

    # Sending.
    next_seq: int  # TSEQ: the number of my next packet
    next_seq_to: list[int]  # PSEQ_j: the number of my next packet among those to E_j
    next_message: int  # the number of my next message; a packet may carry several
    waiting: deque[Submit]  # submitted, but the flow condition does not hold
    to_all: set[int]  # seqs of own packets that were submitted to all, and are not known to be with all
    to_resend: deque[Packet]  # go-back-n: own packets of an earlier epoch that all nodes have discarded

    # Receiving, by source; own packets are received when the channel brings them back.
    expected: list[int]  # TREQ_j: the number of the packet that I expect next from E_j
    expected_to_me: list[int]  # PREQ_j: the same number among those to me: a higher one shows a gap

    # The newest status of each node, from units that were accepted here. My own entry of AL is no exception, unlike in
    # SPO: it comes with my own last echo, because the echo has a place on the channel (Lemma A).
    stamps: list[int]  # by node: the stamp of its newest unit
    free: list[int]  # BUF_j: the free receive buffers of E_j
    accepted: PendingAcknowledgments  # RRL, and SL; waiting for AL of all nodes
    preacknowledged: PendingAcknowledgments  # PRL, and own packets to others only; waiting for PAL
    unpreacknowledged: list[deque[int]]  # the seqs in RRL, by source

    # The log of the running epoch: all packets to me, in the order of the channel (ARL, PRL and RRL).
    epoch: int  # how many times all have agreed on an order after a loss
    log: list[Packet]  # what is to me, in the order in which it came
    preacknowledged_count: int  # so many from the start of the log are pre-acknowledged
    acknowledged_count: int  # and so many are acknowledged
    last_shows_gap: bool  # the last packet came behind a gap and is not accepted
    buffered: int  # receive buffers in use: packets to me that are accepted and not yet delivered
    unplaced: dict[PacketId, Packet]  # came during recovery: they do not determine their place in the order
    of_next_epoch: list[Data | Ready]  # came before this node has finished the epoch
    accepted_before: set[PacketId]  # go-back-n: accepted in an earlier epoch, discarded, and to be accepted again

    # Pending acknowledgments of my own: what no unit of mine has carried yet.
    stamp: int  # counts my transmissions
    status_due: bool  # a peer waits for my status
    acknowledgment_pending: bool  # I have received or pre-acknowledged something since my last transmission
    unreported: list[int]  # packets accepted of each source since my last transmission
    status_timer: bool  # runs while something that I know waits to be told: then a status is sent alone
    transmitted: bool  # since the status timer was set
    patient: bool  # the status timer is a long one: all that is missing are acknowledgments of what is delivered
    inferred_loss_timer: bool  # runs since units of others showed a loss: then I ask the source
    aborted: bool  # it has given the group up

    def __init__(self, me: int, config: GroupConfig, finished: FinishedEpochs, backoff: Backoff) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config, self.finished, self.backoff = me, config, finished, backoff
        self.nodes, self.my_bit, self.everybody = nodes, 1 << me, everybody(nodes)
        self.status_after = max(1, config.window // 2)

        self.next_seq, self.next_seq_to, self.next_message = first[me], [first[me]] * nodes, 0
        self.waiting, self.to_all, self.to_resend = deque(), set(), deque()
        self.expected, self.expected_to_me = list(first), list(first)

        self.stamps, self.free = [0] * nodes, [config.quota * nodes] * nodes
        self.accepted = PendingAcknowledgments(2, [tuple(first)] * nodes, required=self.everybody)
        self.preacknowledged = PendingAcknowledgments(2, self._own_unbounded(tuple(first)))
        self.unpreacknowledged = [deque() for _ in range(nodes)]

        self.epoch, self.log, self.preacknowledged_count, self.acknowledged_count = 0, [], 0, 0
        self.last_shows_gap, self.buffered = False, 0
        self.unplaced, self.of_next_epoch, self.accepted_before = {}, [], set()

        self.stamp, self.unreported = 0, [0] * nodes
        self.status_due = self.acknowledgment_pending = self.status_timer = self.transmitted = False
        self.patient = False
        self.inferred_loss_timer = self.aborted = False

    def _own_unbounded(self, below: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The same acknowledgments for each node, except mine: what is in PRL I have pre-acknowledged."""
        return [(UNBOUNDED,) * self.nodes if node == self.me else below for node in range(self.nodes)]

    def begin_epoch(self) -> None:
        """Starts the next epoch: its log is empty, and every node has acknowledged all that is no longer expected."""
        below = tuple(self.expected)
        self.accepted.clear([below] * self.nodes)
        self.preacknowledged.clear(self._own_unbounded(below))
        for seqs in self.unpreacknowledged:
            seqs.clear()
        self.to_all.intersection_update([packet.seq for packet in self.to_resend])
        self.epoch += 1
        self.finished.epoch_seen[self.me] = self.epoch
        self.log, self.preacknowledged_count, self.acknowledged_count = [], 0, 0
        self.last_shows_gap, self.unplaced = False, {}
        self.buffered = sum(self.finished.is_due(packet, self.me) for _, packet in self.finished.packets)

    def next_numbers(self) -> tuple[int, tuple[int, ...]]:
        """The seq and seq_to of the packet that I send next; discarded packets are sent again first."""
        if self.to_resend:
            return self.to_resend[0].seq, self.to_resend[0].seq_to
        return self.next_seq, tuple(self.next_seq_to)

    def unfinished(self) -> bool:
        """True if I wait for anything from others."""
        return bool(
            self.waiting
            or self.to_resend
            or self.finished.packets
            or self.accepted.logs[RECEIVED]
            or self.accepted.logs[OWN]
            or self.preacknowledged.logs[RECEIVED]
            or self.preacknowledged.logs[OWN]
        )

    def has_delivered_all(self) -> bool:
        """True if this node waits for nothing but acknowledgments of what is delivered (`delivers_stable`)."""
        return (
            self.config.delivers_stable
            and not (self.waiting or self.to_resend or self.finished.packets)
            and not (self.accepted.logs[RECEIVED] or self.accepted.logs[OWN])
        )

    def is_in_no_hurry(self) -> bool:
        """The same, and nobody waits for this node."""
        return not self.status_due and self.has_delivered_all()

    def blockers(self) -> int:
        """The nodes whose acknowledgment something here lacks, as a bit mask."""
        mask = self.finished.blockers()
        for log in (RECEIVED, OWN):
            mask |= self.accepted.blockers(log) | self.preacknowledged.blockers(log)
        return mask & ~self.my_bit

    def buffers_in_use(self) -> int:
        """Packets that are not delivered, wherever they are kept."""
        return self.buffered + len(self.unplaced) + len(self.of_next_epoch)

    def free_buffers(self) -> int:
        """Receive buffers left, for all sources together."""
        return max(0, self.config.quota * self.nodes - self.buffers_in_use())

    def waits_for(self) -> list[str]:
        """Which acknowledgments are missing, as text."""
        lines = []
        for log, what in ((RECEIVED, "packets received"), (OWN, "packets sent")):
            for pending, verb in ((self.accepted, "accepted"), (self.preacknowledged, "pre-acknowledged")):
                if pending.logs[log]:
                    who = names_of(pending.blockers(log))
                    lines.append(f"{len(pending.logs[log])} {what} wait to be known as {verb} by {who}")
        return lines
