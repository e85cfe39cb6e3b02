"""The Parquet files of a trace: how they are encoded, and how rows become columns."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.schema import SEQ, STEP, TIME, TRANSMISSION, EventRow

WRITE_ERRORS = (OSError, pa.ArrowException)
_RISING = (STEP, TIME, SEQ, TRANSMISSION)
"""Numbers that rarely repeat and mostly rise: delta encoding takes half the space of a dictionary."""


def open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Opens a new file of a dataset."""
    rising = [name for name in schema.names if name in _RISING]
    leaves = [f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name for field in schema]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=[leaf for leaf in leaves if leaf not in rising],
        column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
    )


def events_batch(run: str, rows: Sequence[EventRow]) -> pa.RecordBatch:
    """Some events of a run as columns."""
    columns = zip(*rows, strict=True)
    fields = list(EVENTS)[1:]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays([pa.repeat(run, len(rows)), *arrays], schema=EVENTS)


def runs_table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows of `runs`; columns that a row does not name are null."""
    unknown = sorted({name for row in rows for name in row} - set(RUNS.names))
    if unknown:
        raise TraceError(f"the runs table has no column {unknown[0]!r}; it has {', '.join(RUNS.names)}")
    return pa.Table.from_pylist([dict(row) for row in rows], schema=RUNS)


def cannot_write(what: str, error: Exception) -> TraceError:
    """The error for a trace that cannot be written, whatever the cause."""
    return TraceError(
        f"cannot write {what}: {reason_of(error)}; nothing of it was kept. "
        "Check that the folder is writable and its disk has room, or choose another folder"
    )
