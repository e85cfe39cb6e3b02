"""`ordercast evaluate` and `ordercast report`, with runs measured in this process instead of on Spark."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ordercast.evaluation import Size, experiments
from ordercast.evaluation.results import Evaluation, Result, load
from ordercast.model.runs import RunConfig
from ordercast.simulator.simulate import runs_row, simulate
from tests.cli.conftest import Command

FAST = "headers"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark: a session that is nothing, and a loop over `simulate`."""
    pipeline = pytest.importorskip("ordercast.pipeline")

    @contextmanager
    def opened(master: str | None, conf: list[str] | None) -> Iterator[None]:
        assert master is None
        assert conf is None
        yield None

    def measure(spark: None, configs: Sequence[RunConfig], *, progress: Callable[[int, int], None] | None) -> list[Any]:
        assert spark is progress is None
        return [runs_row(simulate(config)) for config in configs]

    monkeypatch.setattr("ordercast.cli.evaluate.spark_session", opened)
    monkeypatch.setattr(pipeline, "measure", measure)


@pytest.mark.usefixtures("here")
def test_from_runs_to_the_page(ordercast: Command, tmp_path: Path) -> None:
    out = tmp_path / "results"
    done = ordercast(f"evaluate --quick --only {FAST} --out", out)
    assert done.status == 0
    assert f"ordercast report {out}" in done.out
    result = load(out / f"{FAST}.json", Result)
    for finding in result.findings:
        assert finding.sentence in done.out
    lines = done.out.splitlines()
    assert lines[0].startswith("✓ agrees with what was published   ✗ differs from it")
    assert lines[1] == f"{FAST}  {result.title} ({result.source})"
    agree = sum(finding.agrees is True for finding in result.findings)
    assert lines[-2] == f"{len(result.findings)} comparisons: {agree} agree, {len(result.findings) - agree} differ"
    summary = load(out / "evaluation.json", Evaluation)
    assert summary.command == f"ordercast evaluate --quick --only {FAST} --out {out}"
    assert list(summary.experiments) == [experiment.name for experiment in experiments(Size.QUICK)]

    assert ordercast("evaluate --quick --only sequencer-figure6 --out", out).status == 0
    assert len(load(out / "evaluation.json", Evaluation).command.splitlines()) == 2

    made = ordercast("report", out)
    assert made.status == 0
    assert str(out / "report.html") in made.out
    page = (out / "report.html").read_text()
    assert result.title in page
    assert "st-figure8" in page  # named as missing
    assert (out / "plots" / f"{FAST}.png").exists()


@pytest.mark.usefixtures("here")
def test_few_seeds_are_never_mixed_with_many(ordercast: Command, tmp_path: Path) -> None:
    assert ordercast(f"evaluate --quick --only {FAST} --out", tmp_path).status == 0
    refused = ordercast(f"evaluate --only {FAST} --out", tmp_path)
    assert refused.status == 2
    assert "holds quick results, and these would be full" in refused.sentence


@pytest.mark.usefixtures("here")
def test_runs_that_raise_are_told_by_the_exit_status(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(spark: None, configs: Sequence[RunConfig], *, progress: object) -> list[Any]:
        del spark, progress
        rows: list[Any] = [runs_row(simulate(config)) for config in configs]
        return [rows[0] | dict.fromkeys(rows[0]) | {"error": "it broke"}, *rows[1:]]

    monkeypatch.setattr("ordercast.pipeline.measure", measure)
    done = ordercast(f"evaluate --quick --only {FAST} --out", tmp_path)
    assert done.status == 1
    assert "1 run raised an error" in done.out


def test_an_unknown_figure_is_refused_before_spark_starts(ordercast: Command, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    done = ordercast("evaluate --only st-figure99 --out", tmp_path / "x")
    assert done.status == 2
    assert "unknown table or figure 'st-figure99'; choose one of: spo-table1" in done.sentence
    assert not (tmp_path / "x").exists()


def test_a_page_without_results_or_with_a_false_verdict_is_refused(ordercast: Command, tmp_path: Path) -> None:
    done = ordercast("report", tmp_path)
    assert done.status == 2
    assert "make it with: ordercast evaluate" in done.sentence
