"""`from_log` on Arrow tables, in this process."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.errors import TraceError
from ordercast.pipeline.ingest.names import Nodes, run_row
from ordercast.pipeline.ingest.tables import LogColumns, LogOptions, LogTables
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.schema import (
    DESTINATIONS,
    EVENT,
    NODE,
    PRIORITY,
    RUN,
    SEQ,
    SOURCE,
    STEP,
    TIME,
    EventKind,
)

_BY = [(TIME, "ascending"), (NODE, "ascending"), (STEP, "ascending")]


def tables_in_process(received: pa.Table, sent: pa.Table | None, columns: LogColumns, options: LogOptions) -> LogTables:
    """The tables of a trace, with the events in the order of time."""
    handed = _Log("received", received, columns)
    given = _Log("sent", sent, columns) if sent is not None else None
    sources = {name for log in (handed, given) if log is not None for name in log.source.unique().to_pylist()}
    receivers = set(handed.receiver.unique().to_pylist()) | set(options.subscriptions or ())
    nodes = Nodes.of(sources, receivers | set(given.addressed() if given else ()))
    events = pa.concat_tables([_sends(given or handed, given is None, nodes, options), _deliveries(handed, nodes)])
    events = events.append_column(RUN, pa.repeat(options.run, events.num_rows)).sort_by(_BY)
    rows = pa.Table.from_pylist(
        [run_row(options.run, nodes, options.service, options.mark, one_clock=options.one_clock)], schema=RUNS
    )
    return LogTables(_as_events(events), rows)


class _Log:
    """The columns of a table that matter."""

    def __init__(self, what: str, table: pa.Table, columns: LogColumns) -> None:
        self._what, self._table = what, table
        self.columns = columns
        self.source = self._source(columns.source)
        self.seq = self._whole(columns.seq)
        if what == "received":
            self.receiver = self._required(columns.receiver).cast(pa.string())
            self.step = self._step()

    def time(self) -> pa.ChunkedArray | None:
        """In nanoseconds; None if it is not known."""
        name = self.columns.time
        if name is None or name not in self._table.column_names:
            return None
        return _nanoseconds(self._required(name))

    def key(self) -> pa.ChunkedArray | None:
        """As text; a message without a key has an empty one."""
        name = self.columns.key
        if name is None or name not in self._table.column_names:
            return None
        column = self._table.column(name)
        return pc.fill_null(column.cast(pa.string()), "")

    def to(self) -> pa.ChunkedArray | None:
        """Of what was sent: lists of receivers; None if it does not say."""
        name = self.columns.to
        return None if name is None or self._what == "received" else self._required(name)

    def addressed(self) -> list[str]:
        """All receivers that something was sent to."""
        to = self.to()
        found: list[str] = [] if to is None else pc.list_flatten(to).unique().to_pylist()
        return found

    def _required(self, name: str) -> pa.ChunkedArray:
        if name not in self._table.column_names:
            raise TraceError(
                f"the table of what was {self._what} has no column {name!r}; "
                f"it has {', '.join(self._table.column_names)}"
            )
        column = self._table.column(name)
        if column.null_count:
            raise TraceError(
                f"column {name!r} of what was {self._what} must not be null, but {column.null_count:,} rows are"
            )
        return column

    def _source(self, names: Sequence[str]) -> pa.ChunkedArray:
        first, *rest = [self._required(name).cast(pa.string()) for name in names]
        for part in rest:
            first = pc.binary_join_element_wise(first, "[", part, "]", "")
        return first if isinstance(first, pa.ChunkedArray) else pa.chunked_array([first])

    def _whole(self, name: str) -> pa.ChunkedArray:
        column = self._required(name)
        try:
            return column.cast(pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TraceError(
                f"column {name!r} of what was {self._what} is of type {column.type}; numbers of messages are whole "
                f"numbers of 64 bits: {error}"
            ) from error

    def _step(self) -> pa.ChunkedArray:
        """The order as whole numbers: as they are, or the rank of times."""
        column = self._required(self.columns.order)
        if pa.types.is_integer(column.type):
            return column.cast(pa.int64())
        return pa.chunked_array([pc.rank(column, sort_keys="ascending", tiebreaker="first").cast(pa.int64())])


def _nanoseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int64())


def _deliveries(log: _Log, nodes: Nodes) -> pa.Table:
    node = pc.add(
        pc.index_in(log.receiver, value_set=pa.array(nodes.receivers)), pa.scalar(len(nodes.sources), pa.int32())
    )
    time = log.time()
    table = {
        NODE: node,
        STEP: log.step,
        TIME: _from_nought(node, log.step) if time is None else time,
        EVENT: pa.repeat(EventKind.DELIVER.value, len(log.seq)),
        SOURCE: pc.index_in(log.source, value_set=pa.array(nodes.sources)),
        SEQ: log.seq,
        DESTINATIONS: pa.nulls(len(log.seq), pa.list_(pa.int32())),
        PRIORITY: pa.nulls(len(log.seq), pa.int32()),
    }
    return pa.table(table)


def _sends(log: _Log, derived: bool, nodes: Nodes, options: LogOptions) -> pa.Table:  # noqa: FBT001 - of two calls
    """What was sent, in the order of its numbers. `derived`: from what was received, each message once."""
    time, key, to = log.time(), log.key(), log.to()
    source = pc.index_in(log.source, value_set=pa.array(nodes.sources))
    table = pa.table({SOURCE: source, SEQ: log.seq, **_given(TIME, time), **_given(PRIORITY, key), **_given("to", to)})
    if derived:
        first = [(name, "min") for name in (TIME, PRIORITY) if name in table.column_names]
        table = table.group_by([SOURCE, SEQ]).aggregate(first)
        table = table.rename_columns([name.removesuffix("_min") for name in table.column_names])
    table = table.sort_by([(SOURCE, "ascending"), (SEQ, "ascending")])
    found = table.column(SOURCE).combine_chunks()
    if to is None:
        subscribers = pa.array(nodes.subscribers(options.subscriptions), pa.list_(pa.int32()))
        destinations = subscribers.take(found)
    else:
        destinations = _destinations(table.column("to").combine_chunks(), nodes)
    when = _rising(found, table.column(TIME).combine_chunks()) if time is not None else _from_nought(found, table[SEQ])
    return pa.table(
        {
            NODE: found,
            STEP: pa.array(range(len(found)), pa.int64()),  # a source may have given one number twice
            TIME: when,
            EVENT: pa.repeat(EventKind.SEND.value, len(found)),
            SOURCE: found,
            SEQ: table.column(SEQ),
            DESTINATIONS: destinations,
            PRIORITY: pa.nulls(len(found), pa.int32()) if key is None else _classes(table.column(PRIORITY)),
        }
    )


def _given(name: str, column: pa.ChunkedArray | None) -> dict[str, pa.ChunkedArray]:
    return {} if column is None else {name: column}


def _classes(keys: pa.ChunkedArray) -> pa.Array:
    return keys.combine_chunks().dictionary_encode().indices.cast(pa.int32())


def _destinations(to: pa.Array, nodes: Nodes) -> pa.Array:
    found = pc.add(
        pc.index_in(to.flatten(), value_set=pa.array(nodes.receivers)), pa.scalar(len(nodes.sources), pa.int32())
    )
    return pa.ListArray.from_arrays(to.offsets.cast(pa.int32()), found.cast(pa.int32()))


def _from_nought(node: pa.Array, number: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where there are no times: how far each node is. So rows of one period come into the same row groups."""
    table = pa.table({"node": node, "number": number})
    least = table.group_by("node").aggregate([("number", "min")])
    index = pc.index_in(table["node"], value_set=least["node"].combine_chunks())
    return pc.subtract(table["number"], least["number_min"].combine_chunks().take(index.combine_chunks()))


def _rising(source: pa.Array, time: pa.Array) -> pa.Array:
    """Times that do not fall with the numbers of a source: when it was handed out first, or a later one."""
    ends = [*pc.indices_nonzero(pc.not_equal(source[1:], source[:-1])).to_pylist(), len(source) - 1]
    starts = [0, *(end + 1 for end in ends[:-1])]
    parts = [pc.cumulative_max(time[start : end + 1]) for start, end in zip(starts, ends, strict=True)]
    return pa.concat_arrays(parts)


def _as_events(table: pa.Table) -> pa.Table:
    arrays = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in EVENTS
    ]
    return pa.Table.from_arrays(arrays, schema=EVENTS)
