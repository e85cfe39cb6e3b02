"""A profile has one verdict, whichever engine finds it: reference, arrays, partitions, tables of Spark."""

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.audit import reference
from ordercast.audit.profiles import SHIPPED, Profile, profile_of, shipped
from ordercast.audit.reference import check_run
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline import Engine, audit, audit_tables
from ordercast.pipeline.audit.kernel.columns import NotVectorisableError, columns_of
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.run import audit_run, run_passes
from ordercast.pipeline.audit.vectorised import audit_vectorised
from ordercast.trace.arrow_schema import RUNS
from tests.audit.figures import Row, columns
from tests.pipeline.random_runs import RandomRun, batch_of, break_somehow, random_run
from tests.pipeline.test_audit_kernel import row_of

RUNS_OF_EACH = 250
MIXED = profile_of("mixed", {"base": "st", "properties": {"delivered_once": False, "accepted_truthfully": False}}, "")
ASKED = [*map(shipped, SHIPPED), MIXED]


def by_reference(row: dict[str, Any], rows: list[Row], profile: Profile) -> Verdict | None:
    verdict = Verdict()
    try:
        check_run(row, [columns(rows)], profile, verdict)
    except TraceError:
        return None
    return verdict


@pytest.mark.parametrize("profile", ASKED, ids=lambda profile: profile.name)
def test_arrays_find_what_the_reference_finds(profile: Profile) -> None:
    chance = Random(f"profile {profile.name}")
    found: Counter[str] = Counter()
    for _ in range(RUNS_OF_EACH):
        run = random_run(chance, chance.choice([Service.SELECTIVE_PARTIAL, Service.SELECTIVE_TOTAL]))
        for _ in range(chance.randint(0, 2)):
            break_somehow(chance, run)
        rows, row = run.rows(), row_of(run)
        verdict = by_reference(row, rows, profile)
        if verdict is None:
            with pytest.raises(TraceError):
                audit_run(row, [batch_of(rows)], profile)
            continue
        assert audit_run(row, [batch_of(rows)], profile).as_document() == verdict.as_document()
        try:
            passes = run_passes(row, columns_of(run.nodes, [batch_of(rows)]), profile)
        except NotVectorisableError:
            passes = False
        assert verdict.holds or not passes
        found["passed"] += passes
        found["holds"] += verdict.holds
        found["violated"] += not verdict.holds
    assert found["violated"] > RUNS_OF_EACH / 10
    assert found["passed"] > found["holds"] / 2, "arrays are for the usual case"


@pytest.mark.parametrize("asked", [True, False])
def test_that_a_message_is_missing_altogether_matters_where_all_are_to_be_delivered(asked: bool) -> None:
    """A run counted one more than its record has."""
    profile = profile_of("p", {"base": "st", "properties": {} if asked else {"all_delivered": False}}, "")
    rows = rows_with()
    row = {"run": "r", "protocol": "st", "nodes": 3, "aborted": False, "config": None, "sent": 61}
    assert run_passes(row, columns_of(3, [batch_of(rows)]), profile) is not asked
    verdict = by_reference(row, rows, profile)
    assert verdict is not None
    assert verdict.holds is not asked


def rows_with(*, twice: bool = False, lost: bool = False, missing: bool = False) -> list[Row]:
    """E1 sends, E2 and E3 deliver in its order; in the middle E3 gets one twice, or not, or nobody sent it."""
    rows: list[Row] = []
    for seq in range(60):
        if missing and seq == 30:
            continue
        rows.append((0, seq, seq, "send", 0, seq, (1, 2), None))
        again = [(2, 2 * seq + 1, seq, "deliver", 0, seq, None, None)] if twice and seq == 30 else []
        rows.append((1, 2 * seq, seq, "deliver", 0, seq, None, None))
        rows += [(2, 2 * seq, seq, "deliver", 0, seq, None, None)] if not (lost and seq == 30) else []
        rows += again
    return rows


def stored(folder: Path, rows: list[Row]) -> Path:
    return written(folder, rows, {"run": "r", "protocol": "per-partition", "nodes": 3, "complete": True})


def written(folder: Path, rows: list[Row], row: dict[str, Any]) -> Path:
    (folder / "events").mkdir(parents=True)
    (folder / "runs").mkdir()
    pq.write_table(pa.Table.from_batches([batch_of(rows)]), folder / "events/0.parquet", row_group_size=20)
    row = {"complete": True, **row, "run": "r"}
    pq.write_table(pa.Table.from_pylist([row], schema=RUNS), folder / "runs/0.parquet")
    return folder


CASES = [({}, "total-dense", True), ({"twice": True}, "per-partition", True), ({"twice": True}, "total", False)]
CASES += [({"missing": True}, "total-dense", False), ({"missing": True}, "total", True)]
CASES += [({"lost": True}, "at-least-once", False), ({"lost": True}, "at-most-once", True)]


@pytest.mark.parametrize(("how", "name", "holds"), CASES)
def test_partitions_find_what_the_reference_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, bool], name: str, holds: bool
) -> None:
    folder = stored(tmp_path / "t", rows_with(**how))
    monkeypatch.setattr(partitioned, "PARTITIONED_ABOVE", 10)
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 40)
    notes: list[str] = []
    found = audit_vectorised([folder], shipped(name), note=notes.append)
    assert found.as_document() == reference.audit([folder], shipped(name)).as_document()
    assert found.holds is holds
    assert not any("falling back" in note for note in notes)


@pytest.mark.parametrize("one_clock", [True, False])
@pytest.mark.parametrize("name", SHIPPED)
def test_random_runs_are_judged_in_partitions_by_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, one_clock: bool
) -> None:
    """A violation may be counted in some partitions only, and is never missed or made up; few runs fall back."""
    monkeypatch.setattr(partitioned, "PARTITIONED_ABOVE", 0)
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 60)
    chance = Random(f"partitions {name}")
    found: Counter[str] = Counter()
    for number in range(40):
        run = random_run(chance, chance.choice([Service.SELECTIVE_PARTIAL, Service.SELECTIVE_TOTAL]), messages=60)
        run.logs = [[event for event in log if event[1] in {"send", "deliver"}] for log in run.logs]
        if sum(event[1] == "deliver" for log in run.logs for event in log) < 12:
            continue
        for _ in range(chance.randint(0, 2)):
            broken(chance, run)
        row = row_of(run)
        if not one_clock:
            row["config"] = json.dumps({"log": {"one_clock": False}})
        folder = written(tmp_path / f"{number}{one_clock}", run.rows(), row)
        notes: list[str] = []
        judged = audit_vectorised([folder], shipped(name), note=notes.append)
        expected = reference.audit([folder], shipped(name))
        assert judged.holds is expected.holds
        for what, finding in judged.findings.items():
            assert finding.violations <= expected.findings[what].violations, what
            assert finding.at_least or finding.violations == expected.findings[what].violations, what
            if what != "no_cycle":  # whose witness is any cycle
                assert finding.by_node == expected.findings[what].by_node or finding.at_least
        found["violated"] += not expected.holds
        found["fell back"] += any("falling back" in note for note in notes)
    assert found["fell back"] < 12
    assert found["violated"] > 2


def broken(chance: Random, run: RandomRun) -> None:
    """Hands a node something again, or not, or two things in the other order, anywhere in its log."""
    log = chance.choice([log for log in run.logs if any(event[1] == "deliver" for event in log)])
    places = [place for place, event in enumerate(log) if event[1] == "deliver"]
    place, other = chance.choice(places), chance.choice(places)
    match chance.choice(["again", "again", "lost", "swapped", "unsent"]):
        case "unsent":
            message = log[place][2]
            run.logs = [[event for event in one if event[2] != message] for one in run.logs]
        case "again":
            log.append((log[-1][0], *log[place][1:]))
        case "lost":
            del log[place]
        case _:
            one, two = log[place], log[other]
            log[place], log[other] = (one[0], *two[1:]), (two[0], *one[1:])


def test_a_run_that_its_service_passes_is_judged_in_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = stored(tmp_path / "t", rows_with())
    monkeypatch.setattr(partitioned, "PARTITIONED_ABOVE", 10)
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 40)
    for name in ("per-partition", "per-key", "total", "at-least-once"):
        notes: list[str] = []
        found = audit_vectorised([folder], shipped(name), note=notes.append)
        assert found.as_document() == reference.audit([folder], shipped(name)).as_document()
        assert found.holds
        assert notes == []


def test_a_trace_names_the_profile_that_it_promises(tmp_path: Path) -> None:
    folder = stored(tmp_path / "t", rows_with(twice=True))
    assert audit([folder], engine=Engine.REFERENCE).holds, "per-partition"
    assert not audit([folder], "total", engine=Engine.VECTORISED).holds


def test_spark_finds_what_the_reference_finds(tmp_path: Path, spark: SparkSession) -> None:
    for number, (how, name, holds) in enumerate(CASES):
        folder = stored(tmp_path / str(number), rows_with(**how))
        expected = reference.audit([folder], shipped(name))
        assert expected.holds is holds
        assert audit([folder], shipped(name), spark=spark).as_document() == expected.as_document()
        events, runs = (spark.read.parquet(str(folder / table)) for table in ("events", "runs"))
        verdicts = audit_tables(events, runs, name).verdicts.collect()
        assert {row["property"]: row["holds"] for row in verdicts} == {
            name: finding.holds for name, finding in expected.findings.items()
        }
