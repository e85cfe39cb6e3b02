"""The variables of SPO at one node, with the papers' symbols, and questions about them.

The rules that change them are in `loss_detection` and `machine`; `retransmission` is a part with a state of its own.
`Spo` derives from this class rather than having it as a part: its rules read several of these variables for every unit
received, and an indirection for each would cost some per cent of the time.
"""

from collections import deque
from collections.abc import Sequence
from operator import lt
from typing import ClassVar, Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState, Derived
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.shared.pending_acknowledgments import UNBOUNDED, PendingAcknowledgments
from ordercast.protocols.shared.sending_log import SendingLog
from ordercast.protocols.spo.retransmission import Retransmission
from ordercast.protocols.spo.settlement import Settlement
from ordercast.protocols.spo.units import Status


class SpoState(DeclaredState):
    """What a node knows. Vectors have an entry for each source, or for each peer."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.MANY
    has_views: ClassVar[bool] = False

    me: Final[int]
    config: Final[GroupConfig]
    nodes: Final[int]
    my_bit: Final[int]
    everybody: Final[int]
    views: Final[bool]
    status_after: Final[int]
    """Packets of one source accepted without a transmission of ours after which a status is sent at once."""

    # Sending.
    next_seq: int  # TSEQ: the number of my next packet
    next_seq_to: list[int]  # PSEQ_j: the number of my next packet among those to E_j
    next_message: int  # the number of my next message; a packet may carry several
    waiting: deque[Submit]  # submitted, but the flow condition does not hold
    sent: SendingLog  # SL: own packets that may have to be sent again
    settlement: Settlement  # only with views
    window_changed: Derived[bool]  # within one transition, which begins with False: the flow condition may hold now

    # Receiving, by source. Always expected_to_me <= seen_to_me and expected <= seen.
    expected: list[int]  # TREQ_j: all to me below this is accepted
    expected_to_me: list[int]  # PREQ_j: the number to me that I expect next from E_j: a higher one shows a gap
    seen: list[int]  # the next seq after the highest that is known to exist
    seen_to_me: list[int]  # the number to me that goes with it
    buffered: list[int]  # receive buffers in use: accepted and not yet delivered
    delivered_early: list[int]  # `delivers_stable`: so many pre-acknowledged packets, the first ones, are delivered
    retransmission: Retransmission  # what is requested, and what is sent again

    # The newest status of each node. My own acknowledgments never hold a packet up, hence unbounded.
    stamps: list[int]  # by node: the stamp of its newest unit
    free: list[int]  # F_j: the free receive buffers of E_j
    accepted: PendingAcknowledgments  # RPL_j, waiting for AL: a log for each source
    preacknowledged: PendingAcknowledgments  # PPL_j, waiting for PAL; the last log is of own packets to others only

    # Pending acknowledgments of my own: what no unit of mine has carried yet.
    stamp: int  # counts my transmissions
    status_due: bool  # a peer may wait for something that I know and have not transmitted
    unreported: list[int]  # packets accepted of each source since my last transmission
    reported_free: int  # my free receive buffers, as I last told the others
    status_timer: bool  # runs while something that I know waits to be told: then a status is sent alone
    transmitted: bool  # since the status timer was set

    # Polls of the nodes that I wait for.
    poll_timer: bool  # runs while I wait for others: then I ask them what they have
    patient: bool  # it is a long one: all that is missing are acknowledgments of what is delivered
    heads_at_poll: tuple[int, ...]  # the head of each log when the poll timer was set
    backoff: Backoff
    inferred_loss_timer: bool  # runs since units of others showed a loss: then I ask the source

    aborted: bool  # it has given the group up

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self.nodes, self.my_bit, self.everybody = nodes, 1 << me, everybody(nodes)
        self.views, self.status_after = config.views, max(1, config.window // 2)

        self.next_seq, self.next_seq_to, self.next_message = first[me], [first[me]] * nodes, 0
        self.waiting, self.sent, self.window_changed = deque(), SendingLog(me, nodes), False
        self.settlement = Settlement(me, first)

        self.expected, self.expected_to_me = list(first), list(first)
        self.seen, self.seen_to_me = list(first), list(first)
        self.buffered, self.delivered_early = [0] * nodes, [0] * nodes

        self.stamps, self.free = [0] * nodes, [config.quota] * nodes
        below = [(UNBOUNDED,) * nodes if node == me else tuple(first) for node in range(nodes)]
        self.accepted = PendingAcknowledgments(nodes, below)
        self.preacknowledged = PendingAcknowledgments(nodes + 1, below)

        self.stamp, self.status_due, self.unreported = 0, False, [0] * nodes
        self.reported_free = config.quota
        self.status_timer = self.transmitted = False
        self.heads_at_poll, self.backoff = (), Backoff(nodes, config.polls_limit(), config.timing.poll)
        self.poll_timer = self.patient = self.inferred_loss_timer = self.aborted = False

    def free_buffers(self) -> int:
        """Receive buffers left for the source that has fewest; my own packets are limited by `Spo.can_send`."""
        others = self.buffered.copy()
        others[self.me] = 0
        return self.config.quota - max(others)

    def unfinished(self) -> bool:
        """True if anything that I sent or accepted is not acknowledged."""
        return not self.aborted and (
            len(self.sent) > 0
            or bool(self.preacknowledged.logs[self.nodes])
            or any(self.buffered)
            or any(self.delivered_early)
        )

    def has_delivered_all(self) -> bool:
        """True if this node waits for nothing but acknowledgments of what is delivered (`delivers_stable`)."""
        return self.config.delivers_stable and not (
            self.waiting or len(self.sent) or self.preacknowledged.logs[self.nodes] or any(self.buffered)
        )

    def is_regression(self, node: int, status: Status) -> bool:
        """True if a status acknowledges less than an earlier one: a fault of its sender, and the logs rely on it."""
        accepted = self.accepted.acknowledged_below[node]
        preacknowledged = self.preacknowledged.acknowledged_below[node]
        return True in map(lt, status.expects, accepted) or True in map(
            lt, status.preacknowledged_below, preacknowledged
        )  # checked for every unit: `in` takes half as long as `any`

    def heads(self) -> tuple[int, ...]:
        """The seq at the head of each log: accepted, pre-acknowledged, and sent to each node; -1 if it is empty."""
        logs = (*self.accepted.logs, *self.preacknowledged.logs, *self.sent.by_destination, *self.settlement.held)
        return tuple([log[0].seq if log else -1 for log in logs])

    def blockers(self, counted: Sequence[bool]) -> int:
        """The nodes whose acknowledgment a head lacks, over the logs that are `counted`, in the order of `heads`."""
        blocking = [*map(self.accepted.blockers, range(self.nodes))]
        blocking += map(self.preacknowledged.blockers, range(self.nodes + 1))
        blocking += [1 << node if log else 0 for node, log in enumerate(self.sent.by_destination)]
        blocking += self.settlement.blockers()
        mask = 0
        for counts, nodes in zip(counted, blocking, strict=True):
            if counts:
                mask |= nodes
        return mask & ~self.my_bit

    def log_sizes(self) -> LogSizes:
        """The number of packets in each log."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.sent),
            held=sum(map(len, self.retransmission.out_of_order)),
            accepted=sum(map(len, self.accepted.logs)) + sum(map(len, self.settlement.held)),
            preacknowledged=sum(map(len, self.preacknowledged.logs)),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, as text."""
        sizes, lines = self.log_sizes(), []
        if sizes.waiting:
            lines.append(f"{sizes.waiting} submissions wait for the window")
        if blockers := self.sent.blockers():
            lines.append(f"{sizes.sent} packets sent are not known to be accepted by {names_of(blockers)}")
        for source, ranges in self.retransmission.missing(self.expected_to_me):
            lines.append(
                f"of {name_of(source)}, numbers {', '.join(f'{a}–{b - 1}' for a, b in ranges)} to me are missing"
            )
        for count, pending, verb in (
            (sizes.accepted, self.accepted, "accepted"),
            (sizes.preacknowledged, self.preacknowledged, "pre-acknowledged"),
        ):
            blockers = 0
            for log in range(len(pending.logs)):
                blockers |= pending.blockers(log)
            if blockers:
                lines.append(f"{count} packets wait to be known as {verb} by {names_of(blockers)}")
        for source, held in enumerate(self.settlement.held):
            if held:
                lines.append(f"{len(held)} packets wait until {name_of(source)} has settled all before them")
        return tuple(lines)
