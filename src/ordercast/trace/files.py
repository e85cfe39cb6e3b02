"""What all files of a trace have in common: how they are made, and what they are called until they are whole."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from socket import gethostname

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.schema import EVENTS, RUNS, SEQ, STEP, TIME, TRANSMISSION, EventRow

WRITE_ERRORS = (OSError, pa.ArrowException)
UNFINISHED = ".unfinished"
_RISING = (STEP, TIME, SEQ, TRANSMISSION)
"""Numbers that hardly ever repeat and mostly rise: their differences take half the room that a dictionary would."""


def unfinished(path: Path) -> Path:
    """What a file is called until it is whole. Two processes that write the same file must not share it."""
    return path.with_name(f"_{path.name}.{gethostname()}.{os.getpid()}{UNFINISHED}")


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a small file that is there whole or not at all: what was there before stays if the disk is full."""
    hidden = unfinished(path)
    try:
        hidden.write_bytes(content)
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def open_parquet(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A new file of a dataset."""
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
    """The sentence for whatever keeps a trace from being written."""
    return TraceError(
        f"cannot write {what}: {reason_of(error)}; nothing of it was kept. "
        "Check that the folder may be written and that its disk has room, or choose another"
    )
