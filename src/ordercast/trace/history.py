"""Histories of operations as a table in Parquet: one row for each operation."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.errors import TraceError, reason_of
from ordercast.model.history import Operation

SCHEMA = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("process", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("object_name", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("arguments", pa.list_(pa.string()), nullable=False),
        pa.field("result", pa.string(), nullable=False),
        pa.field("called", pa.int64(), nullable=False),
        pa.field("returned", pa.int64()),
    ]
)
"""The columns are the fields of `Operation`."""


def write_history(path: Path, operations: Iterable[Operation]) -> None:
    """Writes a history to a file."""
    rows = [{name: getattr(each, name) for name in SCHEMA.names} for each in operations]
    for row in rows:
        row["arguments"] = list(row["arguments"])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    except OSError as error:
        raise TraceError(f"cannot write the history {path}: {reason_of(error)}") from error


def read_history(path: Path) -> Iterator[Operation]:
    """The operations of a file, or of all files of a folder: those of several members belong together."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise TraceError(f"{path} has no history: a history is a .parquet file, or a folder with some")
    for file in files:
        try:
            table = pq.read_table(file, schema=SCHEMA)
        except (OSError, pa.ArrowException) as error:
            raise TraceError(f"cannot read the history {file}: {reason_of(error)}") from error
        yield from operations_of(table.to_pylist())


def operations_of(rows: Iterable[dict[str, object]]) -> Iterator[Operation]:
    """From rows of the table."""
    for row in rows:
        arguments = row["arguments"]
        assert isinstance(arguments, Iterable), "a list"
        yield Operation(**{**row, "arguments": tuple(arguments)})  # type: ignore[arg-type] # the schema has the types
