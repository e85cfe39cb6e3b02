"""The folder of a sweep: what is refused, before and after Spark starts, and the lock. None of it needs Spark."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.runs import RunConfig
from ordercast.pipeline import require_sweepable, sweep, work_folder
from ordercast.pipeline.sweep import sweep as sweeping
from ordercast.simulator import simulate
from tests.pipeline.runs import bytes_in, some_runs

RUNS = some_runs(24)
NO_SPARK: Any = None


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A sweep that was stopped before its first chunk."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "begun"
    with patch.object(sweeping, "run_chunks", stop), pytest.raises(KeyboardInterrupt):
        sweep(NO_SPARK, RUNS, out)
    return out


def refusal(configs: list[RunConfig], out: Path, *, resume: bool = False) -> str:
    before = bytes_in(out) if out.is_dir() else {}
    with pytest.raises((ConfigError, TraceError)) as early:
        require_sweepable(configs, out, resume=resume)
    with pytest.raises((ConfigError, TraceError)) as late:
        sweep(NO_SPARK, configs, out, resume=resume)
    assert str(early.value) == str(late.value)
    assert (bytes_in(out) if out.is_dir() else {}) == before
    return str(late.value)


def test_a_sweep_is_not_begun_twice(begun: Path) -> None:
    assert refusal(RUNS, begun) == f"{begun} already holds a sweep; continue it with --resume, or choose another folder"


def test_another_grid_is_not_mixed_in(begun: Path) -> None:
    assert "holds another sweep, of 24 runs where this one has 23" in refusal(RUNS[1:], begun, resume=True)
    assert "or of other values" in refusal(some_runs(24, first_seed=1), begun, resume=True)
    require_sweepable(RUNS[::-1], begun, resume=True)  # its order does not matter


def test_another_version_is_not_mixed_in(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_folder, "__version__", "9.9")
    assert "was begun by ordercast 0.2.0.dev0, and this is 9.9" in refusal(RUNS, begun, resume=True)


def test_a_broken_manifest_is_refused(begun: Path) -> None:
    (begun / sweeping.MANIFEST).write_text("{}")
    assert "is not the manifest of a sweep" in refusal(RUNS, begun, resume=True)


def test_a_trace_of_something_else_is_refused(tmp_path: Path) -> None:
    simulate(RUNS[0], tmp_path)
    assert "already holds a trace" in refusal(RUNS, tmp_path)
    assert "already holds a trace" in refusal(RUNS, tmp_path, resume=True)


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "is a file; choose a folder" in refusal(RUNS, tmp_path / "file")


def test_nothing_is_refused(tmp_path: Path) -> None:
    assert refusal([], tmp_path) == "there is nothing to sweep: the list of runs is empty"


def test_two_sweeps_do_not_write_to_one_folder(begun: Path) -> None:
    with (
        sweeping.SweepPlan.of(RUNS, begun).held(resume=True),
        pytest.raises(ConfigError, match="another sweep is writing to"),
    ):
        sweep(NO_SPARK, RUNS, begun, resume=True)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(TraceError, match=r"cannot write the sweep .*No space left on device"):
        sweep(NO_SPARK, RUNS, tmp_path / "out")
    assert bytes_in(tmp_path) == {}
