"""Processes that audit beside each other: the verdict of one, whoever is killed, and however much there is."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.audit import audit as audit_by_reference
from ordercast.model.errors import PipelineError, TraceError
from ordercast.pipeline.audit import vectorised, workers
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned.tasks import TaskKind
from ordercast.pipeline.audit.short_runs import OF_A_TASK
from ordercast.pipeline.audit.vectorised import audit_vectorised
from ordercast.pipeline.audit.workers import Workers, useful_workers
from tests.pipeline.random_runs import long_enough
from tests.pipeline.traces import random_runs, write


def test_workers_find_what_one_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, {**random_runs("workers", 30), "long": long_enough("workers")}, runs_in_a_file=5)
    monkeypatch.setattr(partitioned, "PARTITIONED_ABOVE", 150)
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 60)
    monkeypatch.setattr(vectorised, "OF_A_TASK", OF_A_TASK._replace(rows=300))
    expected = audit_by_reference([folder])
    assert audit_vectorised([folder], processes=1).holds is expected.holds
    found = audit_vectorised([folder], processes=2)
    assert found.as_document() == audit_vectorised([folder], processes=1).as_document()
    assert (found.runs, found.deliveries) == (expected.runs, expected.deliveries)


def test_a_run_that_contradicts_itself_is_told_as_in_one_process(tmp_path: Path) -> None:
    run = long_enough("contradiction")
    run.logs[0][5] = (run.logs[0][5][0], "deliver", None, None, None)
    folder = write(tmp_path, {"r": run})
    with pytest.raises(TraceError) as here:
        audit_vectorised([folder], processes=1)
    with pytest.raises(TraceError) as there:
        audit_vectorised([folder], processes=2)
    assert str(there.value) == str(here.value)


def test_a_worker_that_is_killed_is_told() -> None:
    pool = Workers(1)
    try:
        pool.start()
        os.kill(pool.processes[0].pid, signal.SIGKILL)
        with pytest.raises(PipelineError, match="a process of the audit ended: it was killed, or had no memory left"):
            pool.run(TaskKind.INDEX, [b"anything"])
    finally:
        pool.close()
    assert pool.processes == []


def test_there_are_as_many_workers_as_are_useful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(workers, "free_memory", lambda: None)
    assert [useful_workers(tasks) for tasks in (0, 3, 100)] == [1, 3, 16]
    monkeypatch.setattr(workers, "free_memory", lambda: 5 * workers.BYTES_OF_A_WORKER)
    assert useful_workers(100) == 5
    monkeypatch.setattr(workers, "free_memory", lambda: 1)
    assert useful_workers(100) == 1
    assert vectorised.workers_for(vectorised.WORKERS_FROM - 1) == 1


def test_a_program_needs_no_guard(tmp_path: Path) -> None:
    """A worker is a program of its own: that of the user is not run again in it."""
    folder = write(tmp_path / "trace", random_runs("guard", 6))
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom ordercast.pipeline import Engine, audit\n"
        "print('begins')\n"
        "print(audit([Path(sys.argv[1])], engine=Engine.VECTORISED, processes=2).runs)\n"
    )
    done = subprocess.run([sys.executable, program, folder], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "begins\n6\n"
