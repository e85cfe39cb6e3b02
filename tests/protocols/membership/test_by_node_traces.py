"""Traces of changing groups in the simulator have every property of views, whatever order they are of."""

import pytest

from ordercast.audit.services import OF_VIEWS
from ordercast.trace.schema import EventField
from ordercast.trace.view_rows import heard_in
from tests.protocols.membership.traced_runs import CASES, ORDERS, audited, traced


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", ORDERS)
def test_the_audit_finds_nothing(protocol: str, case: str) -> None:
    for seed in range(2):
        config, rows = traced(protocol, seed, case)
        verdict = audited(config, rows)
        assert {name: one.witnesses for name, one in verdict.findings.items() if not one.holds} == {}
        assert verdict.findings.keys() >= {promise.__name__ for promise in OF_VIEWS}
        views = [row for row in rows if row[EventField.EVENT] == "view"]
        assert len({row[EventField.SEQ] for row in views}) > 1
        assert all(heard_in(row[EventField.DETAIL]) is not None for row in views)


@pytest.mark.parametrize("protocol", ORDERS)
def test_what_is_taken_out_is_missed(protocol: str) -> None:
    config, rows = traced(protocol, 1, "a crash")
    last = {row[EventField.NODE]: row[EventField.STEP] for row in rows if row[EventField.EVENT] == "view"}
    gone = next(
        row
        for row in reversed(rows)
        if row[EventField.EVENT] == "deliver" and row[EventField.NODE] == 0 and row[EventField.STEP] < last[0]
    )
    broken = {
        name for name, one in audited(config, [row for row in rows if row != gone]).findings.items() if not one.holds
    }
    assert broken & {"same_set", "uniform"}


def test_levels_that_follow_from_a_view_say_so() -> None:
    _, rows = traced("to", 0, "a crash")
    by_view = [row for row in rows if row[EventField.EVENT] == "ack" and row[EventField.DETAIL] == "view"]
    views = {(row[EventField.NODE], row[EventField.TIME]) for row in rows if row[EventField.EVENT] == "view"}
    assert by_view
    assert {(row[EventField.NODE], row[EventField.TIME]) for row in by_view} <= views


@pytest.mark.parametrize(("protocol", "seed"), [("st", 3), ("to", 3), ("prito", 3), ("prio", 3), ("sequencer", 0)])
def test_what_is_sent_again_in_a_view_says_so_and_is_sent_once(protocol: str, seed: int) -> None:
    _, rows = traced(protocol, seed, "a crash")
    sent = [row[EventField.SOURCE : EventField.DESTINATIONS] for row in rows if row[EventField.EVENT] == "send"]
    again = [row for row in rows if row[EventField.EVENT] == "renumber"]
    assert len(set(sent)) == len(sent)
    assert {row[EventField.SOURCE : EventField.DESTINATIONS] for row in again} <= set(sent)
    assert {row[EventField.DETAIL] for row in again} == {"1"}
