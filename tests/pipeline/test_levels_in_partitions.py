"""Runs that are audited in partitions: their levels, what partitions can show, and which runs have them."""

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from ordercast.audit.order import no_cycle, same_order
from ordercast.audit.priorities import same_runs
from ordercast.audit.views import delivered_uniformly
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.explain import checkable_in_partitions
from tests.pipeline.random_runs import RandomRun, long_enough, random_run
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


@pytest.mark.parametrize("service", [Service.TOTAL, Service.SEQUENCED])
def test_a_sequencers_run_in_which_all_stop_is_audited_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service
) -> None:
    """Nobody has the common log; elsewhere there is no such log."""
    make_partitions_small(monkeypatch)
    run = long_enough("all stop")
    run.service = service
    for log in run.logs:
        log.append((log[-1][0] + 1, "crash", None, None, None))
    notes: list[str] = []
    verdict = audited(write(tmp_path, {"r": run}, rows_in_a_group=20), notes)
    assert (verdict is None) is (service is Service.SEQUENCED)
    assert notes == [
        *["run r: falling back to a single-task audit: all nodes stop in it"] * (service is Service.SEQUENCED)
    ]


def test_priorities_that_are_kept_are_kept_across_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_partitions_small(monkeypatch)
    run = random_run(chance := Random("priorities"), Service.PRIORITY_TOTAL, levels=False, messages=120)
    while run.nodes < 3 or len(run.logs[1]) < 120:
        run = random_run(chance, Service.PRIORITY_TOTAL, levels=False, messages=120)
    verdict = audited(write(tmp_path, {"r": run}, rows_in_a_group=20), [])
    assert verdict is not None
    assert verdict.holds


def test_files_need_not_be_in_the_order_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_partitions_small(monkeypatch)
    folder = write(tmp_path, {"r": long_enough("files")}, rows_in_a_group=20)
    file = folder / "events/part-0.parquet"
    events = pq.read_table(file)
    half = events.num_rows // 2
    pq.write_table(events.slice(half), file, row_group_size=20)
    pq.write_table(events.slice(0, half), folder / "events/part-1.parquet", row_group_size=20)
    verdict = audited(folder, [])
    assert verdict is not None
    assert verdict.holds
