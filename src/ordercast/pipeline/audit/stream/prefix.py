"""Audits a prefix of a run while the run grows: which properties its events so far violate already.

In a prefix can be checked whether each sender's order is kept, whether a message was delivered twice, to a node that is
no destination, before it was sent or after a crash, whether orders disagree, what levels say (`level_rows`), and
whether urgent messages went first (`urgent_first`). Missing messages may still come, and unknown ones may be in a
record that comes later. So completeness, and priority runs where there is no one order, are checked by an audit of the
complete trace.

What all destinations have, or can only get too late, is retired: see `retirement`. So memory holds what is in flight.
What a node lacks for good is remembered by itself (`missing`), and a delivery that comes after all is told as a
violation. A node that is so far behind that too much would be kept is not waited for any more: what it has is left to
the audit of the complete trace. A sequencer's order is checked in a prefix only if it promises to be uniform, since
otherwise a node that stops later may differ.

If members join, views are checked as far as they have come: all that a node delivered in a view is known when it has
installed the next one. Whether everything was kept, and whether states were complete, is left to the audit of the
complete trace.
"""

from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.completeness import complete
from ordercast.audit.logs import ALL_COLUMNS, LEVELS, RunLogs, logs_of
from ordercast.audit.membership import primary, same_views
from ordercast.audit.priorities import same_runs, sender_order_kept_by_priority
from ordercast.audit.services import LEVEL_SOUNDNESS, PROMISES, Property, promised
from ordercast.audit.shrinking_views import disagreements, minorities
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.verdict import MOST_WITNESSES
from ordercast.audit.violations import Violation, message_name
from ordercast.audit.virtual_synchrony import acknowledged_stays, kept, one_epoch, state_complete
from ordercast.model.errors import TraceError
from ordercast.model.nodes import members, name_of
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.checks import passes
from ordercast.pipeline.audit.kernel.columns import (
    Flags,
    NotVectorisableError,
    Numbers,
    RunColumns,
    columns_of,
    numbers,
)
from ordercast.pipeline.audit.run import as_lists
from ordercast.pipeline.audit.stream.deliveries import delivered, due, known_deliveries, with_known_deliveries
from ordercast.pipeline.audit.stream.kept_rows import (
    CARRIED,
    as_stream,
    from_stream,
    is_addressed,
    is_sent,
    members_join,
)
from ordercast.pipeline.audit.stream.level_rows import are_levels, wrong_levels
from ordercast.pipeline.audit.stream.missing import MOST_MISSING, Missing, lags, slowest_node, too_late
from ordercast.pipeline.audit.stream.retirement import Retirement, retired_in_views, retirement
from ordercast.pipeline.audit.stream.urgent_first import UrgentFirst
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, SEQ, SOURCE, STEP, TIME, EventKind

_LEAST = int(np.iinfo(np.int64).min)
MOST_CARRIED = 500_000
"""Events: with more the slowest node is not waited for any more."""
_OF_MESSAGES = (EventKind.SEND, EventKind.DELIVER)
_OF_NODES = (EventKind.CRASH, EventKind.ABORT, EventKind.VIEW, EventKind.LEAVE, EventKind.EXCLUDE, EventKind.STATE)
_OF_SOURCES = (*_OF_MESSAGES, EventKind.RENUMBER)
_CHECKED = [*_OF_SOURCES, *_OF_NODES, *LEVELS]
_NOT_IN_PREFIXES: tuple[Property, ...] = (
    *LEVEL_SOUNDNESS,
    *(same_runs, priority_order_kept, kept, state_complete, acknowledged_stays),
)


class Prefix(msgspec.Struct):
    """The state of a growing run."""

    run: str
    nodes: int = 0
    retired: dict[int, int] = {}
    """By source: all messages with lower sequence numbers are retired."""
    steps: dict[int, int] = {}
    """By node: its last step."""
    events: bytes = b""
    """The events of all other messages, as an Arrow stream."""
    joining: bool = False
    """True if members join."""
    outside: list[int] = []
    """Nodes that gave up, or are not in the latest view: they may still record what others have retired."""
    kept: list[tuple[int, int]] = []
    """Messages with lower numbers than the retired ones of their source that are not retired."""
    missing: list[Missing] = []
    """What nodes lack of the retired messages."""
    forgetful: list[int] = []
    """Nodes that lack more than is remembered."""
    behind: list[int] = []
    """Nodes that are not waited for any more."""
    messages: int = 0
    """How many were sent so far."""
    waiting: dict[int, tuple[int, int, int]] = {}
    """By node: the first message that it lacks of those that are kept, and how many had been sent when it was seen."""
    levels: bytes = b""
    """Rows of levels of all other messages, as an Arrow stream."""
    latest: dict[int, dict[int, int]] = {}
    """By source and priority, where senders' order is kept by priority: the last number that was retired."""
    urgent_first: UrgentFirst = msgspec.field(default_factory=UrgentFirst)
    """How far it was judged whether urgent messages went first."""
    urgent: bytes = b""
    """Rows that may still be asked about for that, as an Arrow stream."""

    def grow(
        self,
        batch: pa.RecordBatch,
        service: Service,
        *,
        uniform: bool,
        one_clock: bool = True,
        delivers_stable: bool = False,
    ) -> list[Violation]:
        """Adds more events, later at each node than those before; returns the violations that they show.

        `one_clock`: times of different nodes are comparable. `delivers_stable`: as the configuration of the run says.
        """
        whole = batch.select(list(ALL_COLUMNS))
        batch = whole.filter(pc.is_in(whole.column(EVENT), pa.array(_CHECKED, pa.string())))
        if not one_clock:
            times = pa.array(np.zeros(batch.num_rows, np.int64))
            batch = batch.set_column(batch.schema.get_field_index(TIME), TIME, times)
        self._require_later(batch)
        by_urgency = one_clock and priority_order_kept in PROMISES[service]
        overtaking, urgent = self._urgent_first(whole) if by_urgency else ([], CARRIED.empty_table())
        batch, levels = self._split_levels(batch)
        self.messages += pc.sum(pc.equal(batch.column(EVENT), EventKind.SEND.value)).as_py() or 0
        again, batch = self._split_retired(batch)
        table = pa.concat_tables([self.carried(), pa.Table.from_batches([batch]).cast(CARRIED)]).combine_chunks()
        self._widen(table)
        self.joining = self.joining or members_join(table)
        if self.joining:
            found = again + self._check_views(table, service)
        else:
            found = again + self._check(table, _checkable(service, uniform=uniform)) + overtaking
        if not found:
            left = self._retire_in_views(table, service) if self.joining else self._retire(table, service)
            if levels.num_rows:
                gone = self._is_retired(levels)
                found = wrong_levels(self.nodes, table, levels, gone, service, delivers_stable=delivers_stable)
                levels = levels.filter(pa.array(~gone))
            table = left
        self.events = as_stream(table)
        self.levels = as_stream(levels) if levels.num_rows else b""
        urgent = self.urgent_first.still_needed(urgent, self._is_retired)
        self.urgent = as_stream(urgent) if urgent.num_rows else b""
        return found

    def lags(self) -> dict[int, tuple[int, str]]:
        """By node that lacks something: for how many messages it has, and a sentence that says what."""
        return lags(self.missing, self.waiting, self.messages, self.behind)

    def carried(self) -> pa.Table:
        """The events that are kept."""
        return from_stream(self.events)

    def _urgent_first(self, batch: pa.RecordBatch) -> tuple[list[Violation], pa.Table]:
        """What overtook something more urgent, as far as it is certain; and the rows that it was found in."""
        rows = pa.Table.from_batches([batch]).cast(CARRIED)
        self._widen(rows)
        found, rows = self.urgent_first.judge(self.nodes, from_stream(self.urgent), rows)
        return found[:MOST_WITNESSES], rows

    def _split_levels(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Table]:
        """All other rows; and those of levels, with those that are kept, without those that come too late."""
        are = are_levels(batch)
        new = pa.Table.from_batches([batch.filter(are)]).cast(CARRIED)
        new = new.filter(pa.array(~self._is_retired(new)))
        if self.joining:
            return batch.filter(pc.invert(are)), CARRIED.empty_table()
        return batch.filter(pc.invert(are)), pa.concat_tables([from_stream(self.levels), new]).combine_chunks()

    def _is_retired(self, table: pa.Table) -> Flags:
        """By row: whether it is about a message that is retired."""
        source, seq = (
            numbers(table.column(SOURCE).combine_chunks(), -1),
            numbers(table.column(SEQ).combine_chunks(), _LEAST),
        )
        retired: Flags = (seq != _LEAST) & (seq < self._thresholds(source))
        if self.kept:
            kept = {*self.kept}
            for index in np.flatnonzero(retired).tolist():
                retired[index] = (int(source[index]), int(seq[index])) not in kept
        return retired

    def _require_later(self, batch: pa.RecordBatch) -> None:
        """Updates the last step of each node."""
        node, step = (np.asarray(batch.column(name).to_numpy(zero_copy_only=False)) for name in (NODE, STEP))
        for one in np.unique(node).tolist():
            mine = step[node == one]
            last = self.steps.get(one)
            if last is not None and mine.min() <= last:
                raise TraceError(
                    f"run {self.run}: step {mine.min()} of {name_of(one)} came after its step {last}; files "
                    "of a growing trace must appear in the order of steps; audit the trace when it is complete"
                )
            self.steps[one] = int(mine.max())

    def _split_retired(self, batch: pa.RecordBatch) -> tuple[list[Violation], pa.RecordBatch]:
        """Deliveries of retired messages as violations, and all other events."""
        about = np.asarray(pc.is_in(batch.column(EVENT), pa.array(_OF_MESSAGES, pa.string())))
        below = about & self._is_retired(pa.Table.from_batches([batch]))
        if not below.any():
            return [], batch
        late = {(one.node, one.source, one.seq): one for one in self.missing}
        found: list[Violation] = []
        for row in batch.filter(pa.array(below)).to_pylist():
            known = late.pop((row[NODE], row[SOURCE], row[SEQ]), None) if row[EVENT] == EventKind.DELIVER else None
            if known is not None:
                found += [known.too_late] if known.too_late is not None else []
            elif row[NODE] not in {*self.outside, *self.forgetful, *self.behind}:
                found.append(self._again(row))
        self.missing = list(late.values())
        return found, batch.filter(pa.array(~below))

    def _again(self, row: dict[str, Any]) -> Violation:
        message = row[SOURCE], row[SEQ]
        what = "delivered" if row[EVENT] == EventKind.DELIVER else "sent"
        sentence = f"{name_of(row[NODE])} {what} {message_name(message)} again, which every node had delivered"
        if self.joining:
            sentence = f"{name_of(row[NODE])} {what} {message_name(message)} after all members of its view had"
        breaks = one_epoch.__name__ if self.joining else complete.__name__
        return Violation(breaks, sentence, (message,), (row[NODE],))

    def _thresholds(self, source: Numbers) -> Numbers:
        """Of each of some sources: the number below which its messages are retired."""
        table = np.full(max([*self.retired, self.nodes, 0]) + 2, _LEAST)  # the last is that of no source
        for one, number in self.retired.items():
            table[one] = number
        return table[np.where((source >= 0) & (source < table.size), source, table.size - 1)]

    def _widen(self, table: pa.Table) -> None:
        destinations = pc.list_flatten(table.column(DESTINATIONS))
        highest = [pc.max(column).as_py() for column in (table.column(NODE), destinations, table.column(SOURCE))]
        self.nodes = max(self.nodes, *(1 + (value if value is not None else -1) for value in highest))

    def _check(self, table: pa.Table, service: Service) -> list[Violation]:
        """The violations among these events; every node counts as stopped, since it may not have everything yet."""
        wrong_views: list[Violation] = []
        try:
            run = columns_of(self.nodes, table.to_batches())
            wrong_views = self._wrong_views(run)
            if passes(_so_far(run), service, so_far=True):
                return [*self._behind_retired(run, service), *wrong_views]
        except NotVectorisableError:
            pass  # the logs say what is wrong
        batches = table.filter(pa.array(is_sent(table))).to_batches()
        logs = logs_of(self.run, self.nodes, map(as_lists, batches))
        logs = replace(logs, stopped=frozenset(range(self.nodes)))
        if service not in SELECTIVE:
            logs = logs.addressed_to_everybody()
        promises = [promise for promise in PROMISES[service] if promise not in _NOT_IN_PREFIXES]
        found = [violation for promise in promises for violation in islice(promise(logs), MOST_WITNESSES)]
        return [*found, *wrong_views]

    def _behind_retired(self, run: RunColumns, service: Service) -> list[Violation]:
        """Deliveries of messages that were kept, after later ones of their sender and priority had been retired."""
        found: list[Violation] = []
        if sender_order_kept_by_priority not in PROMISES[service] or not self.kept:
            return found
        kept, logs = {*self.kept}, known_deliveries(run)
        for node, index in zip(logs.node.tolist(), logs.message.tolist(), strict=True):
            message = int(run.sends.source[index]), int(run.sends.seq[index])
            last = self.latest.get(message[0], {}).get(int(run.sends.priority[index]), _LEAST)
            if message in kept and message[1] < last:
                sentence = (
                    f"{name_of(node)} delivered {message_name((message[0], last))} before {message_name(message)}, "
                    f"of the same sender and priority {int(run.sends.priority[index])}, which was sent first"
                )
                messages = ((message[0], last), message)
                found.append(Violation(sender_order_kept_by_priority.__name__, sentence, messages, (node,)))
        return found[:MOST_WITNESSES]

    def _wrong_views(self, run: RunColumns) -> list[Violation]:
        """What is wrong with views without numbers, as far as they have come."""
        views = {node: [mask for _, mask in mine] for node, mine in run.views.items()}
        wrong = [
            *((same_views, *found) for found in disagreements(views, run.stopped, ended=False)),
            *((primary, *found) for found in minorities(self.nodes, views)),
        ]
        return [Violation(promise.__name__, sentence, nodes=nodes) for promise, sentence, nodes in wrong]

    def _check_views(self, table: pa.Table, service: Service) -> list[Violation]:
        """The violations among these events of a group whose members join."""
        logs = self._logs(table, service)
        asked = _checkable(service, uniform=False)
        promises = [
            promise for promise in promised(asked, uniform=False, views=True) if promise not in _NOT_IN_PREFIXES
        ]
        return [violation for promise in promises for violation in islice(promise(logs), MOST_WITNESSES)]

    def _logs(self, table: pa.Table, service: Service) -> RunLogs:
        known = is_sent(table) & is_addressed(table) if service in SELECTIVE else is_sent(table)
        batches = table.filter(pa.array(known)).to_batches()
        logs = logs_of(self.run, self.nodes, map(as_lists, batches))
        logs = replace(logs, service=service, ended=False)
        if service in SELECTIVE:
            return logs
        # Who joined may be sent a message again that was sent before, and its delivery may be read before that.
        return replace(logs.addressed_to_everybody(), named={})

    def _retire_in_views(self, table: pa.Table, service: Service) -> pa.Table:
        """What all members of its view have that are still in the group."""
        logs = self._logs(table, service)
        epochs = logs.epochs
        assert epochs is not None
        self.outside = sorted(logs.stopped)
        about_messages = pc.is_in(table.column(EVENT), pa.array(_OF_MESSAGES, pa.string()))
        try:
            run = columns_of(self.nodes, table.filter(about_messages).to_batches())
        except NotVectorisableError:
            return table
        excused = np.zeros_like(run.sends.addressed)
        for index, message in enumerate(zip(run.sends.source.tolist(), run.sends.seq.tolist(), strict=True)):
            number = epochs.view_of.get(message)
            run.sends.addressed[list(members(logs.sent[message].destinations)), index] = True
            if number is not None:
                mask = epochs.members(number)
                excused[:, index] = [not mask >> node & 1 for node in range(self.nodes)]
        if same_runs in PROMISES[service] or not run.sends.seq.size:
            return table
        run = replace(run, stopped=logs.stopped)
        return self._without(table, run, retired_in_views(run, service, excused))

    def _retire(self, table: pa.Table, service: Service) -> pa.Table:
        try:
            run = columns_of(self.nodes, table.to_batches())
        except NotVectorisableError:
            return table
        self.outside = sorted(run.stopped - run.crashed_at.keys())  # nothing is retired for them, and they may go on
        if not run.sends.seq.size:
            return table
        waits_for = np.array([node not in run.stopped and node not in self.behind for node in range(self.nodes)])
        found = retirement(run, service, waits_for)
        if table.num_rows - int(found.retired.sum()) * (1 + int(waits_for.sum())) > MOST_CARRIED:
            slowest = slowest_node(run, service, waits_for)
            if slowest is not None:
                self.behind.append(slowest)
                waits_for[slowest] = False
                found = retirement(run, service, waits_for)
        self._note_waiting(run, found, service)
        self._remember(run, found, service)
        return self._without(table, run, found.retired)

    def _note_waiting(self, run: RunColumns, found: Retirement, service: Service) -> None:
        """The first message that each node lacks of those that stay, in the order of sending."""
        lacking = due(run, service) & ~delivered(run)
        lacking[list(run.stopped)] = False
        lacking[:, found.retired] = False
        lacking[self.behind] = False
        waiting = {node: self.waiting[node] for node in self.behind if node in self.waiting}  # as it was
        for node in np.flatnonzero(lacking.any(axis=1)).tolist():
            (indices,) = np.nonzero(lacking[node])
            index = indices[np.argmin(run.sends.time[indices])]
            source, seq = int(run.sends.source[index]), int(run.sends.seq[index])
            before = self.waiting.get(node)
            waiting[node] = before if before and before[:2] == (source, seq) else (source, seq, self.messages)
        self.waiting = waiting

    def _remember(self, run: RunColumns, found: Retirement, service: Service) -> None:
        """Remembers what nodes lack, as far as there is room."""
        nodes, indices = np.nonzero(found.missing)
        room = MOST_MISSING - len(self.missing)
        for node, index in zip(nodes.tolist()[:room], indices.tolist()[:room], strict=True):
            message = int(run.sends.source[index]), int(run.sends.seq[index])
            self.missing.append(Missing(node, *message, self.messages, too_late(run, service, node, index)))
        self.forgetful = sorted({*self.forgetful, *nodes.tolist()[room:]})

    def _without(self, table: pa.Table, run: RunColumns, retired: Flags) -> pa.Table:
        """The events that are kept."""
        sends = run.sends
        for source in np.unique(sends.source[retired]).tolist():
            chosen = retired & (sends.source == source)
            self.retired[source] = max(self.retired.get(source, _LEAST), int(sends.seq[chosen].max()) + 1)
            last = self.latest.setdefault(source, {})
            for priority in np.unique(sends.priority[chosen]).tolist():
                highest = int(sends.seq[chosen & (sends.priority == priority)].max())
                last[priority] = max(last.get(priority, _LEAST), highest)
        (open_ones,) = np.nonzero(~retired & (sends.seq < self._thresholds(sends.source.astype(np.int64))))
        self.kept = [(int(sends.source[index]), int(sends.seq[index])) for index in open_ones]
        about = np.asarray(pc.is_in(table.column(EVENT).combine_chunks(), pa.array(_OF_SOURCES, pa.string())))
        return table.filter(pa.array(~(about & self._is_retired(table))))


def _so_far(run: RunColumns) -> RunColumns:
    """A run that may go on: every node counts as stopped, and deliveries of messages not seen yet as not made yet."""
    return replace(with_known_deliveries(run), stopped=frozenset(range(run.nodes)), levels_recorded=False)


def _checkable(service: Service, *, uniform: bool) -> Service:
    if service is Service.SEQUENCED:
        return Service.TOTAL if uniform else Service.PARTIAL
    return service
