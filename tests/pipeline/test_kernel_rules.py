"""Rules of the audit by arrays that random runs seldom meet, one by one, each held against the reference."""

from typing import Any

import pytest

from ordercast.audit.completeness import complete
from ordercast.audit.logs import RunLogs
from ordercast.audit.order import same_order
from ordercast.audit.priorities import sender_order_kept_by_priority
from ordercast.audit.reference import check_run
from ordercast.audit.services import PROMISES, Property
from ordercast.audit.verdict import Finding, Verdict
from ordercast.audit.views import delivered_uniformly
from ordercast.audit.violations import Violations
from ordercast.model.services import Service
from ordercast.pipeline.audit import run as judging
from ordercast.pipeline.audit.kernel.checks import passes
from ordercast.pipeline.audit.kernel.columns import columns_of
from ordercast.pipeline.audit.memory import BY_REFERENCE
from ordercast.pipeline.audit.run import audit_run
from tests.audit.figures import Figure, Row, columns
from tests.pipeline.random_runs import batch_of


def passed(figure: Figure, service: Service) -> bool:
    """By the kernel, and as the reference has it."""
    verdict = Verdict()
    row = {"run": "r", "protocol": service.value, "nodes": figure.nodes, "aborted": False, "config": None}
    check_run(row, [columns(figure.rows)], service, verdict)
    found = passes(columns_of(figure.nodes, [batch_of(figure.rows)]), service)
    assert found is verdict.holds
    return found


def unknown_property(logs: RunLogs) -> Violations:
    """A property that the kernel has not heard of, and that nothing violates."""
    del logs
    yield from ()


@pytest.mark.parametrize(
    ("promises", "unknown"),
    [
        ((complete, unknown_property), "unknown_property"),
        ((complete, same_order), "same_order"),  # it is checked with no_cycle only
        ((complete, delivered_uniformly), "delivered_uniformly"),
        ((complete, sender_order_kept_by_priority), "sender_order_kept_by_priority"),  # with same_runs only
    ],
)
def test_a_property_that_is_not_checked_is_not_passed(
    promises: tuple[Property, ...], unknown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = Figure(["a123", "b123", ""], ["a b", "a b", "a b"])
    monkeypatch.setitem(PROMISES, Service.TOTAL, promises)
    with pytest.raises(NotImplementedError, match=unknown):
        passes(columns_of(figure.nodes, [batch_of(figure.rows)]), Service.TOTAL)


@pytest.mark.parametrize(("third", "good"), [("a b", True), ("b a", False)])
def test_the_third_log_counts_as_the_first_two_do(third: str, good: bool) -> None:
    assert passed(Figure(["a123", "b123", ""], ["a b", "a b", third]), Service.TOTAL) is good


@pytest.mark.parametrize(
    ("stopped", "going_on", "good"),
    [
        ("a x y", "a y x", True),  # it was alone from x on
        ("x a", "a y x", True),  # from the beginning
        ("a y", "a y x", True),  # never
        ("a x y", "a y", False),  # x is lost, though E2 that sent it goes on
    ],
)
def test_what_only_a_node_that_stopped_was_given_is_not_common(stopped: str, going_on: str, good: bool) -> None:
    """E1 crashes, and the others go on."""
    figure = Figure(["a123", "x123", "y123"], [stopped, going_on, going_on])
    figure.add(0, "crash", time=9)
    for node in (1, 2):
        figure.add(node, "view", time=10, to=(1, 2))
    assert passed(figure, Service.SEQUENCED) is good


@pytest.mark.parametrize("service", [Service.TOTAL, Service.SEQUENCED])
def test_only_the_sequencers_logs_are_compared_without_tails(service: Service) -> None:
    """E1 crashes, and delivered x before a, unlike the others: which its service must allow."""
    figure = Figure(["a123", "x123", ""], ["x a", "a x", "a x"])
    figure.add(0, "crash", time=9)
    assert passed(figure, service) is (service is Service.SEQUENCED)


@pytest.mark.parametrize(("last", "good"), [("w g", False), ("g w", True)])
def test_logs_that_agree_in_pairs_may_have_no_common_order(last: str, good: bool) -> None:
    """g goes to E1 and E3, y to E1 and E2, w to E2 and E3."""
    assert passed(Figure(["g13 y12", "w23", ""], ["g y", "y w", last]), Service.SELECTIVE_TOTAL) is good


def test_equal_priorities_of_two_senders_may_be_in_any_order() -> None:
    assert passed(Figure(["a12", "b12"], ["a b", "b a"], {"a": 1, "b": 1}), Service.PRIORITY)


@pytest.mark.parametrize(("other", "good"), [("h a", True), ("a h", False)])
def test_all_have_the_same_priority_runs(other: str, good: bool) -> None:
    assert passed(Figure(["a12", "h12"], ["h a", other], {"a": 1, "h": 2}), Service.PRIORITY) is good


def test_priority_runs_of_a_node_that_stopped_are_left_to_the_reference() -> None:
    figure = Figure(["a12", "h12"], ["a h", "h a"], {"a": 1, "h": 2})
    figure.add(0, "crash", time=9)
    assert not passed(figure, Service.PRIORITY)


@pytest.mark.parametrize("uniform", [True, False])
def test_a_uniform_run_has_no_tails(uniform: bool) -> None:
    figure = Figure(["a123", "x123", "y123"], ["a x y", "a y x", "a y x"])
    figure.add(0, "crash", time=9)
    assert passes(columns_of(3, [batch_of(figure.rows)]), Service.SEQUENCED, uniform=uniform) is not uniform


def test_what_happened_at_the_same_time_elsewhere_may_be_known() -> None:
    figure = Figure(["a12", ""], ["", ""])
    for event in ("accept", "preack", "ack", "deliver"):
        for node in range(2):
            figure.add(node, event, "a")
    assert passed(figure, Service.TOTAL)


def test_a_senders_order_is_kept_within_a_run_not_across_runs() -> None:
    """E1 sends a and then b, both of priority 1; b is in the first run, and a in the second, behind h."""
    figure = Figure(["a12 b12", "h12"], ["b h a", "b h a"], {"a": 1, "b": 1, "h": 2})
    assert passed(figure, Service.PRIORITY)
    assert not passed(figure, Service.PRIORITY_TOTAL)


def test_of_a_run_that_goes_on_each_priority_has_its_senders_order_where_that_holds_across_runs() -> None:
    across = Figure(["a12 b12", "h12"], ["b h a", "b h a"], {"a": 1, "b": 1, "h": 2})
    within = Figure(["a12 b12", "h12"], ["a h b", "a h b"], {"a": 1, "b": 1, "h": 2})
    for figure, service, good in (
        (across, Service.PRIORITY, True),
        (across, Service.PRIORITY_TOTAL, False),
        (within, Service.PRIORITY_TOTAL, True),
    ):
        assert passes(columns_of(2, [batch_of(figure.rows)]), service, so_far=True) is good


@pytest.mark.parametrize(("counter", "said", "good"), [("sent", 1, True), ("sent", 2, False), ("delivered", 1, False)])
def test_what_a_run_counted_is_in_its_record(counter: str, said: int, good: bool) -> None:
    figure = Figure(["a12", ""], ["a", "a"])
    row = {"run": "r", "protocol": "to", "nodes": 2, "aborted": False, "config": None, counter: said}
    assert audit_run(row, [batch_of(figure.rows)]).holds is good


def a_row(run: str) -> dict[str, Any]:
    return {"run": run, "protocol": "to", "nodes": 2, "aborted": False, "config": None}


GOOD, BAD = Figure(["a12", ""], ["a", "a"]), Figure(["a12 b12 c12 d12", ""], ["", ""])


def test_what_is_found_of_each_run_adds_up_to_what_the_reference_finds_of_all() -> None:
    total, reference = Verdict(), Verdict()
    for number, figure in enumerate([GOOD, BAD, BAD, GOOD]):
        total.add(audit_run(a_row(f"r{number}"), [batch_of(figure.rows)]))
        check_run(a_row(f"r{number}"), [columns(figure.rows)], Service.TOTAL, reference)
    assert total == reference
    assert len(total.findings["complete"].witnesses) < total.findings["complete"].violations == 16


def test_what_was_counted_in_parts_only_stays_so() -> None:
    total = Verdict()
    for at_least in (False, True, False):
        total.add(Verdict(findings={"complete": Finding(at_least=at_least)}))
    assert total.findings["complete"].at_least


def test_large_groups_are_told_apart_node_by_node() -> None:
    """E1 and E220 of 300: their pairs of node and source have the same number modulo 2 to the 16."""
    rows: list[Row] = [
        (200, 0, 0, "send", 200, 0, (0,), None),
        (36, 0, 0, "send", 36, 0, (219,), None),
        (0, 0, 1, "deliver", 200, 0, None, None),
        (219, 0, 1, "deliver", 36, 0, None, None),
    ]
    assert passes(columns_of(300, [batch_of(rows)]), Service.SELECTIVE_PARTIAL)


def test_room_is_asked_for_before_a_run_is_judged_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(judging, "require_memory", lambda *about, **_: asked.append(about))
    for figure in (GOOD, BAD):
        audit_run(a_row("r"), [batch_of(figure.rows)])
    assert asked == [("r", len(BAD.rows), BY_REFERENCE)]
