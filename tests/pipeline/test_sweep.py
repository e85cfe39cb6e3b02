"""Sweeps on Spark: the bytes that a single process writes, failures as rows, and going on after being stopped."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ordercast.audit import audit
from ordercast.model.errors import PipelineError, TraceError
from ordercast.model.runs import RunConfig
from ordercast.pipeline import measure, sweep
from ordercast.pipeline.sweep import sweep as sweeping
from ordercast.pipeline.sweep import worker
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.simulator import simulate
from ordercast.simulator.simulate import runs_row
from tests.pipeline.runs import bytes_in, some_runs
from tests.pipeline.test_worker import swept

RUNS = some_runs(24)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes, without Spark."""
    folder = tmp_path_factory.mktemp("reference")
    swept(RUNS, folder)
    return bytes_in(folder)


def without_manifest(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in bytes_in(folder).items() if name != sweeping.MANIFEST}


@contextmanager
def sabotaged(how: Callable[[RunConfig], None]) -> Iterator[None]:
    """Lets every simulation in Spark's workers begin with this."""
    real = simulate

    def simulate_badly(config: RunConfig, **options: Any) -> Any:
        how(config)
        return real(config, **options)

    def task(chunks: Iterator[pa.RecordBatch], **options: Any) -> Iterator[pa.RecordBatch]:
        with patch.object(worker, "simulate", simulate_badly):
            yield from worker.sweep_chunks(chunks, **options)

    with patch.object(sweeping, "sweep_chunks", task):
        yield


# --- what a sweep writes ---


def test_the_bytes_are_those_of_a_single_process(
    spark: SparkSession, tmp_path: Path, reference: dict[str, bytes]
) -> None:
    result = sweep(spark, [*RUNS[::-1], RUNS[3]], tmp_path / "out")
    assert without_manifest(tmp_path / "out") == reference
    assert (result.runs, result.found, result.complete, result.failed) == (24, 0, 24, {})
    assert audit([tmp_path / "out"]).runs == 24


def test_measured_rows_are_those_of_the_simulator(spark: SparkSession) -> None:
    [impossible] = some_runs(1, first_seed=2**63)
    rows = measure(spark, [*RUNS[:5], impossible])
    assert [row["run"] for row in rows] == [config.name() for config in (*RUNS[:5], impossible)]
    for row, config in zip(rows, RUNS[:5], strict=False):
        expected = runs_row(simulate(config))
        assert {name: row[name] for name in expected} == expected
    assert "64 bits" in rows[-1]["error"]
    assert measure(spark, []) == []


def test_runs_that_raise_dawdle_or_kill_become_rows(spark: SparkSession, tmp_path: Path) -> None:
    raising, dawdling, killing, killing_too = RUNS[2], RUNS[5], RUNS[0], RUNS[3]
    names = {config.name(): word for config, word in ((raising, "raise"), (dawdling, "dawdle"))}
    names |= {config.name(): "kill" for config in (killing, killing_too)}

    def misbehave(config: RunConfig) -> None:
        match names.get(config.name()):
            case "raise":
                raise ZeroDivisionError("over a stone")
            case "dawdle":
                time.sleep(60)
            case "kill":
                os._exit(7)

    with sabotaged(misbehave):
        result = sweep(spark, RUNS[:8], tmp_path / "out", time_limit=3)
    died = "its process died, and died again when it was run alone"
    assert result.failed == {
        raising.name(): "ZeroDivisionError: over a stone",
        dawdling.name(): "took longer than the time limit of 3 s",
        killing.name(): died,
        killing_too.name(): died,
    }
    assert result.complete == 4
    verdict = audit([tmp_path / "out"])
    assert verdict.holds
    assert verdict.runs == 4
    assert not list((tmp_path / "out").rglob("_*"))


# --- stopped and gone on with ---


def test_only_what_is_missing_is_done(spark: SparkSession, tmp_path: Path, reference: dict[str, bytes]) -> None:
    out = tmp_path / "out"
    sweep(spark, RUNS, out)
    for number in (1, 4):
        (out / f"runs/{worker.chunk_name(number)}.parquet").unlink()
    (out / f"events/{worker.chunk_name(1)}.parquet").unlink()
    (out / "events/_chunk-000001.parquet.somewhere.1.unfinished").write_text("half")
    (out / worker.IN_PROGRESS).mkdir()
    (out / worker.IN_PROGRESS / worker.chunk_name(1)).write_text(RUNS[0].name())
    before = {path: path.stat().st_ino for path in (out / "runs").iterdir()}
    told: list[tuple[int, int]] = []
    result = sweep(spark, RUNS, out, resume=True, progress=lambda done, total: told.append((done, total)))
    again = sum(len(places) for number, places in enumerate(in_chunks(RUNS)) if number in {1, 4})
    assert result.found == 24 - again
    assert without_manifest(out) == reference
    assert all(path.stat().st_ino == inode for path, inode in before.items())
    assert told[-1] == (24, 24)


def test_a_failure_of_spark_loses_nothing(spark: SparkSession, tmp_path: Path, reference: dict[str, bytes]) -> None:
    """Here Spark's failure is that a task raises before it has begun any run."""
    out = tmp_path / "out"
    last = worker.chunk_name(len(in_chunks(RUNS)) - 1)

    def task(chunks: Iterator[pa.RecordBatch], **options: Any) -> Iterator[pa.RecordBatch]:
        for batch in chunks:
            if worker.chunk_name(batch.column(worker.CHUNK)[0].as_py()) == last:
                raise RuntimeError("the cluster is on fire")
            yield from worker.sweep_chunks(iter([batch]), **options)

    with patch.object(sweeping, "sweep_chunks", task), pytest.raises(PipelineError, match=r"Spark failed: .*--resume"):
        sweep(spark, RUNS, out)
    landed = without_manifest(out)
    assert landed == {name: reference[name] for name in landed}
    sweep(spark, RUNS, out, resume=True)
    assert without_manifest(out) == reference


def test_a_trace_that_cannot_be_written_is_told_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events").write_text("in the way")
    with pytest.raises(
        TraceError, match=r"cannot write chunk-\d+ of the trace .*File exists.*--resume continues"
    ) as told:
        sweep(spark, RUNS[:2], tmp_path)
    assert "\n" not in str(told.value)
    (tmp_path / "events").unlink()
    assert sweep(spark, RUNS[:2], tmp_path, resume=True).complete == 2


def cancelled(raised: type[BaseException]) -> Any:
    """A session in which an interrupt, or something else, is hidden by the failure of the job that it cancelled."""

    def to_arrow() -> None:
        try:
            raise raised
        finally:
            raise RuntimeError("Job 7 cancelled")

    table = Mock(toArrow=to_arrow)
    session = Mock()
    session.createDataFrame().repartitionById().drop().mapInArrow.return_value = table
    return session


def test_an_interrupt_is_not_taken_for_a_failure_of_spark(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        sweep(cancelled(KeyboardInterrupt), RUNS, tmp_path)
    with pytest.raises(
        PipelineError, match="Spark failed: Job 7 cancelled; finished runs are kept, and --resume continues"
    ):
        sweep(cancelled(OSError), RUNS, tmp_path, resume=True)
