"""Every table and figure, end to end, at a tiny size in this process."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ordercast.evaluation import Experiment, Size, experiments
from ordercast.evaluation.results import Evaluation, Result, Role, load, store
from ordercast.model.errors import ConfigError
from ordercast.model.runs import RunConfig, TraceDetail
from ordercast.simulator.simulate import runs_row, simulate

TINY = {experiment.name: experiment for experiment in experiments(Size.TINY)}
SLOW = {"spo-table1"}
"""The printed SPO storms: half a minute on a busy machine."""


def measure(configs: Sequence[RunConfig]) -> list[dict[str, Any]]:
    return [runs_row(simulate(config)) for config in configs]


def fake_row(config: RunConfig) -> dict[str, Any]:
    """A row that was not simulated: everything is 1."""
    times = {"count": 1, "total": 10, "p50": 10, "p99": 10, "most": 10}
    latency = {"accepted": times, "preacknowledged": times | {"total": 30}, "acknowledged": times}
    row: dict[str, Any] = dict.fromkeys(runs_row(simulate(_EMPTY)), 1)
    return row | {
        "config": config.to_json(),
        "nodes": config.group.nodes,
        "complete": True,
        "stalled": False,
        "error": None,
        "latency": json.dumps(latency),
        "waiting": json.dumps({str(priority): times for priority in (1, 2, 3)}),
    }


_EMPTY = msgspec.structs.replace(
    experiments(Size.TINY)[-1].configs()[0],
    workload=msgspec.structs.replace(experiments(Size.TINY)[-1].configs()[0].workload, messages=0),
)


def test_nothing_that_the_papers_show_is_missing() -> None:
    sources = " | ".join(experiment.source for experiment in TINY.values())
    for wanted in (
        "Table 1",
        "Figure 8",
        "Figure 9",
        "Figure 10",
        "Figure 6",
        "Figure 7",
        "PriTO, section 5",
        "section 5.2",
    ):
        assert wanted in sources
    assert [experiment.name for experiment in experiments(Size.FULL)] == list(TINY)
    assert [experiment.name for experiment in experiments(Size.QUICK)] == list(TINY)


@pytest.mark.parametrize("size", Size)
def test_configurations_are_made_once_record_nothing_and_differ_by_seed(size: Size) -> None:
    for experiment in experiments(size):
        configs = experiment.configs()
        assert len({config.to_json() for config in configs}) == len(configs)
        assert {config.record for config in configs} == {TraceDetail.NONE}
        for curve in experiment.curves:
            for spot in curve.spots:
                assert [config.seed for config in spot.configs] == list(range(len(spot.configs)))


@pytest.mark.parametrize(
    "experiment", [one for name, one in TINY.items() if name not in SLOW], ids=lambda one: one.name
)
def test_each_runs_end_to_end(experiment: Experiment) -> None:
    result = experiment.run(measure)
    for series in result.measured():
        for point in series.points:
            assert point.y is not None
            assert not point.failed
            assert not point.incomplete
            assert point.estimate is not None
            assert point.estimate.low <= point.y <= point.estimate.high
    for finding in result.findings:  # so few runs or points may be too few, but something was measured
        assert finding.agrees is not None or "too few" in finding.sentence
    assert all(RunConfig.from_json(config) in experiment.configs() for config in result.configs.values())


def test_table_1_counts_one_copy_for_each_loss_in_spo() -> None:
    """The curves of the sound protocols; the printed rules are left to the whole evaluation."""
    table = TINY["spo-table1"]
    quick = [curve for curve in table.curves if curve.name in {"to", "po", "spo"}]
    rows = {config.to_json(): row for curve in quick for config, row in _rows(curve.spots[0].configs)}
    to, po, spo = ([rows[config.to_json()] for config in curve.spots[0].configs] for curve in quick)
    assert sum(row["retransmitted"] for row in spo) == sum(row["lost_data"] for row in spo) == len(spo)
    assert 5 <= sum(row["retransmitted"] for row in po) / len(po) <= 9  # 7 on average: 2, and 5 on the way
    assert 60 <= sum(row["retransmitted"] for row in to) / len(to) <= 110  # 82 on average


def _rows(configs: Sequence[RunConfig]) -> list[tuple[RunConfig, dict[str, Any]]]:
    return list(zip(configs, measure(configs), strict=True))


@pytest.mark.parametrize("experiment", TINY.values(), ids=lambda one: one.name)
def test_runs_that_raised_are_counted_and_their_points_stay_empty(experiment: Experiment) -> None:
    broken = experiment.curves[-1].spots[0].configs

    def some_fail(configs: Sequence[RunConfig]) -> list[dict[str, Any]]:
        failed = fake_row(configs[0]) | dict.fromkeys(fake_row(configs[0])) | {"error": "it broke"}
        return [failed if config in broken else fake_row(config) for config in configs]

    result = experiment.run(some_fail)
    point = result.measured()[-1].points[0]
    assert (point.y, point.estimate, point.failed) == (None, None, len(broken))


def test_incomplete_runs_are_counted_unless_the_rules_are_the_printed_ones() -> None:
    def none_complete(configs: Sequence[RunConfig]) -> list[dict[str, Any]]:
        return [fake_row(config) | {"complete": False, "stalled": True} for config in configs]

    result = TINY["spo-preacknowledgment"].run(none_complete)
    by_name = {series.name: series for series in result.series}
    assert all(point.incomplete == point.runs for point in by_name["sound"].points)
    assert all(point.incomplete == 0 for point in by_name["steady"].points)
    assert all(point.stalled == point.runs for point in by_name["steady"].points)


def test_results_go_to_json_and_back(tmp_path: Path) -> None:
    result = TINY["headers"].run(measure)
    store(tmp_path / "deep" / "place", "headers.json", result)
    assert load(tmp_path / "deep" / "place" / "headers.json", Result) == result
    assert [path.name for path in (tmp_path / "deep" / "place").iterdir()] == ["headers.json"]
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"is not a result of ordercast evaluate"):
        load(tmp_path / "x.json", Result)
    with pytest.raises(ConfigError, match=r"make it with: ordercast evaluate"):
        load(tmp_path / "none.json", Evaluation)


def test_references_name_the_series_that_they_are_about() -> None:
    for experiment in TINY.values():
        names = {curve.name for curve in experiment.curves}
        assert len(names) == len(experiment.curves)
        for series in experiment.references:
            assert series.role is not Role.MEASURED
            assert series.of in names | {""}


def test_what_is_relative_to_nothing_was_not_measured() -> None:
    """Runs in which what all others are compared with sent nothing again."""
    experiment = TINY["spo-table1"]
    rows = [fake_row(config) | {"retransmitted": config.protocol != "to"} for config in experiment.configs()]
    result = experiment.run(lambda _: rows)
    assert {point.y for series in result.measured() for point in series.points} == {None}
