"""The variables of ST at one node, under their own names and with the paper's symbols beside them.

What changes them are the rules in `st_normal` and `st`.
"""

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
from ordercast.model.units import MessageId, Packet, Unit
from ordercast.protocols.shared.watched_logs import UNBOUNDED, WatchedLogs
from ordercast.protocols.st.units import ResetNeed, ResetReply

LOG, OWN = 0, 1
"""The rows of the two watched logs: what the channel brought for me, and what I sent."""

_SCALARS = (
    "next_seq", "next_message", "stamp", "epoch", "places", "frozen", "preacknowledged_count", "acknowledged_count",
    "holds_last", "owes", "news", "moved", "status_timer", "status_paid", "hearsay_timer", "patience", "done",
    "reply_said", "done_said", "answered", "asked", "aborted",
)  # fmt: skip
_VECTORS = (
    "next_seq_to", "expected", "expected_to_me", "stamps", "free", "epoch_seen", "unsaid", "unanswered", "replies",
)  # fmt: skip
_scalars, _vectors = attrgetter(*_SCALARS), attrgetter(*_VECTORS)


class StState:
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.CHANNEL
    needs: ClassVar[Channel] = Channel.ONE
    has_views: ClassVar[bool] = False

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._nodes, self._my_bit, self._everybody = nodes, 1 << me, everybody(nodes)
        self._prompt = max(1, config.window // 2)  # packets of one source that may go unsaid

        # Sending.
        self.next_seq = first[me]  # TSEQ
        self.next_seq_to = [first[me]] * nodes  # PSEQ_j
        self.next_message = 0
        self.waiting: deque[Submit] = deque()  # submitted, but the window is closed

        # Receiving, by source; my own packets count when the channel brings them back.
        self.expected = list(first)  # TREQ_j
        self.expected_to_me = list(first)  # PREQ_j

        # What each node said last, in a unit that was accepted here. Unlike in SPO my own column of AL is no
        # exception: it is what my own last echo said, for the echo has a place on the channel (Lemma A).
        self.stamps = [0] * nodes
        self.free = [config.quota * nodes] * nodes  # BUF_j
        accepted_below: list[Sequence[int]] = [first] * nodes  # AL: accepted_below[node][source]
        preacknowledged_below: list[Sequence[int]] = [first] * nodes  # PAL: likewise
        preacknowledged_below[me] = (UNBOUNDED,) * nodes  # what has come so far I have pre-acknowledged
        self.accepted = WatchedLogs(2, accepted_below, by_all=self._everybody)  # RRL; and SL
        self.preacknowledged = WatchedLogs(2, preacknowledged_below)  # PRL; and what I sent to others only
        self.unpreacknowledged: list[deque[int]] = [deque() for _ in range(nodes)]  # the seqs in RRL, by source

        # The running epoch: all that the channel brought for me in it, in its order (ARL·PRL·RRL).
        self.epoch = 0
        self.log: list[Packet] = []
        self.preacknowledged_count = 0  # of the log, from the first on
        self.acknowledged_count = 0
        self.holds_last = False  # the last entry came behind a gap and is not accepted
        self.old: deque[tuple[int, Packet]] = deque()  # of finished epochs: epoch and packet
        self.places = 0  # packets for me that are accepted and not delivered
        self.epoch_seen = [0] * nodes  # the highest epoch in which each node was heard

        # Debts and patience.
        self.stamp = 0
        self.owes = False  # somebody waits for my status
        self.news = False  # and I have heard or pre-acknowledged something since I last said it
        self.unsaid = [0] * nodes  # packets accepted of each source since my last transmission
        self.status_timer = self.status_paid = False
        self.hearsay_timer = False
        self.moved = False
        self.patience = 1
        self.unanswered = [0] * nodes

        # Recovery.
        self.frozen = False
        self.removed: set[MessageId] = set()  # go-back-n: thrown away by all, and sent again in the next epoch
        self.once_accepted: set[MessageId] = set()  # those of them that I had accepted
        self.again: deque[Packet] = deque()  # those of them that are mine
        self.replies: list[ResetReply | None] = [None] * nodes
        self.order: list[MessageId] | None = None  # agreed, once all replies are here
        self.contents: dict[MessageId, Packet] = {}  # came while frozen: a body, but no place
        self.missing: set[MessageId] = set()
        self.asked = 0  # how many were missing when the order was agreed on
        self.done = 0  # the nodes that lack nothing, one bit each
        self.future: list[Unit] = []  # of the next epoch
        self.reply_said = self.done_said = self.answered = False  # since the last reset timer
        self.resent: set[int] = set()
        self.unhelped: dict[int, ResetNeed] = {}  # by source, what others asked for in vain; answered in a while
        self.aborted = False

    def next_numbers(self) -> tuple[int, tuple[int, ...]]:
        """The seq and seq_to of what I send next: what must be sent again comes first."""
        if self.again:
            return self.again[0].seq, self.again[0].seq_to
        return self.next_seq, tuple(self.next_seq_to)

    def unfinished(self) -> bool:
        """Whether I wait for anything that others can tell me."""
        return bool(
            self.waiting
            or self.again
            or self.old
            or self.accepted.rows[LOG]
            or self.accepted.rows[OWN]
            or self.preacknowledged.rows[LOG]
            or self.preacknowledged.rows[OWN]
        )

    def heard_of_more(self) -> bool:
        """4.1: others have accepted of some source what I have not, be it for me or not."""
        columns = self.accepted.columns
        return any(
            column[source] > expected
            for source, expected in enumerate(self.expected)
            for node, column in enumerate(columns)
            if node != source
        )

    def blockers(self) -> int:
        """Everybody that I wait for."""
        if self.frozen:
            replied = sum(1 << node for node, reply in enumerate(self.replies) if reply is not None)
            sources = sum({1 << source for source, _ in self.missing})
            return (self._everybody & ~(replied & self.done) | sources) & ~self._my_bit
        mask = 0
        for row in (LOG, OWN):
            mask |= self.accepted.blockers(row) | self.preacknowledged.blockers(row)
        if self.old:
            mask |= sum(1 << node for node, seen in enumerate(self.epoch_seen) if seen <= self.old[0][0])
        return mask & ~self._my_bit

    def held(self) -> int:
        """Packets that take a place: those not delivered yet, wherever they are."""
        return self.places + len(self.contents) + len(self.future)

    # --- looking at it from outside ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        return (
            _scalars(self),
            tuple(map(tuple, _vectors(self))),
            tuple(map(tuple, self.accepted.rows)),
            tuple(map(tuple, self.preacknowledged.rows)),
            tuple(map(tuple, self.accepted.columns)),
            tuple(map(tuple, self.preacknowledged.columns)),
            tuple(map(tuple, self.unpreacknowledged)),
            tuple(self.waiting),
            tuple(self.log),
            tuple(self.old),
            None if self.order is None else tuple(self.order),
            tuple(sorted(self.contents.items())),
            tuple(sorted(self.missing)),
            tuple(self.future),
            tuple(sorted(self.resent)),
            tuple(self.unhelped.items()),
            tuple(sorted(self.removed)),
            tuple(sorted(self.once_accepted)),
            tuple(self.again),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, vectors, accepted, preacknowledged, accepted_below, preacknowledged_below, *rest = parts
        for name, value in zip(_SCALARS, scalars, strict=True):
            setattr(self, name, value)
        for name, values in zip(_VECTORS, vectors, strict=True):
            setattr(self, name, list(values))
        self.accepted.refill(accepted, accepted_below)
        self.preacknowledged.refill(preacknowledged, preacknowledged_below)
        unpreacknowledged, waiting, log, old, order, contents, missing, future, *rest = rest
        self.unpreacknowledged = [deque(seqs) for seqs in unpreacknowledged]
        self.waiting, self.log, self.old = deque(waiting), list(log), deque(old)
        self.order = None if order is None else list(order)
        self.contents, self.missing, self.future = dict(contents), set(missing), list(future)
        resent, needs, removed, once_accepted, again = rest
        self.unhelped = dict(needs)
        self.resent, self.removed, self.once_accepted, self.again = (
            set(resent),
            set(removed),
            set(once_accepted),
            deque(again),
        )

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.accepted.rows[OWN]),
            held=len(self.contents) + len(self.future) + self.holds_last,
            accepted=len(self.accepted.rows[LOG]),
            preacknowledged=len(self.preacknowledged.rows[LOG]) + len(self.old),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words."""
        sizes, lines = self.log_sizes(), []
        if sizes.waiting:
            lines.append(f"{sizes.waiting} submissions wait for the window")
        if self.again:
            lines.append(f"{len(self.again)} packets wait to be sent again")
        if self.frozen:
            silent = self._everybody & ~sum(1 << node for node, reply in enumerate(self.replies) if reply is not None)
            lines.append(f"epoch {self.epoch} is being agreed on")
            if silent:
                lines.append(f"the replies of {names_of(silent)} are missing")
            lines += [f"the packet {seq} of {name_of(source)} is missing" for source, seq in sorted(self.missing)]
            lines.append(f"{names_of(self._everybody & ~self.done)} may still lack something")
        for row, what in ((LOG, "packets heard"), (OWN, "packets sent")):
            for logs, verb in ((self.accepted, "accepted"), (self.preacknowledged, "pre-acknowledged")):
                if logs.rows[row] and not self.frozen:
                    who = names_of(logs.blockers(row))
                    lines.append(f"{len(logs.rows[row])} {what} wait to be known as {verb} by {who}")
        if self.old:
            late = names_of(sum(1 << node for node, seen in enumerate(self.epoch_seen) if seen <= self.old[0][0]))
            lines.append(f"{len(self.old)} packets of finished epochs wait until {late} is known to have finished")
        return tuple(lines)
