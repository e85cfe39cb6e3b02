"""The variables of ST's normal operation at one node, with the paper's symbols, and questions about them.

The rules that change them are in `loss_detection` and `normal_operation`, whose classes derive from this one: they read
several of these variables for every unit received, and an indirection for each would cost some per cent of the time.
Recovery (`recovery`), packets of finished epochs (`finished_epochs`) and back-off (`shared.backoff`) are parts with
states of their own.
"""

from collections import deque
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Submit
from ordercast.model.nodes import everybody
from ordercast.model.units import Packet, PacketId
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.channel_logs import ChannelLogs
from ordercast.protocols.st.finished_epochs import FinishedEpochs


class EpochState(ChannelLogs):
    """What a node knows of the running epoch. Vectors have an entry for each source, or for each peer."""

    everybody: Final[int]
    status_after: Final[int]
    """Packets of one source accepted without a transmission of ours after which a status is sent at once."""
    finished: Final[FinishedEpochs]

    # Sending.
    next_seq: int  # TSEQ: the number of my next packet
    next_seq_to: list[int]  # PSEQ_j: the number of my next packet among those to E_j
    next_message: int  # the number of my next message; a packet may carry several
    waiting: deque[Submit]  # submitted, but the flow condition does not hold
    to_resend: deque[Packet]  # go-back-n: own packets of an earlier epoch that all nodes have discarded

    # Receiving, by source; own packets are received when the channel brings them back.
    expected: list[int]  # TREQ_j: the number of the packet that I expect next from E_j
    expected_to_me: list[int]  # PREQ_j: the same number among those to me: a higher one shows a gap

    # The log of the running epoch: all packets to me, in the order of the channel (ARL, PRL and RRL).
    epoch: int  # how many times all have agreed on an order after a loss
    log: list[Packet]  # what is to me, in the order in which it came
    preacknowledged_count: int  # so many from the start of the log are pre-acknowledged
    acknowledged_count: int  # and so many are acknowledged
    last_shows_gap: bool  # the last packet came behind a gap and is not accepted
    unplaced: dict[PacketId, Packet]  # came during recovery: they do not determine their place in the order
    of_next_epoch: list[Data | Ready]  # came before this node has finished the epoch
    accepted_before: set[PacketId]  # go-back-n: accepted in an earlier epoch, discarded, and to be accepted again

    # Pending acknowledgments of my own: what no unit of mine has carried yet.
    stamp: int  # counts my transmissions
    status_due: bool  # a peer waits for my status
    unreported: list[int]  # packets accepted of each source since my last transmission
    status_timer: bool  # runs while something that I know waits to be told: then a status is sent alone
    transmitted: bool  # since the status timer was set
    patient: bool  # the status timer is a long one: all that is missing are acknowledgments of what is delivered
    inferred_loss_timer: bool  # runs since units of others showed a loss: then I ask the source
    aborted: bool  # it has given the group up

    def __init__(self, me: int, config: GroupConfig, finished: FinishedEpochs, backoff: Backoff) -> None:
        super().__init__(me, config, backoff)
        nodes, first = config.nodes, config.first_seqs()
        self.finished, self.everybody = finished, everybody(nodes)
        self.status_after = max(1, config.window // 2)

        self.next_seq, self.next_seq_to, self.next_message = first[me], [first[me]] * nodes, 0
        self.waiting, self.to_resend = deque(), deque()
        self.expected, self.expected_to_me = list(first), list(first)

        self.epoch, self.log, self.preacknowledged_count, self.acknowledged_count = 0, [], 0, 0
        self.last_shows_gap = False
        self.unplaced, self.of_next_epoch, self.accepted_before = {}, [], set()

        self.stamp, self.unreported = 0, [0] * nodes
        self.status_due = self.status_timer = self.transmitted = False
        self.patient = False
        self.inferred_loss_timer = self.aborted = False

    def begin_epoch(self) -> None:
        """Starts the next epoch: its log is empty, and every node has acknowledged all that is no longer expected."""
        below = tuple(self.expected)
        self.accepted.clear([below] * self.nodes)
        self.preacknowledged.clear(self.own_unbounded(below))
        for seqs in self.unpreacknowledged:
            seqs.clear()
        self.to_all.intersection_update([packet.seq for packet in self.to_resend])
        self.epoch += 1
        self.finished.epoch_seen[self.me] = self.epoch
        self.log, self.preacknowledged_count, self.acknowledged_count = [], 0, 0
        self.last_shows_gap, self.unplaced = False, {}
        self.buffered = len(self.finished.all_due(self.me))

    def next_numbers(self) -> tuple[int, tuple[int, ...]]:
        """The seq and seq_to of the packet that I send next; discarded packets are sent again first."""
        if self.to_resend:
            return self.to_resend[0].seq, self.to_resend[0].seq_to
        return self.next_seq, tuple(self.next_seq_to)

    def unfinished(self) -> bool:
        """True if I wait for anything from others."""
        return bool(self.waiting or self.to_resend or self.finished.packets) or self.has_unacknowledged()

    def has_delivered_all(self) -> bool:
        """True if this node waits for nothing but acknowledgments of what is delivered (`delivers_stable`)."""
        idle = not (self.waiting or self.to_resend or self.finished.packets or self.has_unaccepted())
        return self.config.delivers_stable and idle

    def is_in_no_hurry(self) -> bool:
        """The same, and nobody waits for this node."""
        return not self.status_due and self.has_delivered_all()

    def blockers(self) -> int:
        """The nodes whose acknowledgment something here lacks, as a bit mask."""
        return (self.finished.blockers() & ~self.my_bit) | self.missing_acknowledgments()

    def buffers_in_use(self) -> int:
        """Packets that are not delivered, wherever they are kept."""
        return self.buffered + len(self.unplaced) + len(self.of_next_epoch)

    def free_buffers(self) -> int:
        """Receive buffers left, for all sources together."""
        return max(0, self.config.quota * self.nodes - self.buffers_in_use())
