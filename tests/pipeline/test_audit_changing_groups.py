"""Groups whose members change: every engine gives the verdict of the reference audit, whatever is broken."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.audit.logs import ALL_COLUMNS
from ordercast.audit.reference import audit as audit_by_reference
from ordercast.audit.reference import check_run
from ordercast.audit.services import OF_VIEWS
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline import audit_tables
from ordercast.pipeline.audit import run
from ordercast.pipeline.audit.engine import Engine, audit
from ordercast.pipeline.audit.partitioned import audit as partitioned_audit
from ordercast.pipeline.audit.stream.prefix import Prefix
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.schema import EVENT_COLUMNS
from tests.audit.changing_groups import Row, Script, audited, edited, rows_of, run_row
from tests.audit.test_audit_changing_groups import ACKNOWLEDGED, BREAKAGES, GOOD, LEVELS, SELECTED, TAIL
from tests.audit.test_audit_durability import BROKEN_LOGS, LOGS, STAYING_LOGS
from tests.cli.conftest import Command
from tests.pipeline.random_runs import break_somehow, random_run
from tests.pipeline.test_audit_kernel import by_kernel, by_reference
from tests.protocols.membership.traced_runs import ORDERS, traced
from tests.protocols.membership.traced_runs import run_row as simulated_row

SCRIPTS: dict[str, tuple[Script, Service]] = {
    **{f"{number:02} {name}": (script, Service.TOTAL) for number, (name, script, _) in enumerate(BREAKAGES)},
    **{f"good {service.value}": (GOOD, service) for service in Service},
    **{f"selected {service.value}": (SELECTED, service) for service in SELECTIVE},
    "acknowledged": (ACKNOWLEDGED, Service.TOTAL),
    "levels": ({node: text.replace("n;", "timeout t;") for node, text in LEVELS.items()}, Service.TOTAL),
    "tail": (TAIL, Service.SEQUENCED),
    "logs": (LOGS, Service.TOTAL),
    "logs of a group that stays": (STAYING_LOGS, Service.TOTAL),
    **{f"logs: {name}": (script, Service.TOTAL) for name, (script, _, _) in BROKEN_LOGS.items()},
}


def batch_of(rows: list[Row], run: str = "r") -> pa.RecordBatch:
    named: dict[str, list[Any]] = {name: [row[at] for row in rows] for at, name in enumerate(ALL_COLUMNS)}
    named["run"] = [run] * len(rows)
    arrays = [pa.array(named.get(field.name, [None] * len(rows)), field.type) for field in EVENTS]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All scripts as runs of one trace; several runs in a file, and row groups that they share."""
    root = tmp_path_factory.mktemp("changing")
    for part in ("events", "runs"):
        (root / part).mkdir()
    events = pa.Table.from_batches([batch_of(rows_of(script), name) for name, (script, _) in SCRIPTS.items()])
    pq.write_table(events, root / "events/part.parquet", row_group_size=40)
    rows = [{**run_row(service, len(script)), "run": name} for name, (script, service) in SCRIPTS.items()]
    pq.write_table(pa.Table.from_pylist(rows, schema=RUNS), root / "runs/part.parquet")
    return root


def test_the_vectorised_audit_leaves_them_to_the_reference(folder: Path) -> None:
    expected = audit_by_reference([folder])
    assert {name for name, finding in expected.findings.items() if not finding.holds} >= {
        promise.__name__ for promise in OF_VIEWS
    }
    assert audit([folder], engine=Engine.VECTORISED).as_document() == expected.as_document()


def test_long_runs_are_audited_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    notes: list[str] = []
    found = audit([folder], engine=Engine.VECTORISED, note=notes.append)
    assert found.as_document() == audit_by_reference([folder]).as_document()
    assert len(notes) == len(SCRIPTS)
    assert all("falling back to a single-task audit" in note for note in notes)
    assert sum("its members change, and views are audited as a whole" in note for note in notes) > len(SCRIPTS) / 2


def test_on_spark_likewise(spark: SparkSession, folder: Path) -> None:
    expected = audit_by_reference([folder])
    assert audit([folder], spark=spark).as_document() == expected.as_document()
    events = spark.read.schema(spark_schema(EVENTS)).parquet(str(folder / "events"))
    rows = spark.read.schema(spark_schema(RUNS)).parquet(str(folder / "runs"))
    found = {(row["run"], row["property"]): row for row in audit_tables(events, rows).verdicts.collect()}
    for name, (script, service) in SCRIPTS.items():
        for promise, finding in audited(script, service).findings.items():
            assert found[name, promise]["violations"] == finding.violations


@pytest.mark.parametrize("protocol", ORDERS)
def test_simulated_runs_pass_in_all_engines(protocol: str, tmp_path: Path) -> None:
    config, rows = traced(protocol, 1, "joining and a crash")
    columns = dict(
        zip([column.name for column in EVENT_COLUMNS], zip(*[("r", *row) for row in rows], strict=True), strict=True)
    )
    for part in ("events", "runs"):
        (tmp_path / part).mkdir()
    table = pa.table({field.name: pa.array(columns[field.name], field.type) for field in EVENTS}, schema=EVENTS)
    pq.write_table(table, tmp_path / "events/part.parquet", row_group_size=500)
    pq.write_table(pa.Table.from_pylist([simulated_row(config)], schema=RUNS), tmp_path / "runs/part.parquet")
    for engine in (Engine.REFERENCE, Engine.VECTORISED):
        verdict = audit([tmp_path], engine=engine)
        assert verdict.holds
        assert verdict.findings.keys() >= {promise.__name__ for promise in OF_VIEWS}
    prefix = Prefix("r")
    most = 0
    for start in range(0, table.num_rows, 400):
        batch = table.slice(start, 400).combine_chunks().to_batches()[0]
        assert prefix.grow(batch, Service(protocol), uniform=True) == []
        most = max(most, prefix.carried().num_rows)
    if protocol not in {"prito", "prio"}:
        assert prefix.retired
        assert prefix.carried().num_rows < most


# --- groups that may change, and do not ---

EVERYBODY = "view 0 = 0 1 2 heard"
STAYS: Script = {
    0: f"{EVERYBODY}; send a 0 1 2; send b 0 1 2; deliver a; deliver p; deliver b",
    1: f"{EVERYBODY}; send p 0 1 2; deliver a; deliver p; deliver b",
    2: f"{EVERYBODY}; deliver a; deliver p; deliver b",
}
STAYING: dict[str, tuple[Script, bool]] = {
    "as founded": (STAYS, True),
    "with acknowledgments": (edited(STAYS, 2, ("deliver b", "deliver b; ack a")), False),
    "a delivery is missing": (edited(STAYS, 1, ("deliver b", "")), False),
    "a delivery is early": (
        edited(STAYS, 1, (f"{EVERYBODY}; send p 0 1 2; deliver a", f"deliver a; {EVERYBODY}; send p 0 1 2")),
        False,
    ),
    "a view is missing": (edited(STAYS, 1, (f"{EVERYBODY};", "")), False),
    "a view is another": (edited(STAYS, 1, ("0 1 2 heard", "0 2 1 heard")), False),
    "a view is smaller": (
        {node: text.replace("view 0 = 0 1 2", "view 0 = 0 1") for node, text in STAYS.items()},
        False,
    ),
    "a view has another number": (edited(STAYS, 1, ("view 0", "view 1")), False),
    "one crashes": (edited(STAYS, 1, ("deliver b", "crash")), False),
    "one leaves": (edited(STAYS, 1, ("deliver b", "deliver b; leave drained; deliver b")), False),
    "one is excluded": (edited(STAYS, 1, ("deliver b", "deliver b; exclude 1; send n 0 1")), False),
    "one gets a state": (edited(STAYS, 1, ("send p", "state 0 0; send p")), False),
    "two views": (edited(STAYS, 1, ("deliver b", "deliver b; view 1 = 0 1 heard 1")), False),
}
"""And whether the vectorised audit finds by itself that it passes."""


def written(folder: Path, script: Script, service: Service, **more: Any) -> Path:
    for part in ("events", "runs"):
        (folder / part).mkdir()
    pq.write_table(pa.Table.from_batches([batch_of(rows_of(script))]), folder / "events/part.parquet", row_group_size=4)
    row = run_row(service, len(script), **more)
    pq.write_table(pa.Table.from_pylist([row], schema=RUNS), folder / "runs/part.parquet")
    return folder


@pytest.mark.parametrize("service", [Service.TOTAL, Service.PARTIAL, Service.SELECTIVE_TOTAL, Service.SEQUENCED])
@pytest.mark.parametrize("case", STAYING)
def test_a_group_that_stays_is_audited_like_one_without_views(
    case: str, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, passes = STAYING[case]
    passes = passes or (case == "with acknowledgments" and service is Service.SEQUENCED)  # of which nothing is asked
    folder = written(tmp_path, script, service)
    expected = audit_by_reference([folder])
    assert set(audited(STAYS, service).findings) >= {"same_set", "kept"}
    by_reference: list[int] = []

    def check(*about: Any) -> None:
        by_reference.append(1)
        check_run(*about)

    monkeypatch.setattr(run, "check_run", check)
    assert audit([folder], engine=Engine.VECTORISED).as_document() == expected.as_document()
    assert bool(by_reference) is not passes
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    notes: list[str] = []
    by_reference.clear()
    assert audit([folder], engine=Engine.VECTORISED, note=notes.append).as_document() == expected.as_document()
    assert bool(by_reference) is not passes
    assert bool(notes) is not passes


# The deliveries of E1 and E2 have no common order, which some services allow.
OTHERWISE = edited(STAYS, 1, ("deliver a; deliver p", "deliver p; deliver a"))


def with_logs(script: Script, *logs: str) -> Script:
    return {node: f"{script[node]}; {log}" for node, log in enumerate(logs)}


LOGGED: dict[str, tuple[Script, bool]] = {
    "logs that agree": (with_logs(STAYS, "durable a; durable p; durable b", "durable a; durable p", "durable a"), True),
    "one has none": (with_logs(STAYS, "durable a", "", "durable a"), True),
    "logs that differ": (with_logs(STAYS, "durable a; durable p", "durable p; durable a", "durable a"), False),
    "each as its node delivered": (with_logs(OTHERWISE, "durable a", "durable p; durable a", "durable a"), False),
    "two that nobody sent": (with_logs(STAYS, "durable a", "durable a; durable x", "durable a; durable y"), False),
    "one was taken back": (with_logs(STAYS, "durable a", "durable p; drop 0; durable a", "durable a"), False),
    "one is started again": (with_logs(STAYS, "durable a", "durable a; restart 1 1; durable a", "durable a"), False),
    "views without numbers": (
        {
            node: text.replace(f"{EVERYBODY};", "")
            for node, text in with_logs(STAYS, "durable a; durable p", "durable a; durable p", "durable a").items()
        },
        False,
    ),
}
"""And whether the vectorised audit finds by itself that it passes."""


@pytest.mark.parametrize("service", [Service.TOTAL, Service.PARTIAL])
@pytest.mark.parametrize("case", LOGGED)
def test_logs_of_a_group_that_stays_are_compared(
    case: str, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, passes = LOGGED[case]
    by_reference: list[int] = []

    def check(*about: Any) -> None:
        by_reference.append(1)
        check_run(*about)

    folder = written(tmp_path, script, service)
    expected = audit_by_reference([folder])
    monkeypatch.setattr(run, "check_run", check)
    assert audit([folder], engine=Engine.VECTORISED).as_document() == expected.as_document()
    assert bool(by_reference) is not passes


@pytest.mark.parametrize("more", [{"complete": False}, {"aborted": True}, {"sent": 4}])
def test_what_its_row_says_counts(more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, STAYS, Service.TOTAL, **more)
    expected = audit_by_reference([folder]).as_document()
    assert audit([folder], engine=Engine.VECTORISED).as_document() == expected
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
    assert audit([folder], engine=Engine.VECTORISED).as_document() == expected


# --- while it grows ---


def grown(chance: Random, script: Script, service: Service) -> set[str]:
    """What is told of a run whose nodes' rows come in any order, each node's in its own."""
    logs = [[row for row in rows_of(script) if row[0] == node] for node in script]
    prefix = Prefix("r")
    while any(logs):
        rows: list[Row] = []
        for _ in range(chance.randint(1, 6)):
            log = chance.choice([log for log in logs if log] or [[]])
            rows += [log.pop(0)] if log else []
        found = prefix.grow(batch_of(rows), service, uniform=True)
        if found:
            return {violation.breaks for violation in found}
    return set()


@pytest.mark.parametrize("service", Service)
def test_nothing_is_said_of_good_groups(service: Service) -> None:
    chance = Random(f"growing {service.value}")
    for script in (GOOD, SELECTED) if service in SELECTIVE else (GOOD,):
        for _ in range(8):
            assert grown(chance, script, service) == set()
    if service is Service.SEQUENCED:
        assert grown(chance, TAIL, service) == set()


TOLD = {promise.__name__ for promise in OF_VIEWS} - {"kept", "state_complete", "acknowledged_stays", "no_hole"}
"""What is told before the end, if it is broken: of holes mostly what else is wrong with them is told first."""


def test_what_is_broken_is_told_while_it_grows() -> None:
    chance = Random("broken")
    told: set[str] = set()
    for name, script, _ in BREAKAGES:
        violated = {one for one, finding in audited(script).findings.items() if not finding.holds}
        for _ in range(3):
            found = grown(chance, script, Service.TOTAL)
            told |= found & {name}
            # Which of two lists is known first is chance, and whether a node goes on is known later.
            assert found <= violated | {"uniform"} or "same_views" in violated
            assert not found or violated & {*TOLD, "no_hole"}
    assert told >= TOLD


def test_the_command_lists_the_properties_of_views(ordercast: Command, tmp_path: Path) -> None:
    for name, script, status in (("good", GOOD, 0), ("bad", BREAKAGES[0][1], 1)):
        (tmp_path / name).mkdir()
        done = ordercast("audit", written(tmp_path / name, script, Service.TOTAL))
        assert done.status == status
        assert all(promise.__name__ in done.out for promise in OF_VIEWS)
    assert "same_views, run r: E1 installed view 1 with E1, E2, E4, E2 with E1, E2" in done.out


@pytest.mark.parametrize("service", Service)
def test_the_kernel_passes_only_what_the_reference_finds_nothing_in(service: Service) -> None:
    chance = Random(f"founded {service.value}")
    found: Counter[str] = Counter()
    for _ in range(120):
        some = random_run(chance, service)
        everybody = tuple(range(some.nodes))
        for log in some.logs:
            log.insert(0, (0, "view", (None, 0), everybody, None))  # type: ignore[arg-type] # no message: view 0
        for _ in range(chance.randint(0, 2)):
            break_somehow(chance, some)
        verdict = by_reference(some)
        passed = by_kernel(some, chance.randint(1, 3))
        assert verdict is not None or not passed
        if verdict is not None:
            assert verdict.holds or not passed
            found["good"] += verdict.holds
            found["passed"] += passed
            found["broken"] += not verdict.holds
    assert found["passed"] > 20
    assert found["broken"] > 20
