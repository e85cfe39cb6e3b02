"""Audits on Spark end in the reference audit's document, whatever the layout of the trace."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from ordercast.audit.reference import audit as audit_by_reference
from ordercast.model.errors import TraceError
from ordercast.pipeline import audit, audit_tables, audit_to_tables
from ordercast.pipeline.audit import plan, sorted_copy
from ordercast.pipeline.audit import spark as on_spark
from ordercast.pipeline.audit.partitioned import audit as partitioned_audit
from ordercast.pipeline.audit.spark import audit_on_spark
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.arrow_schema import EVENTS, RUNS
from tests.pipeline.random_runs import long_enough
from tests.pipeline.test_audit_input import refusal, scratch, some_run
from tests.pipeline.test_audit_kernel import by_reference
from tests.pipeline.traces import random_runs, write


@pytest.mark.parametrize(("runs_in_a_file", "rows_in_a_group"), [(1, 50_000), (25, 40)])
def test_folders_are_judged_as_by_the_reference(
    spark: SparkSession, tmp_path: Path, runs_in_a_file: int, rows_in_a_group: int
) -> None:
    runs = random_runs(f"folders {runs_in_a_file}", 56)
    write(tmp_path, runs, runs_in_a_file=runs_in_a_file, rows_in_a_group=rows_in_a_group)
    expected = audit_by_reference([tmp_path])
    assert not expected.holds
    assert audit([tmp_path], spark=spark).as_document() == expected.as_document()


def test_tables_are_judged_as_by_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    runs = random_runs("tables", 21)
    write(tmp_path, runs, runs_in_a_file=7, rows_in_a_group=40)
    events = spark.read.schema(spark_schema(EVENTS)).parquet(str(tmp_path / "events"))
    rows = spark.read.schema(spark_schema(RUNS)).parquet(str(tmp_path / "runs"))
    judged = audit_tables(events, rows)
    found = {(row["run"], row["property"]): row for row in judged.verdicts.collect()}
    sentences: dict[Any, list[str]] = {}
    for row in judged.witnesses.collect():
        sentences.setdefault((row["run"], row["property"]), []).append(row["sentence"])
    for name, run in runs.items():
        verdict = by_reference(run)
        assert verdict is not None
        for promise, finding in verdict.findings.items():
            assert found[name, promise]["holds"] == finding.holds
            assert found[name, promise]["violations"] == finding.violations
            assert found[name, promise]["deliveries"] == verdict.deliveries
            assert sentences.get((name, promise), []) == [one.violation.sentence for one in finding.witnesses]
        for promise in verdict.not_recorded:
            assert found[name, promise]["recorded"] is False


def test_a_long_run_of_a_table_is_judged_in_partitions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside it short ones, a long one with a null, and a long one without a row; nothing that was written stays."""
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 100)
    monkeypatch.setattr(partitioned_audit, "ROWS_OF_A_PARTITION", 60)
    whole: list[str] = []
    monkeypatch.setattr(on_spark, "in_batches", lambda tasks, _: whole.extend(task.row["run"] for task in tasks))
    long, null, unknown = long_enough("table"), long_enough("null"), long_enough("unknown")
    del long.logs[0][next(at for at, what in enumerate(long.logs[0]) if what[1] == "deliver")]
    runs = {"long": long, "null": null, "unknown": unknown, **random_runs("short ones", 3)}
    write(tmp_path / "t", runs, runs_in_a_file=7)
    events = spark.read.schema(spark_schema(EVENTS)).parquet(str(tmp_path / "t/events"))
    rows = spark.read.parquet(str(tmp_path / "t/runs")).select("run", "protocol", "nodes").where("run != 'unknown'")
    spoilt = events.withColumn("step", sql.when((sql.col("run") != "null") | (sql.col("step") > 0), sql.col("step")))
    verdicts, witnesses = audit_tables(spoilt, rows, scratch=tmp_path / "scratch")
    found = verdicts.toArrow().to_pylist()
    errors = {row["run"]: row["error"] for row in found if row["error"]}
    assert "column 'step' of the table events must not be null" in errors["null"]
    assert "no row in runs" in errors["unknown"]
    assert {row["run"] for row in found} == set(runs)
    expected = by_reference(long)
    assert expected is not None
    assert {row["property"]: row["violations"] for row in found if row["run"] == "long" and row["recorded"]} == {
        name: finding.violations for name, finding in expected.findings.items()
    }
    assert [row["sentence"] for row in witnesses.where("run = 'long'").collect()] == [
        witness.violation.sentence for finding in expected.findings.values() for witness in finding.witnesses
    ]
    assert whole == []
    assert list((tmp_path / "scratch").iterdir()) == []


def test_tables_tell_what_cannot_be_judged(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, random_runs("broken tables", 2))
    events = spark.read.schema(spark_schema(EVENTS)).parquet(str(tmp_path / "events"))
    rows = spark.read.schema(spark_schema(RUNS)).parquet(str(tmp_path / "runs"))
    one, other = sorted(row["run"] for row in rows.collect())
    judged = audit_tables(events.where(f"run = '{one}'"), rows.where(f"run = '{other}'"))
    errors = {row["run"]: row["error"] for row in judged.verdicts.collect()}
    assert "no row in runs" in errors[one]
    assert "recorded without its events" in errors[other]


def test_a_run_that_contradicts_itself_is_an_error_for_people(spark: SparkSession, tmp_path: Path) -> None:
    runs = random_runs("contradiction", 3)
    run = next(iter(runs.values()))
    sender = next(node for node, log in enumerate(run.logs) if log)
    run.logs[sender].append((5_000, "send", (run.nodes, 7), (0,), None))
    write(tmp_path, runs)
    with pytest.raises(TraceError, match=f"contradicts itself: E{run.nodes + 1}#7 was sent at E{sender + 1}"):
        audit([tmp_path], spark=spark)


def test_tables_tell_runs_that_failed_from_runs_that_are_bad(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, random_runs("failed tables", 2))
    events = spark.read.schema(spark_schema(EVENTS)).parquet(str(tmp_path / "events"))
    rows = spark.read.schema(spark_schema(RUNS)).parquet(str(tmp_path / "runs"))
    failed, other = sorted(row["run"] for row in rows.collect())
    error = sql.when(sql.col("run") == failed, sql.lit("RuntimeError: it is lost"))
    judged = audit_tables(events.where(f"run = '{other}'"), rows.withColumn("error", error)).verdicts.collect()
    (row,) = [row for row in judged if row["run"] == failed]
    assert (row["property"], row["holds"]) == (None, None)
    assert row["error"] == "the run failed: RuntimeError: it is lost"
    assert all(row["error"] is None for row in judged if row["run"] == other)


@pytest.mark.parametrize("partitioned", [False, True])
def test_damage_that_only_a_worker_meets_is_told_as_well(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitioned: bool
) -> None:
    folder = write(tmp_path, {"r": some_run()}, rows_in_a_group=100)
    scratch(folder)
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0 if partitioned else 10**9)
    assert "events/part-0.parquet" in refusal(lambda folders: audit_on_spark(spark, folders), folder)


def test_spark_tells_it_too(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks ask where they run; so a run that says to have more events than there are shows it."""
    folder = write(tmp_path, {"r": long_enough("on Spark")})
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 10**15)

    def inflated(folders: plan.TraceFiles) -> list[plan.AuditTask]:
        return [plan.AuditTask(one.row, one.locations, 10**12) for one in plan.audit_tasks(folders)]

    monkeypatch.setattr(on_spark, "audit_tasks", inflated)
    with pytest.raises(TraceError, match="needs a single-task audit"):
        audit_on_spark(spark, [folder])


def test_events_in_any_order_are_sorted_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A good run and one that lost something, in a file that has the rows of both shuffled; the copy is removed."""
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    monkeypatch.setattr(partitioned_audit, "ROWS_OF_A_PARTITION", 60)
    monkeypatch.setattr(sorted_copy, "_ROWS_OF_A_TASK", 200)
    monkeypatch.setattr(sorted_copy, "_ROWS_OF_A_GROUP", 50)
    good, bad = long_enough("sorted"), long_enough("sorted and lost")
    lost = next(place for place, what in enumerate(bad.logs[0]) if what[1] == "deliver")
    del bad.logs[0][lost]
    folder = write(tmp_path, {"good": good, "bad": bad}, runs_in_a_file=2, rows_in_a_group=70)
    (path,) = (folder / "events").iterdir()
    table = pq.read_table(path)
    order = list(range(table.num_rows))
    Random(1).shuffle(order)
    pq.write_table(table.take(order), path, row_group_size=70)
    notes: list[str] = []
    found = audit([folder], spark=spark, note=notes.append)
    assert found.as_document() == audit_by_reference([folder]).as_document()
    assert not found.holds
    assert sorted(notes) == [
        f"run {run}: its events are not in the order of time, and are sorted first" for run in ("bad", "good")
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["events", "runs"]


def test_a_run_whose_times_say_nothing_is_sorted_by_steps(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times are those of other clocks, or of something else: each row has any, and rows come in any order."""
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    monkeypatch.setattr(partitioned_audit, "ROWS_OF_A_PARTITION", 60)
    monkeypatch.setattr(sorted_copy, "_ROWS_OF_A_TASK", 200)
    run = long_enough("sorted by steps")
    folder = write(tmp_path, {"r": run}, rows_in_a_group=70)
    (path,) = (folder / "events").iterdir()
    table = pq.read_table(path)
    chance = Random(2)
    times = pa.array([chance.randrange(10**9) for _ in range(table.num_rows)], pa.int64())
    table = table.set_column(table.schema.get_field_index("time"), table.schema.field("time"), times)
    order = list(range(table.num_rows))
    chance.shuffle(order)
    pq.write_table(table.take(order), path, row_group_size=70)
    (runs,) = (folder / "runs").iterdir()
    row = {**pq.read_table(runs).to_pylist()[0], "config": '{"log": {"one_clock": false}}'}
    pq.write_table(pa.Table.from_pylist([row], schema=RUNS), runs)
    notes: list[str] = []
    found = audit([folder], spark=spark, note=notes.append)
    assert found.as_document() == audit_by_reference([folder]).as_document()
    assert notes == [
        "run r: its events are not in the order of time, and are sorted first",
        "run r: its events are not in the order of steps, and are sorted first",
    ]


def test_verdicts_come_as_tables(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs, a long one, and one that contradicts itself, which is an error of its own row."""
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 500)
    runs = {**random_runs("tables", 25), "long": long_enough("tables")}
    folder = write(tmp_path, runs, runs_in_a_file=6)
    expected = audit_by_reference([folder])
    tables = audit_to_tables([str(folder)], spark=spark)
    rows = tables.verdicts.toArrow().to_pylist()
    assert {row["run"] for row in rows} == set(runs)
    for name, finding in expected.findings.items():
        assert sum(row["violations"] for row in rows if row["property"] == name and row["recorded"]) == (
            finding.violations
        )
    assert tables.witnesses.count() >= sum(len(finding.witnesses) for finding in expected.findings.values())
    text = tables.explain()
    assert f"{len(runs)} runs, {expected.deliveries:,} deliveries" in text


def test_an_error_of_a_run_is_a_row_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    bad = long_enough("contradiction")
    bad.logs[0][5] = (bad.logs[0][5][0], "deliver", None, None, None)
    folder = write(tmp_path, {"bad": bad, "good": long_enough("good")})
    rows = audit_to_tables([folder], spark=spark).verdicts.toArrow().to_pylist()
    [error] = [row for row in rows if row["run"] == "bad"]
    assert "contradicts itself" in error["error"]
    assert all(row["holds"] for row in rows if row["run"] == "good" and row["recorded"])
