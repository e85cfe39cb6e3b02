"""A growing trace is followed by Spark: files come one by one, and a restart loses and repeats nothing."""

import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from time import sleep

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.audit.violations import Violation
from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.stream import follow as following
from ordercast.pipeline.audit.stream import new_files, run_follower
from ordercast.pipeline.audit.stream.follow import CHECKPOINT, follow
from ordercast.pipeline.audit.stream.follower import Follower, take_here
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.pipeline.audit.stream.run_follower import Found, NewEvents
from ordercast.trace.schema import EventField
from tests.audit.figures import Row
from tests.pipeline.random_runs import batch_of, long_enough


def add(folder: Path, number: int, rows: list[Row], other: list[Row] | None = None) -> None:
    """A file appears, whole; `other`: rows of another run in it."""
    hidden = folder / f"events/_{number}.parquet"
    hidden.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_batches([batch_of(rows), batch_of(other or [], "a/b")]), hidden)
    hidden.rename(hidden.with_name(f"part-{number:04}.parquet"))


def last_steps(rows: list[Row]) -> dict[int, int]:
    """Of each node."""
    return {row[EventField.NODE]: row[EventField.STEP] for row in sorted(rows)}


def test_a_good_trace_is_followed_to_its_end_and_once_only(spark: SparkSession, tmp_path: Path) -> None:
    rows = long_enough("good").rows()
    add(tmp_path, 0, rows[:50])
    add(tmp_path, 1, rows[50:90])
    level = logging.getLogger("py4j").level
    assert follow(spark, tmp_path, Service.TOTAL, until_idle=1.5) == []
    assert logging.getLogger("py4j").level == level != logging.CRITICAL, "others log as before"
    assert (tmp_path / CHECKPOINT).is_dir()
    add(tmp_path, 2, rows[:20])  # it does not belong there: whoever is told so may remove it
    with pytest.raises(TraceError, match="files of a growing trace must appear in the order of steps"):
        follow(spark, tmp_path, Service.TOTAL, until_idle=30)
    (tmp_path / "events/part-0002.parquet").unlink()
    add(tmp_path, 3, rows[90:])
    old = tmp_path / "events/part-0003.parquet"
    os.utime(old, (0, old.stat().st_mtime - 30 * 86400))  # copied here with its date
    # If the first two files were judged again, everything in them would have been given twice.
    assert follow(spark, tmp_path, Service.TOTAL, until_idle=1.5) == []
    known = Follower(tmp_path, tmp_path / CHECKPOINT, Service.TOTAL).prefix("r")
    assert known.steps == last_steps(rows)


def test_a_violation_is_told_within_seconds_of_its_file(spark: SparkSession, tmp_path: Path) -> None:
    run = long_enough("bad")
    log = run.logs[1]
    places = [place for place, what in enumerate(log) if what[1] == "deliver"]
    place = next(at for at in places[20:] if log[at][2][0] != log[at + 1][2][0])  # type: ignore[index]
    log[place], log[place + 1] = (log[place][0], *log[place + 1][1:]), (log[place + 1][0], *log[place][1:])
    rows = run.rows()
    add(tmp_path, 0, rows[:40])
    found: list[str] = []

    def watch() -> None:
        found.extend(witness.violation.breaks for witness in follow(spark, tmp_path, Service.TOTAL, until_idle=60))

    watching = Thread(target=watch)
    watching.start()
    sleep(2)
    add(tmp_path, 1, rows[40:])
    watching.join(30)
    assert not watching.is_alive()
    assert {"same_order", "no_cycle"} <= set(found)


def test_an_outcome_that_is_known_is_not_judged_again(tmp_path: Path) -> None:
    rows = long_enough("again").rows()
    add(tmp_path, 0, rows[:60])
    first = Follower(tmp_path, tmp_path / "remembered", Service.TOTAL)
    assert first.take(take_here) == []
    assert first.take(take_here) is None
    again = Follower(tmp_path, tmp_path / "remembered", Service.TOTAL)
    assert again.state.batch == 0
    assert again.take(take_here) is None
    add(tmp_path, 1, rows[60:])
    assert again.take(take_here) == []
    assert (again.state.witnesses, again.state.batch) == ([], 1)
    with pytest.raises(ConfigError, match="is the checkpoint of an audit by to"):
        Follower(tmp_path, tmp_path / "remembered", Service.PARTIAL)
    (tmp_path / "remembered/state.msgpack").write_bytes(
        msgspec.msgpack.encode({"batch": 3, "service": "to", "runs": {}})
    )
    with pytest.raises(ConfigError, match="was written by another version; remove it to start again"):
        Follower(tmp_path, tmp_path / "remembered", Service.TOTAL)
    shutil.rmtree(tmp_path / "remembered")
    assert Follower(tmp_path, tmp_path / "remembered", Service.PARTIAL).state.batch == -1


def test_files_are_taken_in_the_order_in_which_they_were_written_and_not_too_many_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each hundredth batch has the names of all files before it; the batches before it are forgotten."""
    monkeypatch.setattr(new_files, "FILES_OF_A_BATCH", 2)
    monkeypatch.setattr(new_files, "_KEPT", 3)
    rows = long_enough("many files").rows()
    for number in range(11):
        add(tmp_path, 10 - number, rows[number * 9 : number * 9 + 9 if number < 10 else None])
        os.utime(tmp_path / f"events/part-{10 - number:04}.parquet", (1_000 + number, 1_000 + number))
    for batch in range(6):
        follower = Follower(tmp_path, tmp_path / "state", Service.TOTAL)
        assert follower.take(take_here) == []
        assert follower.state.batch == batch
    assert Follower(tmp_path, tmp_path / "state", Service.TOTAL).take(take_here) is None
    assert follower.prefix("r").steps == last_steps(rows)
    assert follower.state.witnesses == []
    assert sorted(path.name for path in (tmp_path / "state/batches").iterdir()) == [
        f"{number:09}.msgpack" for number in (3, 4, 5)
    ]


def test_a_file_that_holds_much_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_follower, "_AT_ONCE", 30)
    grown = list[int]()

    def grow(_: Prefix, events: pa.RecordBatch, *__: object, **___: object) -> list[Violation]:
        grown.append(events.num_rows)
        return []

    monkeypatch.setattr(Prefix, "grow", grow)
    rows = long_enough("large").rows()
    (tmp_path / "events").mkdir()
    whole = pa.Table.from_batches([batch_of(rows)])
    pq.write_table(whole, tmp_path / "events/one.parquet", row_group_size=20)
    assert Follower(tmp_path, tmp_path / "state", Service.TOTAL).take(take_here) == []
    assert sum(grown) == len(rows)
    assert grown[:-1] == [40] * (len(rows) // 40)


def test_a_batch_that_some_runs_have_already_is_added_to_the_others_only(tmp_path: Path) -> None:
    """Who followed was killed before it had noted the batch: what was found is told, and nothing twice."""
    rows = long_enough("half").rows()
    deliveries = [row for row in rows if row[EventField.EVENT] == "deliver"]
    again = [(deliveries[0][0], 5_000, *deliveries[0][2:])]

    def killed(tasks: Sequence[NewEvents]) -> list[Found]:
        assert [task.run for task in tasks] == ["a/b", "r"]
        take_here(tasks[1:])
        raise KeyboardInterrupt

    add(tmp_path, 0, rows, other=rows)
    with pytest.raises(KeyboardInterrupt):
        Follower(tmp_path, tmp_path / "half", Service.TOTAL).take(killed)
    add(tmp_path, 1, again)
    second = Follower(tmp_path, tmp_path / "half", Service.TOTAL)
    second.take(take_here)
    assert (second.state.witnesses, second.state.batch) == ([], 0)
    assert [second.prefix(run).steps for run in ("r", "a/b")] == [last_steps(rows)] * 2
    second.take(take_here)
    assert [(witness.run, witness.violation.breaks) for witness in second.state.witnesses] == [("r", "complete")]


def test_what_cannot_be_followed_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no folder events/"):
        follow(spark, tmp_path, Service.TOTAL, until_idle=1)
    add(tmp_path, 0, long_enough("no service").rows())
    with pytest.raises(TraceError, match="--service"):
        follow(spark, tmp_path, until_idle=30)


def test_what_could_not_be_judged_is_not_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two runs, by tasks as on a cluster, which have the states of their runs in files of their own."""
    monkeypatch.setattr(following, "is_embedded", lambda _: False)
    rows = long_enough("judged later").rows()
    add(tmp_path, 0, rows, other=rows[:7])
    with pytest.raises(TraceError, match="--service"):
        follow(spark, tmp_path, until_idle=30)
    assert follow(spark, tmp_path, Service.TOTAL, until_idle=1.5) == []
    known = Follower(tmp_path, tmp_path / CHECKPOINT, Service.TOTAL)
    assert known.prefix("r").steps == last_steps(rows)
    assert known.prefix("a/b").steps == last_steps(rows[:7])
