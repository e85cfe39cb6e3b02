"""Writes a Parquet file that appears when it is complete, on this machine or wherever its URL leads."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from ordercast.trace.parquet_file import ParquetFile
from ordercast.trace.small_files import unfinished
from ordercast.trace.storage import Location


@contextmanager
def whole_file(path: Location, schema: pa.Schema) -> Iterator[ParquetFile]:
    """A new file, which is discarded if the block fails."""
    if isinstance(path, Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = unfinished(path)
        try:
            with ParquetFile(hidden, schema) as file:
                yield file
            hidden.replace(path)
        finally:
            hidden.unlink(missing_ok=True)
        return
    with TemporaryDirectory(prefix="ordercast-") as elsewhere:
        here = Path(elsewhere) / path.name
        with ParquetFile(here, schema) as file:
            yield file
        path.put(here)
