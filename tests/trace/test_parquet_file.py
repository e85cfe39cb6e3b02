"""The files are those of pyarrow's public writer, which is not used since it imports much more."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.files import events_batch, one_run, runs_table
from ordercast.trace.parquet_file import ParquetFile, encoding

ROWS = [(0, step, 10 * step, "send", 0, step, (0, 1), None, 5, None, None) for step in range(1000)]
RUN = {"run": "r", "protocol": "to", "nodes": 2, "complete": True, "aborted": False, "sent": 3, "node": 1}


@pytest.mark.parametrize("table", [pa.Table.from_batches([events_batch("r", ROWS)]), runs_table([RUN])])
def test_the_bytes_are_those_of_the_public_writer(table: pa.Table, tmp_path: Path) -> None:
    ours, public = tmp_path / "ours", tmp_path / "public"
    with ParquetFile(ours, table.schema, pa.system_memory_pool()) as file:
        file.write(table)
        file.write(table)
    with pq.ParquetWriter(public, table.schema, **encoding(table.schema)) as writer:
        writer.write_table(table)
        writer.write_table(table)
    assert ours.read_bytes() == public.read_bytes()


def test_rows_of_another_schema_are_refused(tmp_path: Path) -> None:
    with ParquetFile(tmp_path / "a", EVENTS) as file, pytest.raises(ValueError, match="the file has"):
        file.write(runs_table([RUN]))


def test_one_run_is_what_a_table_of_runs_is() -> None:
    assert one_run(RUN).equals(runs_table([RUN]))
    assert one_run(RUN).schema.equals(RUNS)
    one_run(RUN).validate(full=True)
