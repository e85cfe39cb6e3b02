"""A record is held against the counters that the run itself kept, by each way of judging."""

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ordercast.audit.reference import audit
from ordercast.audit.verdict import Verdict
from ordercast.model.config import GroupConfig, Rules, SequencerConfig
from ordercast.model.faults import Crash, Fault, Loss
from ordercast.model.runs import Network, RunConfig, TraceDetail, Workload
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.partitioned import audit as partitioned_audit
from ordercast.pipeline.audit.vectorised import audit_vectorised
from ordercast.protocols.registry import PROTOCOLS, machine_class
from ordercast.simulator import simulate


def by_all_means(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    verdict = audit([folder])
    assert audit_vectorised([folder], note=pytest.fail) == verdict
    with monkeypatch.context() as patched:
        patched.setattr(partitioned_audit, "PARTITIONED_ABOVE", 0)
        patched.setattr(partitioned, "ROWS_OF_A_PARTITION", 200)
        in_partitions = audit_vectorised([folder])
        assert in_partitions.findings["complete"] == verdict.findings["complete"]
    return verdict


def run_of(protocol: str, record: TraceDetail, *faults: Fault) -> RunConfig:
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=4, sequencer=SequencerConfig(resilience=1 if faults else 0)),
        network=Network(channel=machine_class(protocol, Rules.SOUND).needs),
        workload=Workload(messages=20, spread=0.6, batch=2, priorities=3 if protocol.startswith("pri") else 1),
        faults=(Loss(rate=0.1), *faults),
        record=record,
    ).with_default_timeouts()


@pytest.mark.parametrize("faults", [(), (Crash(node=1, at=1_500_000),)])
@pytest.mark.parametrize("record", [TraceDetail.ALL, TraceDetail.DELIVERIES])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_is_recorded_is_what_was_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, record: TraceDetail, faults: tuple[Fault, ...]
) -> None:
    """Whether the run came to its end or not: what it counted is what it recorded."""
    result = simulate(run_of(protocol, record, *faults), tmp_path)
    assert result.complete or faults
    assert by_all_means(tmp_path, monkeypatch).findings["complete"].holds


@pytest.mark.parametrize("protocol", ["spo", "to"])
def test_a_message_that_is_taken_out_with_its_send_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    simulate(run_of(protocol, TraceDetail.DELIVERIES), tmp_path)
    (path,) = (tmp_path / "events").iterdir()
    table = pq.read_table(path)
    gone = pc.and_(pc.equal(table["source"], 1), pc.equal(table["seq"], 19))  # the last, so that no number lacks
    assert pc.sum(gone).as_py() > 1
    pq.write_table(table.filter(pc.invert(gone)), path)
    finding = by_all_means(tmp_path, monkeypatch).findings["complete"]
    assert finding.violations == 1
    (witness,) = finding.witnesses
    assert witness.violation.sentence.startswith("the run counted 80 messages sent, and its record has 79; the run")


def test_other_breakages_are_told_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(run_of("spo", TraceDetail.DELIVERIES), tmp_path)
    (path,) = (tmp_path / "events").iterdir()
    table = pq.read_table(path)
    last = max(place for place, kind in enumerate(table["event"].to_pylist()) if kind == "deliver")
    pq.write_table(table.take([place for place in range(table.num_rows) if place != last]), path)
    (witness,) = by_all_means(tmp_path, monkeypatch).findings["complete"].witnesses
    assert " lacks E" in witness.violation.sentence
