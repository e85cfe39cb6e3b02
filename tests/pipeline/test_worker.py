"""What a task does with runs, without Spark: rows as the simulator has them, errors as rows, nothing from elsewhere."""

import gc
import signal
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import pyarrow as pa
import pytest

from ordercast.model.errors import TraceError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.sweep import worker
from ordercast.pipeline.sweep.chunks import cost, in_chunks
from ordercast.pipeline.sweep.worker import CHUNK, CHUNKS, CONFIGS, PLACES, measure_runs, run_one, sweep_chunks
from ordercast.pipeline.time_limit import OutOfTimeError, time_limit
from ordercast.simulator import simulate
from ordercast.simulator.simulate import runs_row
from ordercast.trace.arrow_schema import RUNS
from ordercast.trace.reader import read_runs
from tests.pipeline.runs import bytes_in, some_runs


def batches(configs: list[RunConfig], chunks: list[list[int]]) -> Iterator[pa.RecordBatch]:
    rows = [
        {CHUNK: number, PLACES: places, CONFIGS: [configs[place].to_json() for place in places]}
        for number, places in enumerate(chunks)
    ]
    yield from pa.Table.from_pylist(rows, schema=CHUNKS).to_batches(max_chunksize=2)


def swept(configs: list[RunConfig], out: Path, **options: Any) -> list[int]:
    (out / worker.IN_PROGRESS).mkdir(parents=True)
    task = sweep_chunks(
        batches(configs, in_chunks(configs)), out=str(out), time_limit=options.get("time_limit"), deadly=frozenset()
    )
    return [number for batch in task for number in batch.column(CHUNK).to_pylist()]


# --- rows ---


def test_rows_are_those_of_the_simulator() -> None:
    configs = some_runs(4)
    [batch] = measure_runs(batches(configs, [[2, 0, 3, 1]]))
    rows = {row.pop("place"): row for row in batch.to_pylist()}
    for place, config in enumerate(configs):
        expected = dict.fromkeys(RUNS.names) | {"run": config.name()} | runs_row(simulate(config))
        assert rows[place] == expected


def test_a_run_that_raises_becomes_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError("over a stone")

    monkeypatch.setattr(worker, "simulate", stumble)
    [config] = some_runs(1)
    row = run_one(config)
    assert row["error"] == "ZeroDivisionError: over a stone"
    assert row["complete"] is False
    assert (row["run"], row["config"]) == (config.name(), config.to_json())


def test_a_run_that_takes_too_long_becomes_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def dawdle(*_: object, **__: object) -> None:
        while True:
            with suppress(Exception):  # whoever takes every exception for its own does not keep the alarm
                time.sleep(0.01)

    monkeypatch.setattr(worker, "simulate", dawdle)
    [config] = some_runs(1)
    row = run_one(config, time_limit=0.05)
    assert row["error"] == "took longer than the time limit of 0.05 s"


def _work(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


class _SlowToGo:
    def __del__(self) -> None:
        _work(0.2)


def _slow_to_collect(phase: str, info: dict[str, int]) -> None:
    del info
    if phase == "stop":
        _work(0.2)


def _collect_slowly() -> None:
    gc.callbacks.append(_slow_to_collect)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(_slow_to_collect)


class _Circle:
    """Found by the collector alone."""

    def __init__(self) -> None:
        self.itself = self


def _collect_what_is_watched() -> None:
    watch = weakref.ref(_Circle(), lambda _: _work(0.2))
    gc.collect()
    assert watch() is None


@pytest.mark.parametrize("linger", [_SlowToGo, _collect_slowly, _collect_what_is_watched])
def test_an_alarm_waits_for_whatever_would_print_and_forget_it(
    linger: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)

    def work() -> None:
        linger()
        _work(5)

    start = time.monotonic()
    with pytest.raises(OutOfTimeError), time_limit(0.05):
        work()
    assert lost == []
    assert time.monotonic() - start >= 0.2  # and it was not forgotten: work() would have ended


def test_an_alarm_that_is_not_needed_is_put_away() -> None:
    callbacks = list(gc.callbacks)
    [config] = some_runs(1)
    assert run_one(config, time_limit=60).get("error") is None
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert gc.callbacks == callbacks


def test_a_number_without_a_column_wide_enough_becomes_a_row() -> None:
    [config] = some_runs(1, first_seed=2**63)
    row = run_one(config)
    assert "64 bits" in str(row["error"])
    assert row["seed"] is None


def test_a_trace_that_cannot_be_written_is_no_fault_of_the_run() -> None:
    def full(_: object) -> NoReturn:
        raise TraceError("the disk is full")

    [config] = some_runs(1)
    with pytest.raises(TraceError, match="the disk is full"):
        run_one(config, full)


# --- chunks ---


def test_chunks_hold_each_run_once_whatever_the_order() -> None:
    configs = some_runs(50)
    chunks = in_chunks(configs)
    assert sorted(place for places in chunks for place in places) == list(range(50))
    shuffled = Random(1).sample(configs, 50)
    assert [[configs[place] for place in places] for places in chunks] == [
        [shuffled[place] for place in places] for places in in_chunks(shuffled)
    ]


def test_chunks_are_of_about_equal_work() -> None:
    configs = some_runs(150, messages=1000) + some_runs(300, first_seed=60, messages=100)
    loads = [sum(cost(configs[place]) for place in places) for places in in_chunks(configs)]
    assert len(loads) > 16
    assert max(loads) < 1.5 * min(loads)


def test_a_small_sweep_still_has_work_for_several() -> None:
    assert len(in_chunks(some_runs(5))) == 5
    assert len(in_chunks(some_runs(40))) == 16
    assert in_chunks([]) == []


# --- sweeping ---


def test_a_sweep_does_not_care_who_does_which_chunk(tmp_path: Path) -> None:
    configs = some_runs(20)
    assert swept(configs, tmp_path / "all") == list(range(16))
    for number, places in enumerate(in_chunks(configs)):
        rows = [{CHUNK: number, PLACES: places, CONFIGS: [configs[place].to_json() for place in places]}]
        (tmp_path / "each" / worker.IN_PROGRESS).mkdir(parents=True, exist_ok=True)
        batch = pa.RecordBatch.from_pylist(rows, schema=CHUNKS)
        list(sweep_chunks(iter([batch]), out=str(tmp_path / "each"), time_limit=None, deadly=frozenset()))
    assert bytes_in(tmp_path / "all") == bytes_in(tmp_path / "each")
    assert len(read_runs([tmp_path / "all"])) == 20


def test_a_run_that_is_deadly_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [config] = some_runs(1)
    monkeypatch.setattr(worker, "simulate", lambda *_, **__: pytest.fail("it was run"))
    (tmp_path / worker.IN_PROGRESS).mkdir()
    list(sweep_chunks(batches([config], [[0]]), out=str(tmp_path), time_limit=None, deadly=frozenset({config.name()})))
    [row] = read_runs([tmp_path])
    assert "died" in row["error"]
