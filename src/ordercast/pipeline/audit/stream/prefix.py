"""Audits a prefix of a run while the run grows: which properties its events so far violate already.

In a prefix can be checked whether each sender's order is kept, whether a message was delivered twice, to a node that is
no destination, before it was sent or after a crash, and whether orders disagree. Missing messages may still come, and
unknown ones may be in a record that comes later. So completeness, priority runs and levels are checked by an audit of
the complete trace.

Messages that all destinations have, up to a cut point that no node's log crosses, are retired: only the cut point is
kept. So memory holds what is in flight. Priority-based services retire nothing, since low priorities may wait
indefinitely; and a sequencer's order is checked in a prefix only if it promises to be uniform, since otherwise a node
that stops later may differ.

If members join, views are checked as far as they have come: all that a node delivered in a view is known when it has
installed the next one. Whether everything was kept, and whether states were complete, is left to the audit of the
complete trace.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.completeness import complete
from ordercast.audit.logs import ALL_COLUMNS, RunLogs, logs_of
from ordercast.audit.order import no_cycle
from ordercast.audit.priorities import same_runs
from ordercast.audit.services import LEVEL_SOUNDNESS, PROMISES, Property, promised
from ordercast.audit.verdict import MOST_WITNESSES
from ordercast.audit.violations import Violation, message_name
from ordercast.audit.virtual_synchrony import acknowledged_stays, kept, one_epoch, state_complete
from ordercast.model.errors import TraceError
from ordercast.model.nodes import members, name_of
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.checks import passes
from ordercast.pipeline.audit.kernel.columns import (
    UNKNOWN,
    Flags,
    NotVectorisableError,
    Numbers,
    RunColumns,
    columns_of,
)
from ordercast.pipeline.audit.run import as_lists
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.schema import DESTINATIONS, DETAIL, EVENT, NODE, SEQ, SOURCE, STEP, TIME, EventKind

_READ = [EVENTS.field(column) for column in ALL_COLUMNS]
CARRIED = pa.schema(_READ)
"""The columns of the events that are kept."""
_LEAST = int(np.iinfo(np.int64).min)
_OF_MESSAGES = (EventKind.SEND, EventKind.DELIVER)
_OF_NODES = (EventKind.CRASH, EventKind.ABORT, EventKind.VIEW, EventKind.LEAVE, EventKind.EXCLUDE, EventKind.STATE)
_OF_SOURCES = (*_OF_MESSAGES, EventKind.RENUMBER)
_CHECKED = [*_OF_SOURCES, *_OF_NODES]
_NOT_IN_PREFIXES: tuple[Property, ...] = (*LEVEL_SOUNDNESS, same_runs, kept, state_complete, acknowledged_stays)


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

    def grow(
        self, batch: pa.RecordBatch, service: Service, *, uniform: bool, one_clock: bool = True
    ) -> list[Violation]:
        """Adds more events, later at each node than those before; returns the violations that they show.

        `one_clock`: times of different nodes are comparable.
        """
        batch = batch.select(list(ALL_COLUMNS)).filter(pc.is_in(batch.column(EVENT), pa.array(_CHECKED, pa.string())))
        if not one_clock:
            times = pa.array(np.zeros(batch.num_rows, np.int64))
            batch = batch.set_column(batch.schema.get_field_index(TIME), TIME, times)
        self._require_later(batch)
        again, batch = self._split_retired(batch)
        table = pa.concat_tables([self.carried(), pa.Table.from_batches([batch]).cast(CARRIED)]).combine_chunks()
        self._widen(table)
        self.joining = self.joining or _members_join(table)
        if self.joining:
            found = again + self._check_views(table, service)
        else:
            found = again + self._check(table, _checkable(service, uniform=uniform))
        if not found:
            table = self._retire_in_views(table, service) if self.joining else self._retire(table, service)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, CARRIED) as writer:
            writer.write_table(table)
        self.events = sink.getvalue().to_pybytes()
        return found

    def carried(self) -> pa.Table:
        """The events that are kept."""
        if not self.events:
            return CARRIED.empty_table()
        table = pa.ipc.open_stream(self.events).read_all()
        if DETAIL not in table.schema.names:  # the state of an earlier version
            table = table.append_column(CARRIED.field(DETAIL), pa.nulls(table.num_rows, pa.string()))
        return table

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
        below = np.array(
            [
                event in _OF_MESSAGES and None not in {source, seq} and seq < self.retired.get(source, _LEAST)
                for event, source, seq in _messages_of(batch)
            ],
            np.bool_,
        )
        found: list[Violation] = []
        for row in batch.filter(pa.array(below)).to_pylist():
            if row[NODE] in self.outside:
                continue
            message = row[SOURCE], row[SEQ]
            what = "delivered" if row[EVENT] == EventKind.DELIVER else "sent"
            sentence = f"{name_of(row[NODE])} {what} {message_name(message)} again, which every node had delivered"
            if self.joining:
                sentence = f"{name_of(row[NODE])} {what} {message_name(message)} after all members of its view had"
            breaks = one_epoch.__name__ if self.joining else complete.__name__
            found.append(Violation(breaks, sentence, (message,), (row[NODE],)))
        return found, batch.filter(pa.array(~below))

    def _widen(self, table: pa.Table) -> None:
        destinations = pc.list_flatten(table.column(DESTINATIONS))
        highest = [pc.max(column).as_py() for column in (table.column(NODE), destinations, table.column(SOURCE))]
        self.nodes = max(self.nodes, *(1 + (value if value is not None else -1) for value in highest))

    def _check(self, table: pa.Table, service: Service) -> list[Violation]:
        """The violations among these events; every node counts as stopped, since it may not have everything yet."""
        batches = table.to_batches()
        try:
            run = columns_of(self.nodes, batches)
            known = _sent(table)
            if not known.all():
                batches = table.filter(pa.array(known)).to_batches()
                run = columns_of(self.nodes, batches)
            everybody = frozenset(range(self.nodes))
            if passes(replace(run, stopped=everybody, levels_recorded=False), service):
                return []
        except NotVectorisableError:
            pass
        logs = logs_of(self.run, self.nodes, map(as_lists, batches))
        logs = replace(logs, stopped=frozenset(range(self.nodes)))
        if service not in SELECTIVE:
            logs = logs.addressed_to_everybody()
        promises = [promise for promise in PROMISES[service] if promise not in (*LEVEL_SOUNDNESS, same_runs)]
        return [violation for promise in promises for violation in islice(promise(logs), MOST_WITNESSES)]

    def _check_views(self, table: pa.Table, service: Service) -> list[Violation]:
        """The violations among these events of a group whose members join."""
        logs = self._logs(table, service)
        asked = _checkable(service, uniform=False)
        promises = [
            promise for promise in promised(asked, uniform=False, views=True) if promise not in _NOT_IN_PREFIXES
        ]
        return [violation for promise in promises for violation in islice(promise(logs), MOST_WITNESSES)]

    def _logs(self, table: pa.Table, service: Service) -> RunLogs:
        known = _sent(table) & _addressed(table) if service in SELECTIVE else _sent(table)
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
        return self._without_retired(table, replace(run, stopped=logs.stopped), service, excused)

    def _retire(self, table: pa.Table, service: Service) -> pa.Table:
        try:
            run = columns_of(self.nodes, table.to_batches())
        except NotVectorisableError:
            return table
        self.outside = sorted(run.stopped - run.crashed_at.keys())  # nothing is retired for them, and they may go on
        return self._without_retired(table, run, service, None)

    def _without_retired(self, table: pa.Table, run: RunColumns, service: Service, excused: Flags | None) -> pa.Table:
        promises = PROMISES[service]
        if same_runs in promises or not run.sends.seq.size:
            return table
        ends = _retirable(run, excused, selective=service in SELECTIVE, closed=no_cycle in promises)
        for source in range(self.nodes):
            start, end = int(run.sends.starts[source]), int(ends[source])
            if end > start:
                self.retired[source] = int(run.sends.seq[end - 1]) + 1
        remaining = [
            event not in _OF_SOURCES or None in {source, seq} or seq >= self.retired.get(source, _LEAST)
            for event, source, seq in _messages_of(table)
        ]
        return table.filter(pa.array(remaining, pa.bool_()))


def _messages_of(table: pa.Table | pa.RecordBatch) -> Iterator[tuple[str, Any, Any]]:
    """By row: its event, source and number."""
    return zip(*(table.column(name).to_pylist() for name in (EVENT, SOURCE, SEQ)), strict=True)


def _members_join(table: pa.Table) -> bool:
    """True if views have numbers."""
    return any(event == EventKind.VIEW and seq is not None for event, _, seq in _messages_of(table))


def _checkable(service: Service, *, uniform: bool) -> Service:
    if service is Service.SEQUENCED:
        return Service.TOTAL if uniform else Service.PARTIAL
    return service


def _sent(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """By event: whether the send of its message is among the events, or it is about no message."""
    rows = list(_messages_of(table))
    sent = {(source, seq) for event, source, seq in rows if event == EventKind.SEND}
    return np.array([event != EventKind.DELIVER or (source, seq) in sent for event, source, seq in rows], np.bool_)


def _addressed(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """By event: whether it is no delivery, or one at a node that its message is known to be sent to.

    Who joined may be sent a message again that was sent before, and its delivery may be read before that.
    """
    rows = list(zip(_messages_of(table), table.column(NODE).to_pylist(), strict=True))
    to: dict[tuple[int, int], set[int]] = {}
    for ((event, source, seq), _), destinations in zip(rows, table.column(DESTINATIONS).to_pylist(), strict=True):
        if event in {EventKind.SEND, EventKind.RENUMBER}:
            to.setdefault((source, seq), set()).update(destinations or ())
    return np.array(
        [
            event != EventKind.DELIVER or (source, seq) not in to or node in to[source, seq]
            for (event, source, seq), node in rows
        ],
        np.bool_,
    )


def _retirable(run: RunColumns, excused: Flags | None, *, selective: bool, closed: bool) -> Numbers:
    """By source: the index of its first message that a destination lacks, or that a log has behind such a message.

    `excused`: by node and message: the node need not have it.
    """
    logs = run.events[EventKind.DELIVER]
    known = logs.message != UNKNOWN
    node, message = logs.node[known], logs.message[known]
    given = np.zeros_like(run.sends.addressed)
    given[node, message] = True
    given[list(run.stopped)] = True
    if excused is not None:
        given |= excused
    lacking = np.any(run.sends.addressed & ~given, axis=0) if selective else ~np.all(given, axis=0)
    ends = run.sends.starts[1:].copy()
    places = np.flatnonzero(lacking)
    np.minimum.at(ends, run.sends.source[places], places)
    while closed:
        before = ends.copy()
        for one in range(run.nodes):
            log = message[node == one]
            above = np.flatnonzero(log >= ends[run.sends.source[log]])
            if above.size:
                rest = log[above[0] :]
                np.minimum.at(ends, run.sends.source[rest], rest)
        if np.array_equal(before, ends):
            break
    return ends
