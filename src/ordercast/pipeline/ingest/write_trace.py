"""Lays a trace out: tables in any order and any form become files that every audit reads well.

A run's rows are in the order of time, each node's in the order of its steps, in row groups of one run; `runs` comes
last, so that what is there is complete.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.errors import TraceError
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.files import cannot_write
from ordercast.trace.parquet_file import WRITE_ERRORS, ParquetFile
from ordercast.trace.run_writer import require_no_trace
from ordercast.trace.schema import EVENTS_FOLDER, NODE, RUN, RUNS_FOLDER, STEP, SUFFIX, TIME
from ordercast.trace.storage import Location, location
from ordercast.trace.whole_file import whole_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_OF_A_GROUP = 100_000
_ORDER = (RUN, TIME, NODE, STEP)
_WRITTEN = pa.schema([pa.field("rows", pa.int64())])


def write_trace(events: Any, runs: Any, folder: Location | str) -> int:
    """Writes a trace from its tables, DataFrames of Spark or Arrow tables, into a new folder or URL.

    Tables that lack columns of a trace, or have them as integers of another width, are completed. On Spark the events
    are sorted by Spark, and written by its tasks, which need no shared folder if it is a URL. Returns the number of
    events. Raises `TraceError` if there is a trace already, if it cannot be written, or if a column does not fit.
    """
    place = location(folder) if isinstance(folder, str) else folder
    place = place.absolute()
    require_no_trace(place)
    if hasattr(events, "toArrow"):
        rows = _written_on_spark(events, place)
    else:
        table = _as_stored(events, EVENTS).sort_by([(name, "ascending") for name in _ORDER])
        rows = _write(place / EVENTS_FOLDER / f"part-000000{SUFFIX}", EVENTS, table.to_batches(), place)
    _write(place / RUNS_FOLDER / f"runs{SUFFIX}", RUNS, _runs(runs).to_batches(), place)
    return rows


def _runs(runs: Any) -> pa.Table:
    return _as_stored(collected(runs) if hasattr(runs, "toArrow") else runs, RUNS)


def _written_on_spark(events: "DataFrame", place: Location) -> int:
    from pyspark.sql import functions as sql  # noqa: PLC0415

    known = events.columns
    columns = [
        sql.col(field.name) if field.name in known else sql.lit(None).cast(field.dataType).alias(field.name)
        for field in spark_schema(EVENTS).fields
    ]
    ordered = events.select(*columns).repartitionByRange(*_ORDER).sortWithinPartitions(*_ORDER)
    found = collected(ordered.mapInArrow(_writing(place), spark_schema(_WRITTEN)))
    return int(pc.sum(found.column("rows")).as_py() or 0)


def _writing(place: Location) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - where the task runs

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        path = place / EVENTS_FOLDER / f"part-{number:06}{SUFFIX}"
        stored = (_as_stored(pa.Table.from_batches([batch]), EVENTS) for batch in batches if batch.num_rows)
        first = next(stored, None)
        if first is not None:
            rest = (batch for table in stored for batch in table.to_batches())
            rows = _write(path, EVENTS, _chained(first.to_batches(), rest), place)
            yield pa.RecordBatch.from_pylist([{"rows": rows}], schema=_WRITTEN)

    return write


def _chained(first: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from first
    yield from rest


def _write(path: Location, schema: pa.Schema, batches: Any, place: Location) -> int:
    rows = 0
    try:
        with whole_file(path, schema) as file:
            for group in _groups(batches, schema):
                rows += _written(file, group)
    except WRITE_ERRORS as error:
        raise cannot_write(f"the trace {place}", error) from error
    return rows


def _written(file: ParquetFile, group: pa.Table) -> int:
    """Row groups of one run each: readers of a run then read nothing else."""
    names = group.column(RUN).combine_chunks()
    ends = [*pc.indices_nonzero(pc.not_equal(names[1:], names[:-1])).to_pylist(), group.num_rows - 1]
    start = 0
    for end in ends:
        file.write(group.slice(start, end + 1 - start).combine_chunks())
        start = end + 1
    return int(group.num_rows)


def _groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Tables of the size of row groups, of batches of any size."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS_OF_A_GROUP):
            part = batch.slice(start, ROWS_OF_A_GROUP)
            held.append(part)
            count += part.num_rows
            if count >= ROWS_OF_A_GROUP:
                yield pa.Table.from_batches(held, schema)
                held, count = [], 0
    if held:
        yield pa.Table.from_batches(held, schema)


def _as_stored(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """With all columns of a trace, in its types."""
    arrays = []
    for field in schema:
        if field.name not in table.column_names:
            if not field.nullable:
                raise TraceError(f"the table has no column {field.name!r}, which every trace has")
            arrays.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        try:
            arrays.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TraceError(f"column {field.name!r} does not fit {field.type}, as in a trace: {error}") from error
        if column.null_count and not field.nullable:
            raise TraceError(f"column {field.name!r} must not be null, but {column.null_count:,} rows are")
    return pa.Table.from_arrays(arrays, schema=schema)
