"""Runs that are judged box by box: as the reference judges them whole."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ordercast.audit.judge import Verdict
from ordercast.audit.judge import audit as audit_by_reference
from ordercast.model.services import Service
from ordercast.pipeline import long_runs
from ordercast.pipeline.dockets import dockets_of
from ordercast.pipeline.long_runs import here, judge_long
from tests.pipeline.random_runs import ORDERED, PRIORITISED, RandomRun, break_somehow, random_run
from tests.pipeline.test_audit_kernel import by_reference
from tests.pipeline.traces import write

IN_BOXES = [service for service in Service if service not in PRIORITISED]
ENDINGS = {"crash", "abort", "view"}


@pytest.fixture
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of some hundred events stand for runs of millions."""
    monkeypatch.setattr(long_runs, "_ROWS_OF_A_BOX", 60)
    monkeypatch.setattr(long_runs, "_GROUPS_OF_A_SURVEY", 3)


def judged(folder: Path, notes: list[str]) -> Verdict | None:
    (docket,) = dockets_of([folder])
    return judge_long(docket, Service(docket.row["protocol"]), here, notes.append)


def has_no_ending(run: RandomRun) -> bool:
    return not run.aborted and not any(what[1] in ENDINGS for log in run.logs for what in log)


@pytest.mark.usefixtures("small_boxes")
@pytest.mark.parametrize("service", IN_BOXES)
def test_boxes_agree_with_the_reference(tmp_path: Path, service: Service) -> None:
    chance = Random(f"boxes {service.value}")
    found: Counter[str] = Counter()
    for number in range(80):
        run = random_run(chance, service, messages=60)
        for _ in range(chance.choice([0, 1, 2, 3])):
            break_somehow(chance, run)
        expected = by_reference(run)
        if expected is None or not run.rows():
            continue
        if not has_no_ending(run):
            found["stopped"] += 1
            if found["stopped"] > 5:  # these are judged whole, which a few will show
                continue
        notes: list[str] = []
        folder = write(tmp_path / str(number), {"r": run}, rows_in_a_group=chance.choice([10, 30, 70]))
        verdict = judged(folder, notes)
        if verdict is None:
            assert notes
            found["whole"] += has_no_ending(run)
            continue
        assert has_no_ending(run)
        found["good" if expected.holds else "bad"] += 1
        assert verdict.holds == expected.holds, (number, notes, expected.as_document())
        assert verdict.deliveries == expected.deliveries
        assert verdict.findings.keys() == expected.findings.keys()
        assert verdict.not_recorded == expected.not_recorded
        for name, finding in verdict.findings.items():
            assert finding.violations <= expected.findings[name].violations, name
        if not notes:
            here_found, there = verdict.findings["complete"], expected.findings["complete"]
            assert here_found.violations == there.violations
            assert set(here_found.witnesses) == set(there.witnesses)  # box by box, so in another order
    assert found["good"] >= 10
    assert found["bad"] >= 4
    assert found["whole"] <= 26, "of runs in which nobody stops"


@pytest.mark.usefixtures("small_boxes")
def test_a_swap_is_told_with_its_places_in_the_whole_logs(tmp_path: Path) -> None:
    chance = Random("a swap")
    run = random_run(chance, Service.TOTAL, levels=False, messages=200)
    while run.nodes < 3 or len(run.logs[0]) < 150:
        run = random_run(chance, Service.TOTAL, levels=False, messages=200)
    log = run.logs[1]
    places = [place for place, what in enumerate(log) if what[1] == "deliver"]
    place = next(at for at in places[60:] if log[at][2][0] != log[at + 1][2][0])  # type: ignore[index]
    log[place], log[place + 1] = (log[place][0], *log[place + 1][1:]), (log[place + 1][0], *log[place][1:])
    folder = write(tmp_path, {"r": run}, rows_in_a_group=30)
    verdict = judged(folder, [])
    assert verdict is not None
    assert verdict.as_document() == audit_by_reference([folder]).as_document()
    assert verdict.findings["same_order"].witnesses[0].violation.places[0] >= 60


@pytest.mark.usefixtures("small_boxes")
@pytest.mark.parametrize("service", sorted(ORDERED - PRIORITISED, key=str))
def test_a_run_has_many_boxes(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing here would be about boxes."""
    chance = Random(service.value)
    run = random_run(chance, service, levels=False, messages=300)
    while run.nodes < 3 or len(run.logs[0]) < 200:
        run = random_run(chance, service, levels=False, messages=300)
    tasks: list[int] = []

    def each(kind: str, payloads: Any) -> list[bytes]:
        if kind == "judge":
            tasks.append(len(payloads))
        return here(kind, payloads)

    (docket,) = dockets_of([write(tmp_path, {"r": run}, rows_in_a_group=30)])
    verdict = judge_long(docket, service, each, pytest.fail)
    assert verdict is not None
    assert verdict.holds
    assert len(tasks) == 1, "no two boxes overlap"
    assert tasks[0] >= 6
