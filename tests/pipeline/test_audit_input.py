"""What is no trace is refused with one sentence that names the file or the value, in this process and on Spark."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.audit.reference import audit
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned import audit as partitioned_audit
from ordercast.pipeline.audit.vectorised import audit_vectorised
from tests.pipeline.random_runs import RandomRun, random_run
from tests.pipeline.traces import random_runs, write

EVENTS = "events/part-0.parquet"


def some_run() -> RandomRun:
    chance = Random("input")
    while True:
        run = random_run(chance, Service.SELECTIVE_TOTAL, levels=True, messages=60)
        if len(run.rows()) > 300:
            return run


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def truncate(folder: Path) -> None:
    path = folder / EVENTS
    path.write_bytes(path.read_bytes()[:-40])


def scratch(folder: Path) -> None:
    """Damages the pages and leaves the footer whole."""
    path = folder / EVENTS
    content = bytearray(path.read_bytes())
    for at in range(100, len(content) // 2):
        content[at] ^= 0xA5
    path.write_bytes(content)


def foreign(folder: Path) -> None:
    pq.write_table(pa.table({"city": ["Kyoto"]}), folder / "events/other.parquet")


def lacking(folder: Path) -> None:
    rewrite(folder / EVENTS, lambda table: table.drop_columns(["step"]))


def mistyped(folder: Path) -> None:
    rewrite(folder / EVENTS, lambda table: table.set_column(2, "step", table.column("step").cast(pa.float64())))


def empty(folder: Path) -> None:
    (folder / EVENTS).unlink()


def without_events(folder: Path) -> None:
    rewrite(folder / EVENTS, lambda table: table.slice(0, 0))


def without_row(folder: Path) -> None:
    rewrite(folder / "runs/part-0.parquet", lambda table: table.slice(0, 0))


def twice(folder: Path) -> None:
    (folder / "events/copy.parquet").write_bytes((folder / EVENTS).read_bytes())


def two_of_one_name(folder: Path) -> None:
    change = lambda table: table.set_column(2, "nodes", pa.array([9], pa.int32()))  # noqa: E731
    (folder / "runs/copy.parquet").write_bytes((folder / "runs/part-0.parquet").read_bytes())
    rewrite(folder / "runs/copy.parquet", change)


def null_step(folder: Path) -> None:
    change = lambda table: table.set_column(2, "step", pa.array([None] * table.num_rows, pa.int64()))  # noqa: E731
    rewrite(folder / EVENTS, change)


def too_many_nodes(folder: Path) -> None:
    change = lambda table: table.set_column(2, "nodes", pa.array([2**31 - 1], pa.int32()))  # noqa: E731
    rewrite(folder / "runs/part-0.parquet", change)


def empty_places(folder: Path) -> None:
    lists = pa.list_(pa.int32())
    change = lambda table: table.set_column(7, "destinations", pa.array([[0, None]] * table.num_rows, lists))  # noqa: E731
    rewrite(folder / EVENTS, change)


BAD: list[tuple[Callable[[Path], None], str]] = [
    (truncate, r"cannot read .*events/part-0.parquet: [^.;]*[^.;]; it is damaged or not a Parquet file: copy it again"),
    (scratch, r"events/part-0.parquet"),
    (foreign, r"events/other.parquet has no column '\w+', so it is not part of a trace; remove the file"),
    (lacking, r"events/part-0.parquet has no column 'step'"),
    (mistyped, r"events/part-0.parquet: column 'step' is of type double; a trace has int64 there"),
    (empty, r"holds no complete trace: .*events has no .parquet file"),
    (without_events, r"run r was recorded without its events"),
    (without_row, r"run r has events but no row in runs/"),
    (twice, r"two events of E1 have the step \d+; each node is recorded once, so give no two folders"),
    (two_of_one_name, r"run r is recorded with nodes \d and with \d; audit folders of different groups one by one"),
    (too_many_nodes, r"run r has 2,147,483,647 nodes; a group has 1 to 65,536"),
    (empty_places, r"events/part-0.parquet: lists of column 'destinations' must not contain nulls"),
    (null_step, r"events/part-0.parquet: column 'step' must not be null, but \d+ rows are"),
]


def refusal(judge: Callable[[list[Path]], object], folder: Path) -> str:
    with pytest.raises(TraceError) as refused:
        judge([folder])
    sentence = str(refused.value)
    assert "\n" not in sentence.strip()
    return sentence


@pytest.mark.parametrize(("spoil", "sentence"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_no_trace_is_refused(tmp_path: Path, spoil: Callable[[Path], None], sentence: str) -> None:
    folder = write(tmp_path, {"r": some_run()}, rows_in_a_group=100)
    spoil(folder)
    assert re.search(sentence, refusal(lambda folders: audit_vectorised(folders, note=pytest.fail), folder))
    assert re.search(sentence, refusal(audit, folder))


def test_deliveries_without_sends_are_no_bad_input_but_a_violation(tmp_path: Path) -> None:
    run = some_run()
    run.logs = [[what for what in log if what[1] == "deliver"] for log in run.logs]
    folder = write(tmp_path, {"r": run})
    verdict = audit_vectorised([folder], note=pytest.fail)
    assert not verdict.findings["complete"].holds
    assert "which no node sent" in verdict.findings["complete"].witnesses[0].violation.sentence


def test_a_trace_of_another_program_need_not_have_details(tmp_path: Path) -> None:
    write(tmp_path, random_runs("no details", 3))
    expected = audit([tmp_path]).as_document()
    for file in (tmp_path / "events").iterdir():
        rewrite(file, lambda table: table.drop_columns(["detail", "size"]))
    assert audit([tmp_path]).as_document() == expected
    assert audit_vectorised([tmp_path]).as_document() == expected


@pytest.mark.parametrize("by", [("run",), ("event",), ("run", "event"), ("node",), ("priority",)], ids="-".join)
def test_a_hive_partitioned_trace_has_the_same_verdict(
    tmp_path: Path, by: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write(tmp_path / "whole", random_runs("hive", 4))
    hive = tmp_path / "hive"
    shutil.copytree(whole / "runs", hive / "runs")
    pq.write_to_dataset(pq.read_table(whole / "events"), hive / "events", partition_cols=list(by))
    expected = audit([whole]).as_document()
    assert audit([hive]).as_document() == expected
    assert audit_vectorised([hive]).as_document() == expected
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    holds = {name: finding.holds for name, finding in audit_vectorised([hive]).findings.items()}
    assert holds == {name: finding.holds for name, finding in audit([whole]).findings.items()}


def test_a_folder_of_rows_without_a_node_is_refused(tmp_path: Path) -> None:
    write(tmp_path, random_runs("hive null", 1))
    [file] = (tmp_path / "events").iterdir()
    rewrite(file, lambda table: table.drop_columns(["node"]))
    (tmp_path / "events/node=__HIVE_DEFAULT_PARTITION__").mkdir()
    file.rename(tmp_path / "events/node=__HIVE_DEFAULT_PARTITION__/0.parquet")
    with pytest.raises(TraceError, match="column 'node' must not be null, but its folder says that all rows are"):
        audit([tmp_path])
