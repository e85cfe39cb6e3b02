"""Urgent first: what a node has pre-acknowledged waits in the order of priorities, until a marker ends the run."""

from typing import Any

import pytest

from ordercast.audit.reference import check_run
from ordercast.audit.verdict import Verdict
from ordercast.model.config import GroupConfig
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import columns_of
from ordercast.pipeline.audit.run import audit_run, run_passes
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.simulator.simulate import runs_row, simulate
from ordercast.trace.files import events_batch
from ordercast.trace.schema import EventRow

LOW, HIGH, ALSO = 0, 1, 2  # seq of E1's messages
SENT = [(LOW, 1), (HIGH, 5), (ALSO, 5)]
SENTENCE = "E1 delivered E1#0 of priority 1 while E1#1 of priority 5 waited, and no marker ended the run"


def rows(*happenings: tuple[int, str, int | None, str | None]) -> list[EventRow]:
    """time, event, seq, detail: all at E1, the only node."""
    found: list[EventRow] = []
    for step, (time, event, seq, detail) in enumerate(happenings):
        send = event == "send"
        source = None if seq is None else 0
        priority = dict(SENT).get(seq, 0) if send and seq is not None else None
        found.append((0, step, time, event, source, seq, (0,) if send else None, priority, None, detail, None))
    return found


def row_of(protocol: str) -> dict[str, Any]:
    return {"run": "r", "protocol": protocol, "nodes": 1, "aborted": False, "config": None, "sent": None}


def judged(events: list[EventRow], *, protocol: str = "prito") -> Verdict:
    """By the reference; by arrays it passes if that finds nothing, or if it cannot tell."""
    batch, row = events_batch("r", events), row_of(protocol)
    verdict = Verdict()
    check_run(row, [{name: batch.column(name).to_pylist() for name in batch.schema.names}], None, verdict)
    assert audit_run(row, [batch]).as_document() == verdict.as_document()
    return verdict


BEGIN = [(0, "send", LOW, None), (0, "send", HIGH, None), (0, "transmit", LOW, "data"), (0, "accept", LOW, None)]
KNOWN = [(1, "accept", HIGH, None), (2, "preack", LOW, None), (2, "preack", HIGH, None), (3, "ack", LOW, None)]
MARKER = (4, "transmit", None, "marker")
REST = [(9, "ack", HIGH, None), (9, "deliver", HIGH, None)]


@pytest.mark.parametrize(
    ("middle", "found"),
    [
        ([(5, "deliver", LOW, None)], [SENTENCE]),
        ([MARKER, (5, "deliver", LOW, None)], []),
        ([(5, "deliver", LOW, None), (6, *MARKER[1:])], [SENTENCE]),  # too late
        ([(4, "transmit", None, "status"), (5, "deliver", LOW, None)], [SENTENCE]),
    ],
)
def test_the_urgent_goes_first_unless_a_marker_ends_the_run(middle: list[Any], found: list[str]) -> None:
    finding = judged(rows(*BEGIN, *KNOWN, *middle, *REST)).findings["priority_order_kept"]
    assert [witness.violation.sentence for witness in finding.witnesses] == found
    assert finding.violations == len(found)


def test_arrays_tell_by_themselves_that_the_urgent_went_first_and_of_two_equals_either() -> None:
    three = [(0, "send", ALSO, None), *((1, event, ALSO, None) for event in ("accept", "preack", "ack"))]
    events = rows(
        *BEGIN[:2],
        *three[:1],
        *BEGIN[2:],
        *KNOWN,
        *three[1:],
        *REST,
        (9, "deliver", ALSO, None),
        (9, "deliver", LOW, None),
    )
    assert judged(events).holds
    assert run_passes(row_of("prito"), columns_of(1, [events_batch("r", events)]), Service("prito"))


@pytest.mark.parametrize(("protocol", "read_again"), [("prito", True), ("to", False)])
def test_details_are_read_where_markers_count_and_only_there(protocol: str, read_again: bool) -> None:
    batch = events_batch("r", rows(*BEGIN, *KNOWN, MARKER, (5, "deliver", LOW, None), REST[0]))
    without = batch.select([name for name in batch.schema.names if name != "detail"])
    read: list[bool] = []

    def with_details() -> list[Any]:
        read.append(True)
        return [batch]

    verdict = audit_run(row_of(protocol), [without], with_details=with_details)
    broken = {name for name, finding in verdict.findings.items() if not finding.holds}
    assert broken == {"complete"}, "the urgent one is missing, and nothing else is wrong"
    assert read == [True] * read_again


def test_a_marker_before_the_acknowledgment_covers_nothing() -> None:
    early = [*KNOWN[:3], (2, "transmit", None, "marker"), KNOWN[3]]
    verdict = judged(rows(*BEGIN, *early, (5, "deliver", LOW, None), *REST))
    assert not verdict.findings["priority_order_kept"].holds


def test_what_is_not_known_to_all_overtakes_nothing() -> None:
    late = [KNOWN[0], KNOWN[1], KNOWN[3], (4, "deliver", LOW, None), (5, "preack", HIGH, None)]
    assert judged(rows(*BEGIN, *late, *REST)).findings["priority_order_kept"].holds


@pytest.mark.parametrize("missing", ["transmit", "preack"])
def test_what_is_not_recorded_is_not_judged(missing: str) -> None:
    events = rows(*(one for one in [*BEGIN, *KNOWN, (5, "deliver", LOW, None), *REST] if one[1] != missing))
    verdict = judged([row for row in events if missing != "preack" or row[3] not in {"accept", "ack"}])
    assert verdict.not_recorded["priority_order_kept"] == 1


def test_other_services_promise_no_such_thing() -> None:
    assert "priority_order_kept" not in judged(rows(*BEGIN, *KNOWN, *REST), protocol="to").findings


def run_of_the_simulator(protocol: str) -> tuple[dict[str, Any], list[Any]]:
    batches: list[Any] = []
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=4),
        network=Network(channel=Channel.ONE),
        workload=Workload(messages=60, priorities=3),
        seed=1,
    )
    result = simulate(config.with_default_timeouts(), sink=lambda found: batches.append(events_batch("r", found)))
    return {"run": "r", **runs_row(result)}, batches


@pytest.mark.parametrize("protocol", ["prito", "prio"])
def test_a_machine_that_is_blind_for_priorities_is_noticed(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row, batches = run_of_the_simulator(protocol)
    good = audit_run(row, batches)
    assert good.holds
    assert "priority_order_kept" in good.findings
    acknowledge = PriorityOrder.enter

    def blind(self: PriorityOrder, packet: Any, position: int) -> None:
        acknowledge(self, packet, position)
        self.by_priority[:] = sorted((0, place, one) for _, place, one in self.by_priority)

    monkeypatch.setattr(PriorityOrder, "enter", blind)
    row, batches = run_of_the_simulator(protocol)
    verdict = audit_run(row, batches)
    assert {name for name, finding in verdict.findings.items() if not finding.holds} == {"priority_order_kept"}
    assert not run_passes(row, columns_of(row["nodes"], batches), Service(protocol))
