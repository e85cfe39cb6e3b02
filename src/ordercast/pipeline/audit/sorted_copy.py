"""A copy of a long run whose events are sorted, made by Spark: for files that have them in any order.

An audit in partitions needs each node's events in the order of its steps, as our own writer leaves them. Tables of
other programs, and traces that were shuffled, are sorted first: tasks read the row groups, Spark sorts the rows by
time, node and step (or by step and node, where times do not rise with steps) in as many partitions as it takes, and
tasks write them, through Arrow, wherever the trace may be. Where partitions end is sampled from some row groups: Spark
would read everything once more for that. The copy is in a folder of the trace that readers ignore, or where the setting
`spark.ordercast.scratch` says, and is removed after the audit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.pipeline.audit.kernel.columns import Numbers
from ordercast.pipeline.audit.partitioned.audit import Sort, SortedBy
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups, numbers_with_null
from ordercast.pipeline.audit.plan import AuditTask, EventLocation
from ordercast.pipeline.jobs import collected, one_task_per_row
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.files import cannot_write
from ordercast.trace.parquet_file import WRITE_ERRORS
from ordercast.trace.schema import EVENTS_FOLDER, NODE, RUN, STEP, SUFFIX, TIME
from ordercast.trace.storage import Location, location, remove_folder
from ordercast.trace.whole_file import whole_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRATCH = "spark.ordercast.scratch"
_ROWS_OF_A_TASK = 1_000_000
_ROWS_OF_A_GROUP = 100_000
_SAMPLED_GROUPS = 50
_SAMPLED_ROWS = 4_000_000
_PART = "part"
_PARTED = EVENTS.append(pa.field(_PART, pa.int32()))
_COLUMNS = [name for name in EVENTS.names if name != RUN]
_TASK = pa.schema([pa.field("task", pa.binary())])
_WRITTEN = pa.schema([pa.field("path", pa.string()), pa.field("rows", pa.list_(pa.int64()))])


@contextmanager
def sorted_copies(spark: "SparkSession", folder: Location) -> Iterator[Sort]:
    """Makes sorted copies of runs of a trace, and removes them at the end."""
    asked = spark.conf.get(SCRATCH, "")
    place = (location(asked) if asked else folder) / f"_sorted-{uuid4().hex}"
    try:
        yield lambda task, order: _sorted(spark, task, order, place)
    finally:
        remove_folder(place)


def _sorted(spark: "SparkSession", task: AuditTask, order: SortedBy, place: Location) -> AuditTask:
    groups = [
        RowGroups(at.path, at.in_path, tuple(at.groups[start:end]), task.row[RUN] if at.shared else None)
        for at in task.locations
        for start, end in _pieces(at)
    ]
    tasks = pa.Table.from_pylist([{"task": msgspec.msgpack.encode(one)} for one in groups], schema=_TASK)
    columns = [TIME, NODE, STEP] if order is SortedBy.TIME else [STEP, NODE]
    bounds = _bounds(task, columns, max(1, task.rows // _ROWS_OF_A_TASK))
    rows = one_task_per_row(spark, tasks).mapInArrow(_reading(task.row[RUN], columns, bounds), spark_schema(_PARTED))
    ordered = rows.repartitionById(len(bounds[0]) + 1, _PART).drop(_PART).sortWithinPartitions(*columns)
    folder = place / f"{uuid4().hex}"
    found = collected(ordered.mapInArrow(_writing(folder), spark_schema(_WRITTEN))).to_pylist()
    places = tuple(
        EventLocation(one["path"], {}, tuple(range(len(one["rows"]))), tuple(one["rows"]), shared=False)
        for one in sorted(found, key=lambda one: str(one["path"]))
    )
    return msgspec.structs.replace(task, locations=places)


def _pieces(at: EventLocation) -> Iterator[tuple[int, int]]:
    """Divides the row groups of a file into tasks."""
    start = size = 0
    for number, rows in enumerate(at.rows):
        if number > start and size + rows > _ROWS_OF_A_TASK:
            yield start, number
            start, size = number, 0
        size += rows
    yield start, len(at.rows)


def _bounds(task: AuditTask, columns: Sequence[str], parts: int) -> list[Numbers]:
    """The least rows of all partitions but the first, of about equal size, by column; of some row groups."""
    groups = [
        RowGroups(at.path, at.in_path, (group,), task.row[RUN] if at.shared else None)
        for at in task.locations
        for group in at.groups
    ]
    count = min(len(groups), _SAMPLED_GROUPS, max(1, _SAMPLED_ROWS * len(groups) // max(1, task.rows)))
    chosen = [groups[number * len(groups) // count] for number in range(count)]
    read = [group.read(columns) for group in chosen]
    sample = [np.concatenate([numbers_with_null(batch.column(name)) for batch in read]) for name in columns]
    rising = np.lexsort(sample[::-1])
    places = rising[[number * rising.size // parts for number in range(1, parts)] if rising.size else []]
    return [column[places] for column in sample]


def part_of(columns: Sequence[Numbers], bounds: Sequence[Numbers]) -> Numbers:
    """By row: how many bounds are below it; both are given by column, and compared column by column."""
    found = np.searchsorted(bounds[0], columns[0], side="left")
    if len(columns) == 1:
        return found
    ends = np.searchsorted(bounds[0], columns[0], side="right")
    (tied,) = np.nonzero(found < ends)
    for start, end in sorted(set(zip(found[tied].tolist(), ends[tied].tolist(), strict=True))):
        alike = tied[ends[tied] == end]
        found[alike] = start + part_of([one[alike] for one in columns[1:]], [one[start:end] for one in bounds[1:]])
    return found


def _reading(
    run: str, columns: Sequence[str], bounds: Sequence[Numbers]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                groups = msgspec.msgpack.decode(row["task"], type=RowGroups)
                for group in groups.groups:
                    events = _as_stored(run, msgspec.structs.replace(groups, groups=(group,)).read(_COLUMNS))
                    part = part_of([numbers_with_null(events.column(name)) for name in columns], bounds)
                    yield events.append_column(_PART, pa.array(part, pa.int32())).cast(_PARTED)

    return read


def _as_stored(run: str, events: pa.RecordBatch) -> pa.RecordBatch:
    """With the name of the run, and no column dictionary-encoded."""
    named = {RUN: pa.repeat(run, events.num_rows), **{name: events.column(name) for name in _COLUMNS}}
    return pa.RecordBatch.from_arrays([named[field.name].cast(field.type) for field in EVENTS], schema=EVENTS)


def _writing(folder: Location) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - where the task runs

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        path = folder / EVENTS_FOLDER / f"part-{number:06}{SUFFIX}"
        rows: list[int] = []
        try:
            with whole_file(path, EVENTS) as file:
                for group in _groups(batches):
                    file.write(group)
                    rows.append(group.num_rows)
        except WRITE_ERRORS as error:
            raise cannot_write(f"the sorted copy {path} (whose place is set by {SCRATCH})", error) from error
        yield pa.RecordBatch.from_pylist([{"path": str(path), "rows": rows}], schema=_WRITTEN)

    return write


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Row groups, of the small batches that Spark hands over."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch.cast(EVENTS))
        if sum(one.num_rows for one in held) >= _ROWS_OF_A_GROUP:
            yield pa.Table.from_batches(held, EVENTS)
            held = []
    if held:
        yield pa.Table.from_batches(held, EVENTS)
