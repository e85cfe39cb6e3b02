"""`ordercast sweep` as scripts see it: its exit status, its sentences, and silence where nobody watches."""

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ordercast.cli.shared.progress import progress_bar
from ordercast.cli.shared.spark_session import spark_session
from ordercast.model.errors import PipelineError
from ordercast.pipeline import SweepResult, read_grid, session
from ordercast.trace.reader import read_runs
from tests.cli.conftest import Command, Outcome

GRID = 'protocol = ["spo", "st"]\nnodes = 3\nmessages = 5\nseeds = 2\n'


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


@pytest.fixture
def open_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one session of the tests instead of one more."""

    @contextmanager
    def lend(*_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "session", lend)


@pytest.mark.usefixtures("open_session")
def test_a_sweep_its_audit_and_its_end(ordercast: Command, grid: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = ordercast("sweep", grid, "--out", out, "--record", "deliveries")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("4 runs: 4 complete, 0 incomplete, 0 failed\n")
    assert f"ordercast audit {out}" in done.out
    assert ordercast("audit", out).status == 0
    assert {row["config"] for row in read_runs([out])} == {
        config.to_json().replace('"record":"all"', '"record":"deliveries"') for config in read_grid(grid)
    }
    again = ordercast("sweep", grid, "--out", out, "--record", "deliveries", "--resume")
    assert again.status == 0
    assert again.out.startswith("4 runs (4 of them from before): 4 complete")
    other = ordercast("sweep", grid, "--out", out, "--resume")
    assert other.status == 2
    assert "holds another sweep" in other.sentence


@pytest.mark.usefixtures("open_session")
def test_failed_runs_are_told_and_make_the_status_three(ordercast: Command, grid: Path, tmp_path: Path) -> None:
    grid.write_text(f'protocol = "spo"\nmessages = 2\nseed = [1, {", ".join(str(2**63 + i) for i in range(7))}]\n')
    done = ordercast("sweep", grid, "--out", tmp_path / "out")
    assert done.status == 3
    assert done.err == ""
    assert done.out.startswith("8 runs: 1 complete, 0 incomplete, 7 failed\n")
    assert done.out.count("64 bits") == 5
    assert "and 2 more" in done.out


# --- what needs no Spark ---


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "session", lambda *_: pytest.fail("Spark was started in vain"))


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("protocol = 3", "", "key protocol: invalid value 3"),
        ('protocol = "spo"\nnodes = 1', "", "key nodes: a group has 2 to 1024 nodes, not 1"),
        (GRID, "--time-limit 0", "--time-limit must be a positive number of seconds"),
        (GRID, "--time-limit nan", "--time-limit must be a positive number of seconds"),
    ],
)
def test_bad_input_is_told_before_spark_starts(
    text: str, options: str, sentence: str, ordercast: Command, grid: Path, tmp_path: Path
) -> None:
    grid.write_text(text)
    refused = ordercast(f"sweep {options}", grid, "--out", tmp_path / "out")
    assert refused.status == 2
    assert sentence in refused.sentence
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_session")
def test_a_folder_in_use_is_told_before_spark_starts(ordercast: Command, grid: Path, tmp_path: Path) -> None:
    ordercast("simulate spo --messages 1 --out", tmp_path / "out")
    refused = ordercast("sweep", grid, "--out", tmp_path / "out")
    assert refused.status == 2
    assert "already holds a trace" in refused.sentence


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


@pytest.mark.parametrize(
    "master",
    [
        "spark://127.0.0.1:{port}",
        "spark://127.0.0.1:{port},localhost:{port}",
        "sc://127.0.0.1:{port}",
        "spark://no.such",
    ],
)
def test_a_cluster_that_does_not_answer_is_told_in_seconds(
    master: str, ordercast: Command, grid: Path, tmp_path: Path
) -> None:
    before = time.monotonic()
    refused = ordercast("sweep", grid, "--out", tmp_path / "out", "--master", master.format(port=free_port()))
    assert refused.status == 2
    assert refused.sentence.startswith("cannot connect to Spark at ")
    assert refused.sentence.endswith("check --master, and that the cluster is up")
    assert time.monotonic() - before < 30
    assert not (tmp_path / "out").exists()


def test_without_its_packages_it_is_told_what_to_install(
    ordercast: Command, grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("ordercast.pipeline")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("ordercast.pipeline")
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    refused = ordercast("sweep", grid, "--out", tmp_path / "out")
    assert refused.status == 2
    assert "pip install 'ordercast[pipeline]'" in refused.sentence


def interrupted(*_: object, **__: object) -> SweepResult:
    raise KeyboardInterrupt


def failing(*_: object, **__: object) -> SweepResult:
    raise PipelineError("Spark failed: it burns")


@pytest.fixture
def outcome_of(ordercast: Command, grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def nothing(*_: object) -> Iterator[None]:
        yield None

    def call(sweep: Any) -> Outcome:
        monkeypatch.setattr(session, "session", nothing)
        monkeypatch.setattr("ordercast.pipeline.sweep", sweep)
        return ordercast("sweep", grid, "--out", tmp_path / "out")

    return call


def test_an_interrupt_says_how_to_go_on(outcome_of: Any) -> None:
    stopped = outcome_of(interrupted)
    assert stopped.status == 130
    assert "continue with --resume" in stopped.err


def test_a_failure_of_spark_is_a_sentence(outcome_of: Any) -> None:
    assert outcome_of(failing).status == 2
    assert outcome_of(failing).sentence == "Spark failed: it burns"


# --- for people who watch ---


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ordercast.cli.shared.progress.sys", SimpleNamespace(stderr=SimpleNamespace(isatty=lambda: True))
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.usefixtures("watched")
def test_somebody_who_watches_sees_a_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("runs") as progress:
        assert progress is not None
        progress(3, 7)
    assert "runs" in capfd.readouterr().err


def test_nobody_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("runs") as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("watched")
def test_somebody_who_watches_is_told_that_spark_starts(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def lend(*_: object) -> Iterator[str]:
        yield "a session"

    monkeypatch.setattr(session, "session", lend)
    with spark_session(None) as spark:
        assert spark == "a session"
    assert "starting Spark" in capfd.readouterr().err
