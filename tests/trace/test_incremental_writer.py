"""A trace that grows: what cannot be written is told, and takes no room."""

from pathlib import Path

import pyarrow as pa
import pytest

from ordercast.model.errors import TraceError
from ordercast.trace.incremental_writer import IncrementalTraceWriter
from ordercast.trace.parquet_file import ParquetFile


def test_what_cannot_be_written_leaves_only_what_was_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = IncrementalTraceWriter(tmp_path, "a", "r")
    trace.begin({"protocol": "to", "nodes": 2, "complete": False})
    before = sorted(tmp_path.rglob("*"))

    def full(file: ParquetFile, table: pa.Table) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(ParquetFile, "write", full)
    with pytest.raises(TraceError, match="No space left on device; what was written before is kept"):
        trace.append([(0, 0, 0, "crash", None, None, None, None, None, None, None)])
    assert sorted(tmp_path.rglob("*")) == before
