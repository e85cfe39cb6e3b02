"""What the reader takes for a trace, and what it says about what is none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trace_events import read_events

from ordercast.model.errors import TraceError
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.reader import read_events_by_run, read_runs
from ordercast.trace.run_writer import TraceWriter

Rows = list[dict[str, Any]]


def event(run: str, node: int, step: int, kind: str = "deliver", seq: int = 0) -> dict[str, Any]:
    return {"run": run, "node": node, "step": step, "time": step, "event": kind, "source": 0, "seq": seq}


def runs_row(run: str) -> dict[str, Any]:
    return {"run": run, "protocol": "spo", "nodes": 3, "channel": "many", "seed": 1, "config": "{}", "complete": True}


def store(path: Path, rows: Rows, schema: pa.Schema) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def trace(folder: Path, rows: Rows, runs: list[str]) -> Path:
    store(folder / "events" / "e.parquet", rows, EVENTS)
    store(folder / "runs" / "r.parquet", [runs_row(run) for run in runs], RUNS)
    return folder


def everything(folders: list[Path], **options: Any) -> dict[str, list[tuple[int, int]]]:
    return {
        run: [pair for part in parts for pair in zip(part["node"], part["step"], strict=True)]
        for run, parts in read_events_by_run(folders, ["node", "step"], **options)
    }


def test_what_was_written_is_read(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, "r") as writer:
        writer.write([(0, 0, 5, "send", 0, 0, (1,), 3, 64, None, None)])
        writer.write([(1, 0, 9, "deliver", 0, 0, None, None, None, "why", 4)])
        writer.finish(runs_row("r"))
    batches = list(read_events([tmp_path]))
    assert [batch.schema for batch in batches] == [EVENTS, EVENTS]
    assert batches[0].to_pylist()[0]["destinations"] == [1]
    assert batches[1].to_pylist()[0]["detail"] == "why"
    [row] = read_runs([tmp_path])
    assert (row["run"], row["nodes"], row["complete"], row["lost"]) == ("r", 3, True, None)


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    trace(tmp_path, [event("r", 0, 0)], ["r"])
    [batch] = read_events([tmp_path], ["step", "node"])
    assert batch.schema.names == ["step", "node"]


def test_events_come_run_by_run_whatever_file_they_are_in(tmp_path: Path) -> None:
    trace(tmp_path, [event("b", 0, 0), event("a", 0, 0), event("b", 1, 0)], ["a", "b"])
    store(tmp_path / "events" / "more.parquet", [event("a", 0, 1)], EVENTS)
    assert everything([tmp_path]) == {"a": [(0, 0), (0, 1)], "b": [(0, 0), (1, 0)]}


def test_only_the_kinds_asked_for_are_read(tmp_path: Path) -> None:
    trace(tmp_path, [event("r", 0, 0, "send"), event("r", 0, 1), event("s", 0, 0, "send")], ["r", "s"])
    assert everything([tmp_path], kinds={"deliver"}) == {"r": [(0, 1)], "s": []}


def test_a_hive_partitioned_trace_takes_columns_from_its_folders(tmp_path: Path) -> None:
    outer = tmp_path / "run=not-this-one"
    for run in ("007", "a b"):
        rows = [{key: value for key, value in event(run, 2, 0).items() if key not in {"run", "node"}}]
        schema = pa.schema([field for field in EVENTS if field.name not in {"run", "node"}])
        store(outer / "events" / f"run={run.replace(' ', '%20')}" / "node=2" / "part-0.parquet", rows, schema)
        store(outer / "runs" / f"{run}.parquet", [runs_row(run)], RUNS)
    (outer / "events" / "_SUCCESS").touch()
    assert everything([outer]) == {"007": [(2, 0)], "a b": [(2, 0)]}
    assert [row["run"] for row in read_runs([outer])] == ["007", "a b"]


def test_several_folders_are_read_together(tmp_path: Path) -> None:
    first = trace(tmp_path / "1", [event("live", 0, 0)], ["live"])
    second = trace(tmp_path / "2", [event("live", 1, 0)], ["live"])
    assert everything([first, second]) == {"live": [(0, 0), (1, 0)]}
    assert [row["run"] for row in read_runs([first, second])] == ["live", "live"]


def test_hidden_files_and_folders_are_passed_over(tmp_path: Path) -> None:
    trace(tmp_path, [event("r", 0, 0)], ["r"])
    for name in ("_half.parquet", ".half.parquet", "_temporary/0/part.parquet"):
        path = tmp_path / "events" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("no Parquet at all")
    assert everything([tmp_path]) == {"r": [(0, 0)]}


def test_other_widths_and_makes_of_the_same_types_are_read(tmp_path: Path) -> None:
    trace(tmp_path, [], ["r"])
    table = pa.table(
        {
            "run": pa.array(["r", "r"]).dictionary_encode(),
            "node": pa.array([0, 1], pa.int64()),
            "step": pa.array([0, 0], pa.uint8()),
            "time": pa.array([1, 2], pa.int32()),
            "event": pa.array(["send", "deliver"], pa.large_string()),
            "source": pa.array([0, 0], pa.int16()),
            "seq": pa.array([0, 0], pa.int32()),
            "destinations": pa.array([[1, 2], None], pa.large_list(pa.int64())),
            "priority": pa.nulls(2),
            "size": pa.nulls(2),
            "detail": pa.nulls(2),
            "colour": pa.array(["red", "blue"]),
        }
    )
    pq.write_table(table, tmp_path / "events" / "e.parquet")
    [batch] = read_events([tmp_path])
    assert batch.schema == EVENTS
    assert batch.column("destinations").to_pylist() == [[1, 2], None]


def test_a_trace_without_the_later_columns_is_read(tmp_path: Path) -> None:
    trace(tmp_path, [], [])
    early_events = pa.schema([field for field in EVENTS if field.name != "transmission"])
    store(tmp_path / "events" / "e.parquet", [event("r", 0, 0)], early_events)
    store(tmp_path / "runs" / "r.parquet", [runs_row("r")], pa.schema(list(RUNS)[:7]))
    [batch] = read_events([tmp_path])
    assert batch.column("transmission").to_pylist() == [None]
    assert read_runs([tmp_path])[0]["stalled"] is None


def drop(path: Path, column: str) -> None:
    table = pq.ParquetFile(path).read().drop_columns([column])
    pq.write_table(table, path)


def retype(path: Path, column: str, values: pa.Array) -> None:
    table = pq.ParquetFile(path).read()
    table = table.set_column(table.schema.get_field_index(column), column, values)
    pq.write_table(table, path)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def hollow(path: Path) -> None:
    """The footer is whole, the pages before it are not."""
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + b"\xff" * (len(whole) // 4) + whole[4 + len(whole) // 4 :])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (truncate, "damaged or not a Parquet file"),
        (hollow, "damaged or not a Parquet file"),
        (lambda path: path.write_text("colour,size"), "damaged or not a Parquet file"),
        (lambda path: drop(path, "step"), "no column 'step'.*write the trace again"),
        (lambda path: drop(path, "destinations"), "no column 'destinations'"),
        (lambda path: retype(path, "node", pa.array(["E1"])), "'node' is of type string; a trace has int32"),
        (lambda path: retype(path, "seq", pa.array([0.5])), "'seq' is of type double; a trace has int64"),
        (lambda path: retype(path, "destinations", pa.array([["E1"]])), "'destinations' is of type list"),
        (lambda path: retype(path, "destinations", pa.array([7])), "'destinations' is of type int64"),
        (lambda path: retype(path, "destinations", pa.array([[0, None]])), "'destinations' must not contain nulls"),
        (lambda path: retype(path, "node", pa.array([1 << 40])), "'node' does not fit int32"),
        (lambda path: retype(path, "node", pa.array([None], pa.int32())), "'node' must not be null, but 1 row"),
    ],
)
def test_a_spoiled_events_file_is_named(tmp_path: Path, spoil: Callable[[Path], object], words: str) -> None:
    trace(tmp_path, [event("r", 0, 0)], ["r"])
    path = tmp_path / "events" / "e.parquet"
    spoil(path)
    with pytest.raises(TraceError, match=words) as caught:
        list(read_events([tmp_path]))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "spoil", [truncate, hollow, lambda path: drop(path, "run"), lambda path: retype(path, "event", pa.array([7]))]
)
def test_a_spoiled_events_file_is_named_run_by_run_too(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    trace(tmp_path, [event("r", 0, 0)], ["r"])
    spoil(tmp_path / "events" / "e.parquet")
    with pytest.raises(TraceError, match=r"e\.parquet"):
        everything([tmp_path])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (truncate, "damaged or not a Parquet file"),
        (lambda path: drop(path, "complete"), "no column 'complete'"),
        (lambda path: retype(path, "complete", pa.array(["yes"])), "'complete' is of type string; a trace has bool"),
        (lambda path: retype(path, "run", pa.array([None], pa.string())), "'run' must not be null"),
    ],
)
def test_a_spoiled_runs_file_is_named(tmp_path: Path, spoil: Callable[[Path], object], words: str) -> None:
    trace(tmp_path, [event("r", 0, 0)], ["r"])
    path = tmp_path / "runs" / "r.parquet"
    spoil(path)
    with pytest.raises(TraceError, match=words) as caught:
        read_runs([tmp_path])
    assert str(path) in str(caught.value)


def test_a_folder_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="is not a trace: it has no folder runs/"):
        read_runs([tmp_path])
    with pytest.raises(TraceError, match="nowhere does not exist"):
        read_runs([tmp_path / "nowhere"])
    (tmp_path / "events").mkdir()
    with pytest.raises(TraceError, match="holds no complete trace"):
        list(read_events([tmp_path]))


def test_one_bad_folder_among_good_ones_is_named(tmp_path: Path) -> None:
    good = trace(tmp_path / "good", [event("r", 0, 0)], ["r"])
    with pytest.raises(TraceError, match="bad does not exist"):
        read_runs([good, tmp_path / "bad"])
