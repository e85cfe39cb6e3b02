"""The logs of one run, as the papers define them, built from the events of a trace.

A sending log (SL) contains what a node sent, a receipt log (RL) what was delivered to its application, both in the
order of that node's events. Of the levels only the first time that a node reached each is kept: if that was not too
early, no later one was.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from ordercast.audit.disk_rows import ABOUT_LOGS, DiskLogs, DiskRow, disk_logs
from ordercast.audit.epoch_rows import EpochRows
from ordercast.audit.view_epochs import End, Epochs, ViewRow
from ordercast.audit.violations import Message, message_name
from ordercast.model.errors import TraceError
from ordercast.model.nodes import everybody, mask_of, name_of
from ordercast.model.services import Service
from ordercast.trace.reader import EventColumns
from ordercast.trace.schema import DESTINATIONS, DETAIL, EVENT, NODE, PRIORITY, SEQ, SOURCE, STEP, TIME, EventKind
from ordercast.trace.view_rows import BY_VIEW, heard_in

COLUMNS = (NODE, STEP, TIME, EVENT, SOURCE, SEQ, DESTINATIONS, PRIORITY)
"""The columns of `events` that every audit reads."""
ALL_COLUMNS = (*COLUMNS, DETAIL)
"""The columns that an audit reads of runs whose members may join: `detail` is needed for their views alone."""
KINDS = frozenset(
    {
        EventKind.SEND,
        EventKind.RECEIVE,
        EventKind.ACCEPT,
        EventKind.PREACK,
        EventKind.ACK,
        EventKind.DELIVER,
        EventKind.CRASH,
        EventKind.ABORT,
        EventKind.VIEW,
        EventKind.LEAVE,
        EventKind.EXCLUDE,
        EventKind.STATE,
        EventKind.RENUMBER,
        EventKind.TRANSMIT,
        *ABOUT_LOGS,
    }
)
"""The kinds of events that an audit reads."""
LEVELS = (EventKind.ACCEPT, EventKind.PREACK, EventKind.ACK)

_TIMED = tuple(kind.value for kind in (EventKind.RECEIVE, *LEVELS, EventKind.DELIVER))
_SEND, _DELIVER = EventKind.SEND.value, EventKind.DELIVER.value  # plain strings: compared for millions of rows
_TRANSMIT = EventKind.TRANSMIT.value
MARKER = "marker"
"""The detail of a `transmit` row that ends a priority run."""


class Moment(NamedTuple):
    """When an event happened at a node."""

    step: int
    """Orders the events of one node."""
    time: int
    """Compares events of different nodes."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as its source sent it."""

    message: Message
    place: int
    """Its position in the source's sending log."""
    destinations: int
    """DST, one bit for each node."""
    priority: int
    moment: Moment


@dataclass(frozen=True)
class RunLogs:
    """All logs of one run. Lists are by node; a message's name is (source, seq)."""

    run: str
    nodes: int
    sent: Mapping[Message, Sent]
    """SL of all nodes: source by source, each in sending order."""
    delivered: tuple[tuple[Message, ...], ...]
    """RL of each node."""
    first: Mapping[str, tuple[Mapping[Message, Moment], ...]]
    """For each kind of event but `send`: when it first happened to each message at each node, in the node's order."""
    stopped: frozenset[int] = frozenset()
    """Nodes that crashed, aborted the group, or were excluded from a view."""
    aborted_at: Mapping[int, Moment] = field(default_factory=dict)
    """When nodes aborted the group."""
    crashed_at: Mapping[int, int] = field(default_factory=dict)
    """By node that crashed: its step."""
    numbered_twice: tuple[Message, ...] = ()
    """Names that a source gave to more than one message."""
    views: tuple[tuple[tuple[Moment, int], ...], ...] = ()
    """By node: when it installed each view, and the members from then on, one bit each."""
    uniform: bool = False
    """True if the run promises uniform delivery: what a stopped node delivered, all that go on deliver."""
    delivers_stable: bool = False
    """True if the run delivers what is pre-acknowledged, and does not wait until it is acknowledged."""
    unrecorded: int = 0
    """Nodes without a complete record, one bit each; see `records`."""
    priorities_known: bool = True
    """True if the send of every message was recorded, and so its priority."""
    epochs: Epochs | None = None
    """Of a run whose members may join: what each node delivered in each view. None: no view has a number."""
    service: Service | None = None
    """What the run is audited by; known where views have numbers."""
    resilience: int = 0
    """Of a sequencer: how many others have a message when it is delivered anywhere."""
    ended: bool = True
    """False if the run was cut off: what its members had not delivered in the latest view is then no violation."""

    transmissions: bool = False
    """True if the trace records what was put on the channel."""
    markers: tuple[tuple[int, Moment], ...] = ()
    """The nodes that sent markers, which end priority runs, and when."""
    named: Mapping[Message, int] = field(default_factory=dict)
    """In a broadcast, of messages whose `send` names some nodes only: these, one bit each."""
    disks: DiskLogs = DiskLogs()  # noqa: RUF009 (frozen)
    """What is on the disks of nodes with durable logs."""

    @cached_property
    def first_places(self) -> tuple[Mapping[Message, int], ...]:
        """By node: the first position of each message in its log."""
        return tuple({message: place for place, message in reversed([*enumerate(log)])} for log in self.delivered)

    def has_levels(self) -> bool:
        """True if the trace records the levels of knowledge."""
        return any(moments for level in LEVELS for moments in self.first[level])

    def installed(self) -> dict[int, list[int]]:
        """By node that installed any: the members of its views, one bit each, in its order."""
        return {node: [mask for _, mask in mine] for node, mine in enumerate(self.views) if mine}

    def members_at(self, node: int, moment: Moment) -> int:
        """The members of a node's view at one of its moments."""
        mask = everybody(self.nodes)
        if self.views:
            for installed, remaining in self.views[node]:
                if installed.step < moment.step:
                    mask = remaining
        return mask

    def addressed_to_everybody(self) -> "RunLogs":
        """The same run as a broadcast: every message is addressed to every node."""
        mask = everybody(self.nodes)
        widened = {
            name: sent if sent.destinations == mask else replace(sent, destinations=mask)
            for name, sent in self.sent.items()
        }
        # Who joined may have been sent a message again, and a record that ends early may lack that.
        certain = ~self.unrecorded if self.epochs is not None else -1
        named = {
            name: sent.destinations
            for name, sent in self.sent.items()
            if sent.destinations != mask and certain >> name[0] & 1
        }
        return replace(self, sent=widened, named=named)


def logs_of(run: str, nodes: int, parts: Iterable[EventColumns]) -> RunLogs:
    """Builds the logs from the events of one run, in any order."""
    collected = _Collected(run, nodes)
    for part in parts:
        details = part.get(DETAIL) or [None] * len(part[NODE])
        for row in zip(*(part[column] for column in COLUMNS), details, strict=True):
            collected.add(*row)
    return collected.logs()


class _Collected:
    """The rows of a run, by kind."""

    def __init__(self, run: str, nodes: int) -> None:
        self.run = run
        self.nodes = nodes
        self.names: dict[Message, Message] = {}
        self.sends: list[list[tuple[Moment, Message, int, int]]] = [[] for _ in range(nodes)]
        self.deliveries: list[list[tuple[int, Message]]] = [[] for _ in range(nodes)]
        self.first: dict[str, list[dict[Message, Moment]]] = {kind: [{} for _ in range(nodes)] for kind in _TIMED}
        self.stopped: set[int] = set()
        self.aborted_at: dict[int, Moment] = {}
        self.crashed_at: dict[int, int] = {}
        self.views: list[list[tuple[Moment, int]]] = [[] for _ in range(nodes)]
        self.epoch_rows = EpochRows(nodes)
        self.disk_rows: dict[int, list[DiskRow]] = {}
        self.sent_again: dict[Message, int] = {}  # in a later view: who is addressed then
        self.transmissions = False
        self.markers: list[tuple[int, Moment]] = []

    def add(self, node: int, step: int, time: int, kind: str, *about: Any) -> None:
        source, seq, destinations, priority, detail = about
        if not 0 <= node < self.nodes:
            raise self._error(f"an event happened at node {node}, but the nodes are 0 to {self.nodes - 1}")
        if kind in ABOUT_LOGS:
            self.disk_rows.setdefault(node, []).append(DiskRow(step, kind, source, seq))
            return
        if kind == _TRANSMIT:
            self.transmissions = True
            if detail == MARKER:
                self.markers.append((node, Moment(step, time)))
            return
        if kind not in self.first and kind != _SEND:
            self._add_membership(node, Moment(step, time), kind, source, seq, destinations, detail)
            return
        if source is None or seq is None:
            raise self._error(f"step {step} of {name_of(node)}, of the kind {kind}, has no source or no seq")
        name = (source, seq)
        message = self.names.setdefault(name, name)  # one object for each message: saves memory
        if kind == _SEND:
            self._add_send(node, Moment(step, time), message, destinations, priority)
            return
        if kind == _DELIVER:
            self.deliveries[node].append((step, message))
        moments = self.first[kind][node]
        known = moments.get(message)
        if known is None or step < known.step:
            moments[message] = Moment(step, time)
        if detail == BY_VIEW:
            self.epoch_rows.by_view.add((kind, node, message))

    def _add_membership(self, node: int, moment: Moment, kind: str, *about: Any) -> None:
        source, seq, destinations, detail = about
        if kind in {EventKind.CRASH, EventKind.ABORT}:
            self.stopped.add(node)
        if kind == EventKind.ABORT:
            self.aborted_at[node] = moment
        if kind == EventKind.CRASH:
            self.crashed_at[node] = min(moment.step, self.crashed_at.get(node, moment.step))
        if kind == EventKind.VIEW and (destinations is not None or seq is not None):
            self.views[node].append((moment, self._mask(f"a view of {name_of(node)} is of", destinations)))
            if seq is None:
                self.stopped.update(set(range(self.nodes)) - set(destinations))
            else:
                self.epoch_rows.views[node].append(ViewRow(*moment, seq, tuple(destinations), heard_in(detail)))
        if kind in {EventKind.LEAVE, EventKind.EXCLUDE}:
            self.epoch_rows.ends[node].append(End(*moment, EventKind(kind), seq, detail))
        if kind == EventKind.RENUMBER and destinations is not None and None not in {source, seq}:
            mask = self._mask(f"{message_name((source, seq))} is sent again to", destinations)
            self.sent_again[source, seq] = self.sent_again.get((source, seq), 0) | mask
        if kind == EventKind.STATE:
            self.epoch_rows.states.append((node, moment.step, source, seq))

    def logs(self) -> RunLogs:
        self._require_distinct_steps()
        sent, twice = self._sent()
        epochs = self._epochs()
        stopped = self.stopped if epochs is None else self.stopped | epochs.stopped()
        return RunLogs(
            run=self.run,
            nodes=self.nodes,
            sent=sent,
            delivered=tuple(tuple(message for _, message in sorted(rows)) for rows in self.deliveries),
            first={kind: tuple(_by_step(moments) for moments in lists) for kind, lists in self.first.items()},
            stopped=frozenset(stopped),
            aborted_at=self.aborted_at,
            crashed_at=self.crashed_at,
            numbered_twice=twice,
            views=tuple(tuple(sorted(views)) for views in self.views) if any(self.views) else (),
            epochs=epochs,
            transmissions=self.transmissions,
            markers=tuple(self.markers),
            disks=disk_logs(self.disk_rows),
        )

    def _epochs(self) -> Epochs | None:
        """None unless views have numbers."""
        if not self.epoch_rows.has_views():
            return None
        if self.epoch_rows.count() < sum(len(rows) for rows in self.views):
            raise self._error("some of its views have numbers, and some have none")
        for node, step, source, seq in self.epoch_rows.states:
            if source is None or seq is None:
                raise self._error(f"step {step} of {name_of(node)}, of the kind state, has no source or no seq")
        return self.epoch_rows.epochs(
            [sorted(rows) for rows in self.deliveries],
            [
                [
                    *((moment.step, _SEND, message) for moment, message, *_ in self.sends[node]),
                    *((at.step, kind.value, what) for kind in LEVELS for what, at in self.first[kind][node].items()),
                ]
                for node in range(self.nodes)
            ],
        )

    def _add_send(
        self, node: int, moment: Moment, message: Message, destinations: list[int] | None, priority: int | None
    ) -> None:
        name = message_name(message)
        if message[0] != node:
            raise self._error(f"{name} was sent at {name_of(node)}; a message is sent at its source")
        mask = self._mask(f"{name} is addressed to", destinations)
        self.sends[node].append((moment, message, mask, priority or 0))

    def _mask(self, what: str, named: Sequence[int | None] | None) -> int:
        nodes = [node for node in named or () if node is not None and 0 <= node < self.nodes]
        if named is None or len(nodes) < len(named):
            raise self._error(f"{what} {named}; destinations are some of 0 to {self.nodes - 1}")
        return mask_of(nodes)

    def _sent(self) -> tuple[dict[Message, Sent], tuple[Message, ...]]:
        sent: dict[Message, Sent] = {}
        twice: list[Message] = []
        for rows in self.sends:
            for place, (moment, message, destinations, priority) in enumerate(sorted(rows)):
                if message in sent:
                    twice.append(message)
                else:
                    to = destinations | self.sent_again.get(message, 0)
                    sent[message] = Sent(message, place, to, priority, moment)
        return sent, tuple(twice)

    def _require_distinct_steps(self) -> None:
        """Two events of a node at one step: most likely the same run was passed twice."""
        for node in range(self.nodes):
            steps = [step for step, _ in self.deliveries[node]] + [moment.step for moment, *_ in self.sends[node]]
            if len(set(steps)) < len(steps):
                [(step, _)] = Counter(steps).most_common(1)
                raise self._error(
                    f"two events of {name_of(node)} have the step {step}; "
                    "each node is recorded once, so give no two folders that hold the same node of the same run"
                )

    def _error(self, sentence: str) -> TraceError:
        return TraceError(f"the trace of run {self.run} contradicts itself: {sentence}")


def _by_step(moments: dict[Message, Moment]) -> Mapping[Message, Moment]:
    found = list(moments.values())
    if found == sorted(found):  # the usual order of a trace
        return moments
    return dict(sorted(moments.items(), key=itemgetter(1)))
