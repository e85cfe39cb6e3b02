"""Runs that are judged box by box: as the reference judges them whole."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.audit.judge import Verdict
from ordercast.audit.judge import audit as audit_by_reference
from ordercast.model.config import GroupConfig, Rules, SequencerConfig
from ordercast.model.faults import Crash, Fault, Loss
from ordercast.model.runs import Network, RunConfig, TraceDetail, Workload
from ordercast.model.services import Service
from ordercast.pipeline import long_runs, surveying
from ordercast.pipeline.dockets import dockets_of
from ordercast.pipeline.long_runs import here, judge_long
from ordercast.protocols.registry import machine_class
from ordercast.simulator import simulate
from ordercast.trace.reader import read_events
from tests.pipeline.random_runs import ORDERED, PRIORITISED, RandomRun, break_somehow, random_run
from tests.pipeline.test_audit_kernel import by_reference
from tests.pipeline.traces import write

ENDINGS = {"crash", "abort", "view"}
RUNS = 80


@pytest.fixture
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of some hundred events stand for runs of millions."""
    monkeypatch.setattr(long_runs, "_ROWS_OF_A_BOX", 60)
    monkeypatch.setattr(surveying, "_GROUPS_OF_A_SURVEY", 3)


def judged(folder: Path, notes: list[str]) -> Verdict | None:
    (docket,) = dockets_of([folder])
    return judge_long(docket, Service(docket.row["protocol"]), here, notes.append)


def stops(run: RandomRun) -> bool:
    return run.aborted or any(what[1] in ENDINGS for log in run.logs for what in log)


@pytest.mark.usefixtures("small_boxes")
@pytest.mark.parametrize("service", [service for service in Service if service is not Service.PRIORITY])
def test_boxes_agree_with_the_reference(tmp_path: Path, service: Service) -> None:
    chance = Random(f"boxes {service.value}")
    found: Counter[str] = Counter()
    for number in range(RUNS):
        run = random_run(chance, service, messages=60)
        for _ in range(chance.choice([0, 1, 2, 3])):
            break_somehow(chance, run)
        expected = by_reference(run)
        if expected is None or not run.rows():
            continue
        kind = f"{'good' if expected.holds else 'bad'}{', stops' if stops(run) else ''}"
        notes: list[str] = []
        folder = write(tmp_path / str(number), {"r": run}, rows_in_a_group=chance.choice([10, 30, 70]))
        verdict = judged(folder, notes)
        if verdict is None:
            assert notes
            found[f"{kind}, whole"] += 1
            continue
        found[kind] += 1
        assert verdict.holds == expected.holds, (number, notes, expected.as_document())
        assert verdict.deliveries == expected.deliveries
        assert verdict.findings.keys() == expected.findings.keys()
        assert verdict.not_recorded == expected.not_recorded
        for name, finding in verdict.findings.items():
            there = expected.findings[name]
            assert finding.violations <= there.violations, name
            if not finding.at_least:
                assert finding.violations == there.violations, name
        if not verdict.findings["complete"].at_least:
            # Box by box, so in another order.
            assert set(verdict.findings["complete"].witnesses) == set(expected.findings["complete"].witnesses)
    assert found["good"] >= 10
    assert found["bad"] >= 4
    assert found["good, whole"] + found["bad, whole"] <= 26
    assert found["good, stops"] + found["bad, stops"] >= 5 or service is Service.PRIORITY_TOTAL


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


def simulated(
    folder: Path, protocol: str, *faults: Fault, resilience: int = 0, record: TraceDetail = TraceDetail.ALL
) -> Path:
    """The trace of a run of a few thousand events, in row groups of some hundred."""
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=5, sequencer=SequencerConfig(resilience=resilience)),
        network=Network(channel=machine_class(protocol, Rules.SOUND).needs),
        workload=Workload(messages=60, priorities=3 if protocol == "prito" else 1),
        faults=(Loss(rate=0.05), *faults),
        seed=3,
        record=record,
    )
    simulate(config.suited(), folder / "whole")
    for path in (folder / "whole").rglob("*.parquet"):
        there = folder / "parts" / path.parent.name / path.name
        there.parent.mkdir(parents=True)
        pq.write_table(pq.read_table(path), there, row_group_size=300)
    return folder / "parts"


@pytest.mark.usefixtures("small_boxes")
@pytest.mark.parametrize("record", [TraceDetail.ALL, TraceDetail.DELIVERIES])
@pytest.mark.parametrize(
    ("protocol", "resilience", "faults"),
    [
        ("sequencer", 0, (Crash(node=2, at=4_000_000),)),
        ("sequencer", 1, (Crash(node=0, at=4_000_000),)),
        ("prito", 0, ()),
    ],
)
def test_runs_of_the_simulator_are_judged_in_parts(
    tmp_path: Path, protocol: str, resilience: int, faults: tuple[Fault, ...], record: TraceDetail
) -> None:
    folder = simulated(tmp_path, protocol, *faults, resilience=resilience, record=record)
    kinds = {kind for batch in read_events([folder]) for kind in batch.column("event").to_pylist()}
    assert ("view" in kinds) == (protocol == "sequencer")
    notes: list[str] = []
    verdict = judged(folder, notes)
    assert notes == []
    assert verdict is not None
    assert verdict.holds
    assert verdict.as_document() == audit_by_reference([folder]).as_document()


@pytest.mark.usefixtures("small_boxes")
def test_a_swap_under_priorities_is_found_side_by_side(tmp_path: Path) -> None:
    """Two messages that are in different boxes, so that each box by itself is good."""
    folder = simulated(tmp_path, "prito", record=TraceDetail.DELIVERIES)
    (path,) = (folder / "events").iterdir()
    table = pq.read_table(path)
    rows = table.to_pylist()
    priorities = {(row["source"], row["seq"]): row["priority"] for row in rows if row["event"] == "send"}
    mine = [place for place, row in enumerate(rows) if (row["node"], row["event"]) == (1, "deliver")]
    names = [(rows[place]["source"], rows[place]["seq"]) for place in mine]
    one, other = next(
        (place, place + 1)
        for place in range(100, len(names))
        if names[place][0] != names[place + 1][0] and priorities[names[place]] != priorities[names[place + 1]]
    )
    for column in ("source", "seq"):
        rows[mine[one]][column], rows[mine[other]][column] = rows[mine[other]][column], rows[mine[one]][column]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path, row_group_size=300)
    expected = audit_by_reference([folder])
    assert not expected.holds
    verdict = judged(folder, [])
    assert verdict is not None
    assert not verdict.findings["same_order"].holds
    assert verdict.findings["same_order"].at_least
    assert verdict.findings["complete"].holds
    assert not verdict.findings["complete"].at_least
    told = verdict.findings["same_order"].witnesses[0].violation
    assert {names[one], names[other]} <= set(told.messages)
