"""A growing trace is followed by Spark: files come one by one, and a restart loses and repeats nothing."""

import logging
import os
import shutil
from pathlib import Path
from threading import Thread
from time import sleep

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.stream import follower
from ordercast.pipeline.audit.stream.follow import CHECKPOINT, follow
from ordercast.pipeline.audit.stream.follower import Follower
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
    table = pa.Table.from_batches([batch_of(rows[:60])])
    first = Follower(tmp_path, tmp_path / "remembered", Service.TOTAL)
    first.take_events(table, 0)
    again = Follower(tmp_path, tmp_path / "remembered", Service.TOTAL)
    assert again.state.batch == 0
    again.take(None, 0)  # type: ignore[arg-type] # a batch that would fail if it were looked at
    again.take_events(pa.Table.from_batches([batch_of(rows[60:])]), 1)
    assert again.state.witnesses == []
    with pytest.raises(ConfigError, match="is the checkpoint of an audit by to"):
        Follower(tmp_path, tmp_path / "remembered", Service.PARTIAL)
    again.file.write_bytes(msgspec.msgpack.encode({"batch": 3, "service": "to", "runs": {}}))
    with pytest.raises(ConfigError, match="was written by another version; remove it to start again"):
        Follower(tmp_path, tmp_path / "remembered", Service.TOTAL)
    shutil.rmtree(tmp_path / "remembered")
    assert Follower(tmp_path, tmp_path / "remembered", Service.PARTIAL).state.batch == -1


def test_a_batch_that_some_runs_have_already_is_added_to_the_others_only(tmp_path: Path) -> None:
    """Who followed was killed before it had noted the batch: what was found is told, and nothing twice."""
    rows = long_enough("half").rows()
    deliveries = [row for row in rows if row[EventField.EVENT] == "deliver"]
    again = [(deliveries[0][0], 5_000, *deliveries[0][2:])]
    table = pa.Table.from_batches([batch_of(rows), batch_of(rows, "other")])
    first = Follower(tmp_path, tmp_path / "half", Service.TOTAL)
    first.take_events(table.filter(pc.equal(table.column("run"), "r")), 0)
    first.file.unlink()
    second = Follower(tmp_path, tmp_path / "half", Service.TOTAL)
    second.take_events(table, 0)
    assert (second.state.witnesses, second.state.batch) == ([], 0)
    second.take_events(pa.Table.from_batches([batch_of(again), batch_of(again, "other")]), 1)
    second.state.witnesses = []
    second.take_events(pa.Table.from_batches([batch_of(again)]), 1)
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
    monkeypatch.setattr(follower, "is_embedded", lambda _: False)
    rows = long_enough("judged later").rows()
    add(tmp_path, 0, rows, other=rows[:7])
    with pytest.raises(TraceError, match="--service"):
        follow(spark, tmp_path, until_idle=30)
    assert follow(spark, tmp_path, Service.TOTAL, until_idle=1.5) == []
    known = Follower(tmp_path, tmp_path / CHECKPOINT, Service.TOTAL)
    assert known.prefix("r").steps == last_steps(rows)
    assert known.prefix("a/b").steps == last_steps(rows[:7])
