"""What the writer leaves behind: whole traces with the same bytes each time, or nothing."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.model.errors import TraceError
from ordercast.trace import atomic_writer
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.parquet_file import ParquetFile
from ordercast.trace.run_writer import TraceWriter
from ordercast.trace.schema import EventKind, EventRow

RUNS_ROW = {"protocol": "spo", "nodes": 3, "channel": "many", "seed": 7, "config": "{}", "complete": True, "sent": 2}
SEND: EventRow = (0, 0, 10, "send", 0, 0, (1, 2), None, 64, None, None)
TRANSMIT: EventRow = (0, 1, 10, "transmit", 0, 0, None, None, None, "data", 0)
DELIVER: EventRow = (1, 0, 20, EventKind.DELIVER, 0, 0, None, None, None, None, None)


def write_trace(folder: Path, batches: list[list[EventRow]]) -> None:
    with TraceWriter(folder, "r") as trace:
        for rows in batches:
            trace.write(rows)
        trace.finish(RUNS_ROW)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_trace_is_two_datasets_with_the_schema(tmp_path: Path) -> None:
    write_trace(tmp_path / "t", [[SEND, TRANSMIT], [DELIVER]])
    assert files_in(tmp_path / "t") == ["events/r.parquet", "runs/r.parquet"]
    events = pq.read_table(tmp_path / "t/events/r.parquet", partitioning=None)
    assert events.schema == EVENTS
    assert events.to_pylist()[0] == {
        "run": "r",
        "node": 0,
        "step": 0,
        "time": 10,
        "event": "send",
        "source": 0,
        "seq": 0,
        "destinations": [1, 2],
        "priority": None,
        "size": 64,
        "detail": None,
        "transmission": None,
    }
    assert events.column("event").to_pylist() == ["send", "transmit", "deliver"]
    runs = pq.read_table(tmp_path / "t/runs/r.parquet", partitioning=None)
    assert runs.schema == RUNS
    [row] = runs.to_pylist()
    assert {name: row[name] for name in RUNS_ROW} == RUNS_ROW
    assert row["run"] == "r"
    assert row["lost"] is None


def test_each_batch_is_a_row_group_and_compressed(tmp_path: Path) -> None:
    write_trace(tmp_path, [[SEND, TRANSMIT], [], [DELIVER]])
    metadata = pq.ParquetFile(tmp_path / "events/r.parquet").metadata
    assert [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)] == [2, 1]
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_run_without_events_still_has_both_files(tmp_path: Path) -> None:
    write_trace(tmp_path, [])
    assert pq.read_table(tmp_path / "events/r.parquet", partitioning=None).num_rows == 0


def test_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_trace(tmp_path / name, [[SEND, TRANSMIT], [DELIVER]])
    for name in ("events/r.parquet", "runs/r.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_an_unfinished_trace_is_hidden_from_readers(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "r") as trace:
        trace.write([SEND])
        assert all(Path(name).name.startswith("_") for name in files_in(tmp_path))


def test_without_finish_nothing_stays(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "new" / "t", "r") as trace:
        trace.write([SEND])
    assert list(tmp_path.iterdir()) == []


def test_an_exception_discards_and_goes_on(tmp_path: Path) -> None:
    def stumble() -> None:
        with TraceWriter(tmp_path, "r") as trace:
            trace.write([SEND])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stumble()
    assert list(tmp_path.iterdir()) == []


def test_discarding_spares_what_others_put_there(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with TraceWriter(tmp_path, "r"):
        (tmp_path / "runs" / "notes.txt").write_text("mine")
    assert files_in(tmp_path) == ["runs/notes.txt"]
    assert (tmp_path / "events").is_dir()


@pytest.mark.parametrize("leftover", ["events/other.parquet", "runs/other.parquet", "events/run=x/part-0.parquet"])
def test_a_folder_with_a_trace_is_refused_untouched(tmp_path: Path, leftover: str) -> None:
    path = tmp_path / leftover
    path.parent.mkdir(parents=True)
    path.write_text("theirs")
    with pytest.raises(TraceError, match="choose another folder or remove this one"):
        TraceWriter(tmp_path, "r")
    assert files_in(tmp_path) == [leftover]


def test_the_leftovers_of_an_interrupted_run_are_no_trace(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "_r.parquet.1.unfinished").write_text("half")
    write_trace(tmp_path, [[SEND]])
    assert "events/r.parquet" in files_in(tmp_path)


def test_who_finishes_second_is_refused(tmp_path: Path) -> None:
    second = TraceWriter(tmp_path, "second")
    with TraceWriter(tmp_path, "first") as first:
        first.finish(RUNS_ROW)
    with pytest.raises(TraceError, match="already holds a trace"):
        second.finish(RUNS_ROW)
    assert files_in(tmp_path) == ["events/first.parquet", "runs/first.parquet"]


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(TraceError, match="is a file; choose a folder"):
        TraceWriter(path, "r")
    with pytest.raises(TraceError, match="below"):
        TraceWriter(path / "below", "r")
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["", "_r", ".r", "a/b", "../r", "a\\b", "a\0b"])
def test_a_name_that_is_no_visible_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(TraceError, match="invalid run name"):
        TraceWriter(tmp_path, name)


def test_a_column_that_the_runs_table_lacks_is_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "r") as trace, pytest.raises(TraceError, match="no column 'luck'"):
        trace.finish({**RUNS_ROW, "luck": 1})


def test_a_runs_row_without_what_it_must_have_is_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "r") as trace, pytest.raises(TraceError, match="complete"):
        trace.finish({"protocol": "spo", "nodes": 3})
    assert list(tmp_path.iterdir()) == []


def test_a_closed_trace_takes_nothing_more(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "r") as trace:
        trace.finish(RUNS_ROW)
        with pytest.raises(TraceError, match="is closed"):
            trace.write([SEND])
        with pytest.raises(TraceError, match="is closed"):
            trace.finish(RUNS_ROW)
    assert files_in(tmp_path) == ["events/r.parquet", "runs/r.parquet"]


def test_rows_of_the_wrong_width_are_our_own_mistake(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "r") as trace, pytest.raises(ValueError, match="argument"):
        trace.write([SEND[:-1]])  # type: ignore[list-item]


def test_an_unwritable_folder_is_a_trace_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(TraceError, match=r"t: .*Permission denied.*is writable"):
        TraceWriter(tmp_path / "t", "r")


def test_failing_to_write_the_runs_row_takes_the_events_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.replace

    def fail_for_runs(self: Path, target: Path) -> Path:
        if target.parent.name == "runs":
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", fail_for_runs)
    with pytest.raises(TraceError, match="No space left"):
        write_trace(tmp_path, [[SEND]])
    assert list(tmp_path.iterdir()) == []


def test_arrow_errors_while_writing_are_trace_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(ParquetFile):
        def write(self, rows: pa.Table) -> None:
            del rows
            raise pa.ArrowException("out of luck")

        def close(self) -> None:
            raise OSError("and of room for the footer")

    monkeypatch.setattr(atomic_writer, "ParquetFile", Broken)
    with pytest.raises(TraceError, match="out of luck"):
        write_trace(tmp_path, [[SEND]])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_trace_error_and_leaves_nothing(tmp_path: Path) -> None:
    """The kernel refuses what goes beyond the file size limit, as it does on a full disk."""
    program = """
        import random, resource, sys
        from pathlib import Path
        from ordercast.model.errors import TraceError
        from ordercast.trace.run_writer import TraceWriter
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        chance = random.Random(1)
        try:
            with TraceWriter(Path(sys.argv[1]), "r") as trace:
                for batch in range(20):
                    trace.write([
                        (0, chance.getrandbits(60), 0, "send", 0, chance.getrandbits(60), None, None, None, None, None)
                        for _ in range(1000)
                    ])
                trace.finish({"protocol": "spo", "nodes": 3, "complete": True})
        except TraceError as error:
            print(error)
            sys.exit(7)
    """
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", dedent(program), str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 7, ended.stderr
    assert ended.stderr == ""
    assert str(tmp_path / "t") in ended.stdout
    assert "disk has room" in ended.stdout
    assert not (tmp_path / "t").exists()
