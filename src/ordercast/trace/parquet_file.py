"""Writes the Parquet files of a trace."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from ordercast.trace.schema import SEQ, STEP, TIME, TRANSMISSION

try:  # what `pyarrow.parquet` is made of; that imports clients of remote file systems, too, which take 10 MiB
    from pyarrow._parquet import ParquetWriter
except ImportError:  # an implementation detail of pyarrow; the public class takes the same arguments
    from pyarrow.parquet import ParquetWriter

WRITE_ERRORS = (OSError, pa.ArrowException)
_RISING = (STEP, TIME, SEQ, TRANSMISSION)
"""Numbers that rarely repeat and mostly rise: delta encoding takes half the space of a dictionary."""


def encoding(schema: pa.Schema) -> dict[str, Any]:
    """How a dataset with this schema is encoded: arguments of a `ParquetWriter`."""
    rising = [name for name in schema.names if name in _RISING]
    leaves = [f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name for field in schema]
    return {
        "version": "2.6",
        "data_page_version": "1.0",
        "writer_engine_version": "V2",
        "compression": "zstd",
        "use_dictionary": [leaf for leaf in leaves if leaf not in rising],
        "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
    }


class ParquetFile:
    """A new file of a dataset. As a context manager it is closed at the end; it is readable from then on."""

    def __init__(self, path: Path, schema: pa.Schema, memory_pool: pa.MemoryPool | None = None) -> None:
        """`memory_pool`: where encoded columns are buffered; default: Arrow's default pool."""
        self._schema, self._closed = schema, False
        self._writer = ParquetWriter(str(path), schema, memory_pool=memory_pool, **encoding(schema))

    def write(self, rows: pa.Table) -> None:
        """Adds rows; they are a row group of their own."""
        if not rows.schema.equals(self._schema):
            raise ValueError(f"the rows have the schema {rows.schema}, the file has {self._schema}")
        self._writer.write_table(rows)

    def close(self) -> None:
        """Completes the file. A second call has no effect, even if the first failed."""
        if not self._closed:
            self._closed = True
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
