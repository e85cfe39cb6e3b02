"""A run that does not fit into memory is refused before it is read, in a sentence."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit import memory
from ordercast.pipeline.audit.memory import BY_KERNEL, BY_REFERENCE, free_memory, require_memory
from ordercast.pipeline.audit.vectorised import audit_vectorised
from ordercast.pipeline.jobs import tasks_at_once
from tests.pipeline.random_runs import long_enough
from tests.pipeline.traces import random_runs, write


def leave_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CHECKED_FROM", 1)
    monkeypatch.setattr(memory, "free_memory", lambda: 50 * BY_REFERENCE)


def test_room_is_told() -> None:
    free = free_memory()
    assert free is None or 2**20 < free < 2**50
    require_memory("r", 1_000_000, BY_KERNEL)
    if free is not None:
        with pytest.raises(
            TraceError,
            match=r"run r needs a single-task audit, which takes about .* GB are free; use a machine with more",
        ):
            require_memory("r", 10**12, BY_KERNEL)


def test_what_is_available_counts_and_not_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    assert memory.free_in_machine(file) is None
    file.write_text("MemTotal: 10 kB\nMemFree: 1 kB\nMemAvailable: 4 kB\nCached: 3 kB\n")
    assert memory.free_in_machine(file) == 4096
    file.write_text("MemTotal: 10 kB\n")
    assert memory.free_in_machine(file) is None


def test_a_control_group_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert memory.free_in_control_group(tmp_path) == 600
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.free_in_control_group(tmp_path) is None


@pytest.mark.parametrize(
    ("machine", "group", "least"), [(None, None, None), (5, None, 5), (None, 7, 7), (5, 7, 5), (7, 5, 5)]
)
def test_the_least_that_is_known_counts(
    monkeypatch: pytest.MonkeyPatch, machine: int | None, group: int | None, least: int | None
) -> None:
    monkeypatch.setattr(memory, "free_in_machine", lambda: machine)
    monkeypatch.setattr(memory, "free_in_control_group", lambda: group)
    assert free_memory() == least


def test_a_run_may_need_all_that_is_free_and_a_small_one_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = memory.CHECKED_FROM * BY_KERNEL
    monkeypatch.setattr(memory, "free_memory", lambda: needed)
    require_memory("r", memory.CHECKED_FROM, BY_KERNEL)
    monkeypatch.setattr(memory, "free_memory", lambda: needed - 1)
    with pytest.raises(TraceError):
        require_memory("r", memory.CHECKED_FROM, BY_KERNEL)
    monkeypatch.setattr(memory, "free_memory", lambda: 0)
    require_memory("r", memory.CHECKED_FROM - 1, BY_KERNEL)


def test_tasks_of_one_machine_share_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = memory.CHECKED_FROM * BY_KERNEL
    monkeypatch.setattr(memory, "free_memory", lambda: 3 * needed)
    require_memory("r", memory.CHECKED_FROM, BY_KERNEL, sharing=3)
    with pytest.raises(TraceError, match="are free for 4 tasks at once;"):
        require_memory("r", memory.CHECKED_FROM, BY_KERNEL, sharing=4)


@pytest.mark.parametrize(
    ("master", "cores", "expected"),
    [
        ("local", None, 1),
        ("local[3]", None, 3),
        ("local[3,2]", None, 3),
        ("local[*]", None, os.cpu_count()),
        ("spark://host:7077", "5", 5),
        ("spark://host:7077", None, os.cpu_count()),
        (None, None, os.cpu_count()),
    ],
)
def test_how_many_tasks_a_machine_runs(master: str | None, cores: str | None, expected: int) -> None:
    known = {"spark.master": master, "spark.executor.cores": cores}
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, other: known[name] or other))
    assert tasks_at_once(session) == expected  # type: ignore[arg-type]


def test_a_run_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_little_memory(monkeypatch)
    folder = write(tmp_path, {"r": long_enough("much")})
    with pytest.raises(TraceError, match="needs a single-task audit"):
        audit_vectorised([folder], Service.TOTAL, note=pytest.fail)


def test_a_good_run_fits_where_a_bad_one_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_little_memory(monkeypatch)
    runs = random_runs("fits", 40)
    small = {name: run for name, run in runs.items() if 50 < len(run.rows()) < 50 * BY_REFERENCE // BY_KERNEL}
    found: set[bool | None] = set()
    for name, run in small.items():
        folder = write(tmp_path / name, {name: run})
        try:
            found.add(audit_vectorised([folder], note=pytest.fail).holds)
        except TraceError:
            found.add(None)
    assert found == {True, None}
