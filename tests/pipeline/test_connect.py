"""Audits through a Spark Connect server: as the reference judges, and a growing trace followed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.audit.reference import audit as audit_by_reference
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline import audit, audit_tables
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned import audit as partitioned_audit
from ordercast.pipeline.audit.stream.follow import CHECKPOINT, follow
from ordercast.pipeline.audit.stream.follower import Follower
from ordercast.pipeline.session import session
from ordercast.trace.schema import EventField
from tests.pipeline.random_runs import long_enough
from tests.pipeline.sparks import connect_server, ordercast, outcome
from tests.pipeline.test_audit_kernel import by_reference
from tests.pipeline.test_follow import add
from tests.pipeline.traces import random_runs, write

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as running:
        yield running


@pytest.fixture
def client(address: str) -> Iterator[SparkSession]:
    with session(address) as opened:
        yield opened


def test_the_command_ends_in_the_same_document(address: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "trace", random_runs("connect command", 21), runs_in_a_file=4)
    verdict = tmp_path / "verdict.json"
    status, out, err = outcome(ordercast("audit", folder, "--master", address, "--json", verdict))
    assert (status, err) == (1, ""), out
    expected = json.loads(json.dumps(audit_by_reference([folder]).as_document()))
    assert json.loads(verdict.read_text()) == expected


def test_folders_are_judged_in_tasks_and_in_partitions(
    client: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = random_runs("connect folders", 70)
    write(tmp_path / "short", runs, runs_in_a_file=25, rows_in_a_group=40)
    counted: list[tuple[int, int]] = []
    verdict = audit([tmp_path / "short"], spark=client, progress=lambda done, of: counted.append((done, of)))
    assert verdict.as_document() == audit_by_reference([tmp_path / "short"]).as_document()
    assert counted[-1][0] == counted[-1][1] > 0
    monkeypatch.setattr(partitioned_audit, "PARTITIONED_ABOVE", 100)
    monkeypatch.setattr(partitioned, "ROWS_OF_A_PARTITION", 60)
    write(tmp_path / "long", {"r": long_enough("connect boxes")}, rows_in_a_group=30)
    verdict = audit([tmp_path / "long"], spark=client, note=pytest.fail)
    assert verdict.holds
    assert verdict.as_document() == audit_by_reference([tmp_path / "long"]).as_document()


def test_tables_are_judged(client: SparkSession, tmp_path: Path) -> None:
    runs = random_runs("connect tables", 14)
    write(tmp_path, runs, runs_in_a_file=3)
    events, rows = (client.createDataFrame(pq.read_table(tmp_path / name)) for name in ("events", "runs"))
    verdicts = audit_tables(events, rows).verdicts
    found = {(row["run"], row["property"]): row["violations"] for row in verdicts.collect()}
    for name, run in runs.items():
        verdict = by_reference(run)
        assert verdict is not None
        for promise, finding in verdict.findings.items():
            assert found[name, promise] == finding.violations


def test_a_growing_trace_is_followed(client: SparkSession, tmp_path: Path) -> None:
    rows = long_enough("connect follow").rows()
    add(tmp_path, 0, rows[:50])
    with pytest.raises(TraceError, match="give it by --service"):
        follow(client, tmp_path, until_idle=60)
    assert follow(client, tmp_path, Service.TOTAL, until_idle=4) == []
    add(tmp_path, 1, rows[50:])
    assert follow(client, tmp_path, Service.TOTAL, until_idle=4) == []
    known = Follower(tmp_path, tmp_path / CHECKPOINT, Service.TOTAL).prefix("r")
    assert known.steps == {row[EventField.NODE]: row[EventField.STEP] for row in sorted(rows)}
    again = [
        (row[EventField.NODE], row[EventField.STEP] + 1_000, *row[2:])
        for row in rows
        if row[EventField.EVENT] == "deliver"
    ][:1]
    add(tmp_path, 2, again)
    (witness, *_) = follow(client, tmp_path, Service.TOTAL, until_idle=60)
    assert witness.violation.breaks == "complete"
