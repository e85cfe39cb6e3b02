"""How rows of a trace become columns."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.arrow_columns import column
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.schema import EventRow


def events_batch(run: str, rows: Sequence[EventRow]) -> pa.RecordBatch:
    """Some events of a run as columns."""
    columns = zip(*rows, strict=True)
    fields = list(EVENTS)[1:]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays([pa.repeat(run, len(rows)), *arrays], schema=EVENTS)


def runs_table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows of `runs`; columns that a row does not name are null."""
    for row in rows:
        _require_known(row)
    return pa.Table.from_pylist([dict(row) for row in rows], schema=RUNS)


def one_run(row: Mapping[str, object]) -> pa.Table:
    """The same for one row, without the imports of `pyarrow.array` (see `arrow_columns`)."""
    _require_known(row)
    return pa.Table.from_arrays([column(field.type, [row.get(field.name)]) for field in RUNS], schema=RUNS)


def _require_known(row: Mapping[str, object]) -> None:
    unknown = sorted(set(row) - set(RUNS.names))
    if unknown:
        raise TraceError(f"the runs table has no column {unknown[0]!r}; it has {', '.join(RUNS.names)}")


def cannot_write(what: str, error: Exception) -> TraceError:
    """The error for a trace that cannot be written, whatever the cause."""
    return TraceError(
        f"cannot write {what}: {reason_of(error)}; nothing of it was kept. "
        "Check that the folder is writable and its disk has room, or choose another folder"
    )
