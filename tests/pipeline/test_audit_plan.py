"""How an audit is planned: files are opened once, and tasks are cut by what they have to read."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ordercast.pipeline.audit.engine import Engine, audit, audit_opened
from ordercast.pipeline.audit.partitioned import long_run
from ordercast.pipeline.audit.partitioned.audit import is_long
from ordercast.pipeline.audit.plan import AuditTask, EventLocation, Size, audit_tasks, in_batches, open_trace
from ordercast.pipeline.audit.sorted_copy import part_of
from tests.pipeline.traces import random_runs, write

UNBOUNDED = Size(rows=10**12, bytes=10**12, files=10**12)


def task(*files: str, rows: int = 1, volume: int = 1) -> AuditTask:
    return AuditTask(
        {"run": "r"}, tuple(EventLocation(file, {}, (0,), (rows,), shared=False) for file in files), rows, volume
    )


def numbers_in(tasks: list[AuditTask], most: Size) -> list[tuple[int, ...]]:
    return [batch.numbers for batch in in_batches(dict(enumerate(tasks)), most)]


def test_five_thousand_tiny_files_are_many_tasks() -> None:
    tiny = [task(f"part-{number:04}") for number in range(5_000)]
    found = numbers_in(tiny, UNBOUNDED._replace(files=64))
    assert len(found) == 79
    assert max(map(len, found)) == 64


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (UNBOUNDED, [(0, 1, 2, 3)]),
        (UNBOUNDED._replace(rows=10), [(0, 1), (2, 3)]),
        (UNBOUNDED._replace(rows=9), [(0,), (1,), (2,), (3,)]),
        (UNBOUNDED._replace(bytes=250), [(0, 1), (2,), (3,)]),
        (UNBOUNDED._replace(files=1), [(0, 1), (2, 3)]),
        (UNBOUNDED._replace(bytes=1), [(0,), (1,), (2,), (3,)]),
    ],
)
def test_tasks_are_cut_by_rows_bytes_and_files(most: Size, expected: list[tuple[int, ...]]) -> None:
    """Two files with two runs each; of those in the second the bytes are twice as many."""
    tasks = [task(file, rows=5, volume=volume) for file, volume in (("a", 100), ("a", 100), ("b", 200), ("b", 200))]
    assert numbers_in(tasks, most) == expected


def test_a_run_in_many_files_is_audited_in_partitions() -> None:
    assert not is_long(task(*map(str, range(256))))
    assert is_long(task(*map(str, range(257))))


def test_a_file_that_several_runs_share_counts_once_for_all_of_them(tmp_path: Path) -> None:
    """The rows and bytes of its row groups are divided among the runs that are in them."""
    folder = write(tmp_path, random_runs("shared", 6), runs_in_a_file=6)
    (path,) = (folder / "events").iterdir()
    tasks = audit_tasks([folder])
    rows = pq.read_metadata(path).num_rows
    assert rows - len(tasks) < sum(one.rows for one in tasks) <= rows


def test_the_row_groups_of_an_index_task_are_cut_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_run, "ROWS_OF_AN_INDEX_TASK", 100)
    monkeypatch.setattr(long_run, "GROUPS_OF_AN_INDEX_TASK", 4)
    rows = [50, 50, 1, 300, 40, 1, 1, 1, 1, 1]
    assert list(long_run.index_tasks(rows)) == [(0, 2), (2, 3), (3, 4), (4, 8), (8, 10)]
    assert list(long_run.index_tasks([])) == []


def test_planning_opens_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, random_runs("opened", 12), runs_in_a_file=3)
    opened: list[str] = []
    parquet_file = pq.ParquetFile

    def counting(source: Any, *about: Any, **more: Any) -> pq.ParquetFile:
        opened.append(str(source))
        return parquet_file(source, *about, **more)

    monkeypatch.setattr(pq, "ParquetFile", counting)
    trace = open_trace([folder])
    tasks = audit_tasks(trace)
    assert len(tasks) == 12
    events = [path for path in opened if "/events/" in path]
    assert len(events) == len(set(events)) == 4
    assert trace.events == sum(pq.read_metadata(path).num_rows for path in (folder / "events").iterdir())
    assert audit_opened(trace, engine=Engine.VECTORISED).as_document() == audit([folder]).as_document()


def test_rows_are_divided_by_all_columns_that_they_are_sorted_by() -> None:
    """Also where all times are equal, and where a bound is a row."""
    chance = np.random.default_rng(3)
    for most in (1, 3, 50):
        rows = [tuple(row) for row in chance.integers(0, most, (200, 3)).tolist()]
        bounds = sorted(chance.permutation(rows)[:9].tolist())
        found = part_of(list(np.array(rows).T), list(np.array(bounds).T))
        assert found.tolist() == [sum(tuple(bound) < row for bound in bounds) for row in rows]
