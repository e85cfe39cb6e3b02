"""The variables of SPO at one node, under their own names and with the papers' symbols beside them.

What they mean, how they are looked at, taken and put back; what changes them are the rules in `spo`.
"""

from collections import deque
from collections.abc import Sequence
from operator import attrgetter, lt
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Echo, LogSizes, Submit
from ordercast.model.nodes import everybody, name_of, names_of
from ordercast.model.runs import Channel
from ordercast.model.state import Snapshot
from ordercast.model.units import Packet
from ordercast.protocols.shared.gaps import missing_ranges
from ordercast.protocols.shared.sending_log import SendingLog
from ordercast.protocols.shared.watched_logs import UNBOUNDED, WatchedLogs
from ordercast.protocols.spo.units import Status

Missing = tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
"""By source, ranges [start, stop) of numbers."""

# The state, apart from the logs. What the watched logs remember of their tops follows from the rest.
_SCALARS = (
    "next_seq", "next_message", "stamp", "receipts", "owes", "said_free", "status_timer", "status_paid", "poll_timer",
    "stood", "poll_patience", "hearsay_timer", "cooling", "new_gap", "repeat_timer", "repaired", "repeat_patience",
    "aborted",
)  # fmt: skip
_VECTORS = (
    "next_seq_to", "expected", "expected_to_me", "seen", "seen_to_me", "stamps", "free", "places", "unsaid",
    "unanswered", "requested_below",
)  # fmt: skip
_scalars, _vectors = attrgetter(*_SCALARS), attrgetter(*_VECTORS)


class SpoState:
    """What a node knows."""

    echo: ClassVar[Echo] = Echo.NONE
    needs: ClassVar[Channel] = Channel.MANY
    has_views: ClassVar[bool] = False

    def __init__(self, me: int, config: GroupConfig) -> None:
        nodes, first = config.nodes, config.first_seqs()
        self.me, self.config = me, config
        self._nodes, self._my_bit, self._everybody = nodes, 1 << me, everybody(nodes)
        self._prompt = max(1, config.window // 2)  # packets of one source that may go unsaid
        self._opened = False  # something in this transition may have opened the window

        # Sending.
        self.next_seq = first[me]  # TSEQ
        self.next_seq_to = [first[me]] * nodes  # PSEQ_j
        self.next_message = 0
        self.waiting: deque[Submit] = deque()  # submitted, but the window is closed
        self.sent = SendingLog(me, nodes)  # SL

        # Receiving, by source. Always expected_to_me <= seen_to_me and expected <= seen.
        self.expected = list(first)  # TREQ_j: all for me below this is accepted
        self.expected_to_me = list(first)  # PREQ_j
        self.seen = list(first)  # the next seq after the highest number seen
        self.seen_to_me = list(first)  # my number that goes with it
        self.held: list[dict[int, Packet]] = [{} for _ in range(nodes)]  # ahead of a gap, by my number

        # What each node said last. My own columns are always up to date: `expected` itself, and in the log of what
        # I have pre-acknowledged, everything.
        self.stamps = [0] * nodes
        self.free = [config.quota] * nodes  # F_j
        accepted_below: list[Sequence[int]] = [first] * nodes  # AL: accepted_below[node][source]
        accepted_below[me] = self.expected
        preacknowledged_below: list[Sequence[int]] = [first] * nodes  # PAL: likewise
        preacknowledged_below[me] = (UNBOUNDED,) * nodes
        # The ladder. A row a source; what I sent and am no destination of has a row of its own behind them.
        self.accepted = WatchedLogs(nodes, accepted_below)  # RPL_j
        self.preacknowledged = WatchedLogs(nodes + 1, preacknowledged_below)  # PPL_j
        self.places = [0] * nodes  # taken by each source in the two logs
        self.receipts = 0  # packets in the row behind them

        # Debts: what I know and have not said.
        self.stamp = 0  # counts my transmissions
        self.owes = False
        self.unsaid = [0] * nodes  # packets accepted of each source since my last transmission
        self.said_free = config.quota
        self.status_timer = self.status_paid = False

        # Patience: what I wait for.
        self.poll_timer = False
        self.stood: tuple[int, ...] = ()  # what stood first in each log when I last looked
        self.poll_patience = 1
        self.unanswered = [0] * nodes  # polls in a row
        self.hearsay_timer = False

        # Requests and repairs.
        self.requested_below = list(first)  # of what each source sent to me
        self.cooling = self.new_gap = False
        self.repeat_timer = self.repaired = False
        self.repeat_patience = 1
        self.guarded: set[int] = set()  # own numbers of which a copy was just sent
        self.aborted = False

    def missing(self, since: Sequence[int]) -> Missing:
        """By source, the ranges of my numbers that are missing; not where I would have to refuse them."""
        found = []
        for source, high in enumerate(self.seen_to_me):
            low = max(self.expected_to_me[source], since[source])
            if low < high and self.places[source] < self.config.quota:
                ranges = missing_ranges(low, high, self.held[source])
                if ranges:
                    found.append((source, ranges))
        return tuple(found)

    def unfinished(self) -> bool:
        """Whether anything that I sent or accepted has not come to its end."""
        return not self.aborted and (len(self.sent) > 0 or self.receipts > 0 or any(self.places))

    def unseen(self, node: int) -> int:
        """Failure condition (2): the sources of which a node has accepted what I have never seen.

        A source's own word does not count: it comes with the unit itself, which may be in hand.
        """
        mask, column = 0, self.accepted.columns[node]
        for source, seen in enumerate(self.seen):
            if column[source] > seen and source != node:
                mask |= 1 << source
        return mask & ~self._my_bit

    def takes_back(self, node: int, status: Status) -> bool:
        """Whether a node says less than it said before. Nobody does who is honest, and the logs rest on that."""
        accepted, preacknowledged = self.accepted.columns[node], self.preacknowledged.columns[node]
        return True in map(lt, status.expects, accepted) or True in map(
            lt, status.preacknowledged_below, preacknowledged
        )  # asked of every unit: `in` takes half as long as `any`

    def tops(self) -> tuple[int, ...]:
        """What stands first in each log: in what I accepted, in what I pre-acknowledged, and in what I sent to each."""
        logs = (*self.accepted.rows, *self.preacknowledged.rows, *self.sent.by_destination)
        return tuple([log[0].seq if log else -1 for log in logs])

    def blockers(self, stood: Sequence[bool]) -> int:
        """Everybody that one of the logs waits for which `stood` says to count; they are in the order of `tops`."""
        waited = [*map(self.accepted.blockers, range(self._nodes))]
        waited += map(self.preacknowledged.blockers, range(self._nodes + 1))
        waited += [1 << node if log else 0 for node, log in enumerate(self.sent.by_destination)]
        mask = 0
        for counts, nodes in zip(stood, waited, strict=True):
            if counts:
                mask |= nodes
        return mask & ~self._my_bit

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        me, accepted, preacknowledged = self.me, self.accepted, self.preacknowledged
        return (
            _scalars(self),
            tuple(map(tuple, _vectors(self))),
            tuple(map(tuple, accepted.rows)),
            tuple(map(tuple, preacknowledged.rows)),
            tuple(accepted.columns[:me] + accepted.columns[me + 1 :]),
            tuple(preacknowledged.columns[:me] + preacknowledged.columns[me + 1 :]),
            self.sent.snapshot(),
            tuple(self.waiting),
            tuple([tuple(sorted(held.items())) for held in self.held]) if any(self.held) else (),
            tuple(sorted(self.guarded)),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        parts: tuple[Any, ...] = snapshot
        scalars, vectors, accepted, preacknowledged, accepted_below, preacknowledged_below, *rest = parts
        for name, value in zip(_SCALARS, scalars, strict=True):
            setattr(self, name, value)
        for name, values in zip(_VECTORS, vectors, strict=True):
            getattr(self, name)[:] = values  # in place: `expected` is a column too
        me, everything = self.me, (UNBOUNDED,) * self._nodes
        self.accepted.refill(accepted, [*accepted_below[:me], self.expected, *accepted_below[me:]])
        self.preacknowledged.refill(
            preacknowledged, [*preacknowledged_below[:me], everything, *preacknowledged_below[me:]]
        )
        sent, waiting, held, guarded = rest
        self.sent.restore(sent)
        self.waiting = deque(waiting)
        self.held = [dict(items) for items in held] or [{} for _ in range(self._nodes)]
        self.guarded = set(guarded)

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        return LogSizes(
            waiting=len(self.waiting),
            sent=len(self.sent),
            held=sum(map(len, self.held)),
            accepted=sum(map(len, self.accepted.rows)),
            preacknowledged=sum(map(len, self.preacknowledged.rows)),
        )

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words."""
        sizes, lines = self.log_sizes(), []
        if sizes.waiting:
            lines.append(f"{sizes.waiting} submissions wait for the window")
        if blockers := self.sent.blockers():
            lines.append(f"{sizes.sent} packets sent are not known to be accepted by {names_of(blockers)}")
        for source, ranges in self.missing(self.expected_to_me):
            lines.append(
                f"of {name_of(source)}, numbers {', '.join(f'{a}–{b - 1}' for a, b in ranges)} to me are missing"
            )
        for count, logs, verb in (
            (sizes.accepted, self.accepted, "accepted"),
            (sizes.preacknowledged, self.preacknowledged, "pre-acknowledged"),
        ):
            blockers = 0
            for row in range(len(logs.rows)):
                blockers |= logs.blockers(row)
            if blockers:
                lines.append(f"{count} packets wait to be known as {verb} by {names_of(blockers)}")
        return tuple(lines)
