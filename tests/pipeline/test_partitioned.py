"""Runs that are audited in partitions: the verdict of the reference audit on the whole run."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.audit.reference import audit as audit_by_reference
from ordercast.audit.verdict import Verdict
from ordercast.model.config import GroupConfig, Rules, SequencerConfig
from ordercast.model.faults import Crash, Fault, Loss
from ordercast.model.runs import Network, RunConfig, TraceDetail, Workload
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import Numbers
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned import long_run
from ordercast.pipeline.audit.partitioned.audit import audit_partitioned
from ordercast.pipeline.audit.partitioned.cut_points import cut_points
from ordercast.pipeline.audit.partitioned.long_run import LongRun
from ordercast.pipeline.audit.partitioned.tasks import TaskKind, run_in_process
from ordercast.pipeline.audit.plan import audit_tasks
from ordercast.protocols.registry import machine_class
from ordercast.simulator import simulate
from tests.pipeline.random_runs import ORDERED, PRIORITISED, RandomRun, break_somehow, random_run
from tests.pipeline.test_audit_kernel import by_reference
from tests.pipeline.traces import write
from tests.trace_events import read_events

ENDINGS = {"crash", "abort", "view"}
RUNS = 50


def make_partitions_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of some hundred events stand for runs of millions."""
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 60)
    monkeypatch.setattr(long_run, "GROUPS_OF_AN_INDEX_TASK", 3)


def audited(folder: Path, notes: list[str]) -> Verdict | None:
    (task,) = audit_tasks([folder])
    found = audit_partitioned(task, Service(task.row["protocol"]), run_in_process, notes.append)
    if found is None:
        return None
    verdict = Verdict()
    verdict.add_run(task.row, found)
    return verdict


def stops(run: RandomRun) -> bool:
    return run.aborted or any(what[1] in ENDINGS for log in run.logs for what in log)


def test_a_swap_is_told_with_its_places_in_the_whole_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_partitions_small(monkeypatch)
    chance = Random("a swap")
    run = random_run(chance, Service.TOTAL, levels=False, messages=200)
    while run.nodes < 3 or len(run.logs[0]) < 150:
        run = random_run(chance, Service.TOTAL, levels=False, messages=200)
    log = run.logs[1]
    places = [place for place, what in enumerate(log) if what[1] == "deliver"]
    place = next(at for at in places[60:] if log[at][2][0] != log[at + 1][2][0])  # type: ignore[index]
    log[place], log[place + 1] = (log[place][0], *log[place + 1][1:]), (log[place + 1][0], *log[place][1:])
    folder = write(tmp_path, {"r": run}, rows_in_a_group=30)
    verdict = audited(folder, [])
    assert verdict is not None
    assert verdict.as_document() == audit_by_reference([folder]).as_document()
    assert verdict.findings["same_order"].witnesses[0].violation.places[0] >= 60


def test_numbers_that_do_not_follow_the_sending_order_need_the_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sends have each other's numbers: each partition passes by itself, and so does the order of deliveries."""
    make_partitions_small(monkeypatch)
    run = random_run(chance := Random("numbers"), Service.TOTAL, levels=False, messages=200)
    while run.nodes < 3 or len(run.logs[0]) < 150:
        run = random_run(chance, Service.TOTAL, levels=False, messages=200)
    log = run.logs[0]
    first, *_, last = [place for place, what in enumerate(log) if what[1] == "send"]
    log[first], log[last] = (log[first][0], *log[last][1:]), (log[last][0], *log[first][1:])
    folder = write(tmp_path, {"r": run}, rows_in_a_group=30)
    assert not audit_by_reference([folder]).holds
    notes: list[str] = []
    assert audited(folder, notes) is None
    assert notes == [
        "run r: falling back to a single-task audit: its messages are not numbered in the order in which they were sent"
    ]


def test_a_stopped_node_of_a_uniform_run_may_not_skip_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever it is: the last message of a partition is missed only by comparing partitions."""
    make_partitions_small(monkeypatch)
    run = random_run(chance := Random("skips"), Service.SEQUENCED, levels=False, messages=60)
    while run.nodes < 3 or len(run.logs[2]) < 60:
        run = random_run(chance, Service.SEQUENCED, levels=False, messages=60)
    run.uniform = True
    log = run.logs[2]
    end = log[-1][0] + 1
    places = [place for place, what in enumerate(log) if what[1] == "deliver"]
    notes: list[str] = []
    for place in places[:-1]:
        run.logs[2] = [*log[:place], *log[place + 1 :], (end, "crash", None, None, None)]
        verdict = audited(write(tmp_path / str(place), {"r": run}, rows_in_a_group=20), notes)
        assert verdict is None or not verdict.holds, place
    assert any("a stopped node delivered something after a message that it misses" in note for note in notes)


@pytest.mark.parametrize("service", sorted(ORDERED - PRIORITISED, key=str))
def test_a_run_has_many_partitions(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nothing here would be about partitions."""
    make_partitions_small(monkeypatch)
    chance = Random(service.value)
    run = random_run(chance, service, levels=False, messages=300)
    while run.nodes < 3 or len(run.logs[0]) < 200:
        run = random_run(chance, service, levels=False, messages=300)
    tasks: list[int] = []

    def run_tasks(kind: TaskKind, payloads: Sequence[bytes]) -> list[bytes]:
        if kind is TaskKind.AUDIT:
            tasks.append(len(payloads))
        return run_in_process(kind, payloads)

    (task,) = audit_tasks([write(tmp_path, {"r": run}, rows_in_a_group=30)])
    verdict = audit_partitioned(task, service, run_tasks, pytest.fail)
    assert verdict is not None
    assert verdict.holds
    assert len(tasks) == 1, "no two partitions overlap"
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
    simulate(config.with_default_timeouts(), folder / "whole")
    for path in (folder / "whole").rglob("*.parquet"):
        there = folder / "parts" / path.parent.name / path.name
        there.parent.mkdir(parents=True)
        pq.write_table(pq.read_table(path), there, row_group_size=300)
    return folder / "parts"


@pytest.mark.parametrize("record", [TraceDetail.ALL, TraceDetail.DELIVERIES])
@pytest.mark.parametrize(
    ("protocol", "resilience", "faults"),
    [
        ("sequencer", 0, (Crash(node=2, at=4_000_000),)),
        ("sequencer", 1, (Crash(node=0, at=4_000_000),)),
        ("prito", 0, ()),
    ],
)
def test_runs_of_the_simulator_are_audited_in_partitions(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
    resilience: int,
    faults: tuple[Fault, ...],
    record: TraceDetail,
) -> None:
    make_partitions_small(monkeypatch)
    folder = simulated(tmp_path, protocol, *faults, resilience=resilience, record=record)
    kinds = {kind for batch in read_events([folder]) for kind in batch.column("event").to_pylist()}
    assert ("view" in kinds) == (protocol == "sequencer")
    notes: list[str] = []
    verdict = audited(folder, notes)
    if protocol == "prito" and record is TraceDetail.ALL:
        assert verdict is None
        assert "what waited for something more urgent has to be compared as a whole" in notes[0]
        return
    assert notes == []
    assert verdict is not None
    assert verdict.holds
    assert verdict.as_document() == audit_by_reference([folder]).as_document()


def cut_points_of(folder: Path) -> list[Numbers]:
    (task,) = audit_tasks([folder])
    run = LongRun.indexed(task, Service.PRIORITY_TOTAL, run_in_process)
    return cut_points(run.index, run.rows // 60, None)


def in_one_partition(points: list[Numbers], *messages: tuple[int, int]) -> bool:
    return len({sum(bool(seq >= point[source]) for point in points) for source, seq in messages}) == 1


def test_a_swap_under_priorities_is_found_by_comparing_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two messages in different partitions, so that each partition by itself passes."""
    make_partitions_small(monkeypatch)
    folder = simulated(tmp_path, "prito", record=TraceDetail.DELIVERIES)
    (path,) = (folder / "events").iterdir()
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=40)
    points = cut_points_of(folder)
    rows = table.to_pylist()
    mine = [place for place, row in enumerate(rows) if (row["node"], row["event"]) == (1, "deliver")]
    for one, other in pairwise(mine[100:]):
        first, second = ((rows[place]["source"], rows[place]["seq"]) for place in (one, other))
        if first[0] == second[0] or in_one_partition(points, first, second):
            continue
        changed = [dict(row) for row in rows]
        changed[one] |= {"source": second[0], "seq": second[1]}
        changed[other] |= {"source": first[0], "seq": first[1]}
        pq.write_table(pa.Table.from_pylist(changed, schema=table.schema), path, row_group_size=40)
        if not in_one_partition(cut_points_of(folder), first, second):  # which the swap may have moved
            break
    assert not audit_by_reference([folder]).holds
    verdict = audited(folder, [])
    assert verdict is not None
    assert not verdict.findings["same_order"].holds
    assert verdict.findings["same_order"].at_least
    assert verdict.findings["complete"].holds
    assert not verdict.findings["complete"].at_least
    found = verdict.findings["same_order"].witnesses[0].violation
    assert {first, second} <= set(found.messages)


@pytest.mark.parametrize("service", [service for service in Service if service is not Service.PRIORITY])
def test_partitions_agree_with_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    make_partitions_small(monkeypatch)
    monkeypatch.setattr(long_run, "_ROWS_FOR_EACH_NODE", 15)
    chance = Random(f"boxes {service.value}")
    found: Counter[str] = Counter()
    for number in range(RUNS):
        monkeypatch.setattr(long_run, "MANY_NODES", 2 if number % 3 == 0 else 256)  # or row groups one by one
        run = random_run(chance, service, messages=60)
        for _ in range(chance.choice([0, 1, 2, 3])):
            break_somehow(chance, run)
        expected = by_reference(run)
        if expected is None or not run.rows():
            continue
        kind = f"{'good' if expected.holds else 'bad'}{', stops' if stops(run) else ''}"
        notes: list[str] = []
        folder = write(tmp_path / str(number), {"r": run}, rows_in_a_group=chance.choice([10, 30, 70]))
        verdict = audited(folder, notes)
        if verdict is None:
            assert notes
            found[f"{kind}, single task"] += 1
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
            # Partition by partition, so in another order.
            assert set(verdict.findings["complete"].witnesses) == set(expected.findings["complete"].witnesses)
    assert found["good"] >= 6
    assert found["bad"] >= 2
    assert found["good, single task"] + found["bad, single task"] <= 17
    assert found["good, stops"] + found["bad, stops"] >= 3 or service is Service.PRIORITY_TOTAL
