"""Levels of knowledge in runs that are audited in partitions, and which properties partitions can show at all."""

from pathlib import Path
from random import Random

import pytest

from ordercast.audit.order import no_cycle, same_order
from ordercast.audit.priorities import same_runs
from ordercast.audit.views import delivered_uniformly
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.explain import checkable_in_partitions
from tests.pipeline.random_runs import RandomRun, random_run
from tests.pipeline.test_partitioned import audited, make_partitions_small
from tests.pipeline.traces import write


def run_with_levels(service: Service) -> RandomRun:
    run = random_run(chance := Random(f"levels {service}"), service, levels=True, messages=60)
    while run.nodes < 3 or len(run.logs[1]) < 150:
        run = random_run(chance, service, levels=True, messages=60)
    return run


@pytest.mark.parametrize(
    "service", [Service.SELECTIVE_PARTIAL, Service.SELECTIVE_TOTAL, Service.TOTAL, Service.PARTIAL]
)
def test_levels_that_hold_hold_in_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    """Of what is not addressed to it a node need not accept anything."""
    make_partitions_small(monkeypatch)
    verdict = audited(write(tmp_path, {"r": run_with_levels(service)}, rows_in_a_group=20), [])
    assert verdict is not None
    assert verdict.holds


def test_what_is_known_before_it_happened_is_found_by_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E2 accepts a message long after others said that it had."""
    make_partitions_small(monkeypatch)
    run = run_with_levels(Service.TOTAL)
    log = run.logs[1]
    place = next(place for place, what in enumerate(log) if what[1] == "accept" and what[2] and what[2][0] == 0)
    log[place] = (log[-1][0] + 1, *log[place][1:])
    verdict = audited(write(tmp_path, {"r": run}, rows_in_a_group=20), [])
    assert verdict is not None
    broken = {name for name, finding in verdict.findings.items() if not finding.holds}
    assert broken == {"preacknowledged_truthfully"}


def test_what_partitions_can_show() -> None:
    """Where the log of a stopped node departs from the others' is a question about whole logs."""
    stops, goes_on = (checkable_in_partitions(Service.SEQUENCED, stops=stops) for stops in (True, False))
    assert same_order not in stops
    assert no_cycle not in stops
    assert {same_order, no_cycle} <= set(goes_on)
    assert delivered_uniformly not in goes_on
    assert {same_order, no_cycle} <= set(checkable_in_partitions(Service.TOTAL, stops=True))
    assert same_runs not in checkable_in_partitions(Service.PRIORITY_TOTAL, stops=False)
