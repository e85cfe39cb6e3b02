"""Chunks: many runs in one file of each dataset, whole or not there, and without the events of failed runs."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.trace.test_trace_writer import DELIVER, SEND, TRANSMIT, files_in

from ordercast.model.errors import TraceError
from ordercast.trace.chunk_writer import ChunkWriter
from ordercast.trace.reader import read_events_by_run, read_runs
from ordercast.trace.schema import EventRow

NAME = "chunk-000000"


def row(run: str, error: str | None = None) -> dict[str, object]:
    return {"run": run, "protocol": "spo", "nodes": 3, "complete": error is None, "error": error}


def write_chunk(folder: Path, runs: dict[str, list[list[EventRow]]], failing: str = "") -> None:
    with ChunkWriter(folder, NAME) as chunk:
        for run, batches in runs.items():
            for rows in batches:
                chunk.write(run, rows)
            if run in failing:
                chunk.drop(row(run, "it stumbled"))
            else:
                chunk.keep(row(run))
        chunk.finish()


def events_of(folder: Path) -> dict[str, list[str]]:
    return {
        run: [event for part in parts for event in part["event"]]
        for run, parts in read_events_by_run([folder], ["event"])
    }


def test_a_chunk_holds_many_runs_in_one_file_of_each(tmp_path: Path) -> None:
    write_chunk(tmp_path, {"b": [[SEND, TRANSMIT], [DELIVER]], "a": [[DELIVER]], "c": []})
    assert files_in(tmp_path) == [f"events/{NAME}.parquet", f"runs/{NAME}.parquet"]
    assert events_of(tmp_path) == {"a": ["deliver"], "b": ["send", "transmit", "deliver"]}
    assert [found["run"] for found in read_runs([tmp_path])] == ["b", "a", "c"]


def test_no_row_group_holds_two_runs(tmp_path: Path) -> None:
    write_chunk(tmp_path, {"b": [[SEND, TRANSMIT], [DELIVER]], "a": [[DELIVER]]})
    metadata = pq.ParquetFile(tmp_path / f"events/{NAME}.parquet").metadata
    assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [2, 1, 1]


@pytest.mark.parametrize("failing", ["a", "b", "c", "ab", "bc", "ac", "abc"])
def test_a_failed_run_leaves_its_row_and_no_events(tmp_path: Path, failing: str) -> None:
    runs: dict[str, list[list[EventRow]]] = {"a": [[SEND], [DELIVER]], "b": [[SEND]], "c": [[TRANSMIT], [DELIVER]]}
    write_chunk(tmp_path / "failed", runs, failing)
    assert set(events_of(tmp_path / "failed")) == set("abc") - set(failing)
    assert [found["error"] for found in read_runs([tmp_path / "failed"])] == [
        "it stumbled" if run in failing else None for run in runs
    ]
    write_chunk(tmp_path / "never", {run: [] if run in failing else batches for run, batches in runs.items()}, failing)
    for name in files_in(tmp_path / "never"):  # not a byte tells of what was forgotten
        assert (tmp_path / "failed" / name).read_bytes() == (tmp_path / "never" / name).read_bytes()


def test_an_unfinished_chunk_is_hidden_and_forgotten(tmp_path: Path) -> None:
    with ChunkWriter(tmp_path, NAME) as chunk:
        chunk.write("a", [SEND])
        chunk.keep(row("a"))
        assert all(Path(name).name.startswith("_") for name in files_in(tmp_path))
    assert files_in(tmp_path) == []


def test_of_two_writers_of_a_chunk_the_first_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_chunk(tmp_path, {"a": [[SEND]]})
    inodes = [(tmp_path / name).stat().st_ino for name in files_in(tmp_path)]
    write_chunk(tmp_path, {"a": [[SEND]]})
    assert [(tmp_path / name).stat().st_ino for name in files_in(tmp_path)] == inodes
    assert len(inodes) == 2


def test_failing_to_write_the_runs_takes_the_events_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.replace

    def fail_for_runs(self: Path, target: Path) -> Path:
        if target.parent.name == "runs":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fail_for_runs)
    with pytest.raises(TraceError, match=rf"cannot write {NAME} of the trace .*No space left.*disk has room"):
        write_chunk(tmp_path, {"a": [[SEND]]})
    assert files_in(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_a_trace_error(tmp_path: Path) -> None:
    (tmp_path / "events").write_text("mine")
    with pytest.raises(TraceError, match=r"File exists.*is writable"):
        ChunkWriter(tmp_path, NAME)


def test_a_closed_chunk_takes_nothing_more(tmp_path: Path) -> None:
    with ChunkWriter(tmp_path, NAME) as chunk:
        chunk.finish()
        with pytest.raises(TraceError, match="is closed"):
            chunk.write("a", [SEND])
        with pytest.raises(TraceError, match="is closed"):
            chunk.finish()
