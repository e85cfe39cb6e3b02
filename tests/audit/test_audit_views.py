"""Runs in which the group goes on without some of its nodes."""

from dataclasses import replace

import pytest

from ordercast.audit.logs import RunLogs
from ordercast.audit.reference import check_logs
from ordercast.audit.services import OF_SHRINKING_VIEWS
from ordercast.audit.verdict import Verdict
from ordercast.audit.views import delivered_uniformly, without_tails
from ordercast.model.services import Service
from tests.audit.figures import Figure

SENT = ["a123 b123", "p123 q123", "x123"]


def stopped(*received: str, ending: str = "crash") -> RunLogs:
    """E1 stops: it crashes, gives the group up, or is shut out by the others."""
    figure = Figure(SENT, received)
    if ending == "view":
        figure.add(1, "view", to=(1, 2))
        figure.add(2, "view", to=(1, 2))
    else:
        figure.add(0, ending)
    return figure.logs()


def broken(logs: RunLogs) -> set[str]:
    verdict = Verdict()
    check_logs(logs, Service.SEQUENCED, verdict)
    return {name for name, finding in verdict.findings.items() if not finding.holds}


@pytest.mark.parametrize("ending", ["crash", "abort", "view"])
def test_who_stopped_was_given_a_beginning(ending: str) -> None:
    logs = stopped("p a", "p a q x", "p a q x", ending=ending)
    assert logs.stopped == {0}
    assert not broken(logs)
    assert not broken(replace(logs, uniform=True))


@pytest.mark.parametrize(
    ("received", "what"),
    [
        (("p b", "p q x", "p q x"), "E1#1 as number 1 of its log; others delivered E2#1 there"),
        (
            ("p q x a", "p q x", "p q x"),
            "E1#0 as number 3 of its log; others delivered nothing there",
        ),
        (
            ("p x q", "p q x", "p q x"),
            "E3#0 as number 1 of its log; others delivered E2#1 there",
        ),
    ],
)
def test_a_tail_of_its_own_is_wrong_only_where_the_run_is_uniform(received: tuple[str, ...], what: str) -> None:
    logs = stopped(*received)
    assert not list(delivered_uniformly(logs))
    assert not broken(logs) - {"sender_order_kept"}
    [violation] = delivered_uniformly(replace(logs, uniform=True))
    assert violation.sentence == f"E1 delivered {what}"
    assert violation.nodes == (0,)
    assert "delivered_uniformly" in broken(replace(logs, uniform=True))
    for uniform in (False, True):
        verdict = Verdict()
        check_logs(replace(logs, uniform=uniform), Service.SEQUENCED, verdict)
        assert ("delivered_uniformly" in verdict.findings) is uniform, "asked of those only that promise it"


def test_without_a_majority_nobody_goes_on_and_all_have_beginnings_of_the_longest() -> None:
    for received, holds in ((("p a", "p", ""), True), (("p a", "p q", ""), False), (("p a", "", "q"), False)):
        figure = Figure(SENT, received)
        figure.add(0, "crash")
        figure.add(1, "crash")
        found = list(delivered_uniformly(replace(figure.logs(), uniform=True)))
        assert (not found) is holds
    figure = Figure(SENT, ["p a", "p", ""])
    figure.add(1, "view", to=(1, 2))
    figure.add(1, "view", to=(1,))
    assert list(delivered_uniformly(replace(figure.logs(), uniform=True))), "E2 is all of the latest view"


def test_those_that_go_on_have_one_log_whoever_stopped() -> None:
    assert broken(stopped("p", "p q x", "p x q")) == {"same_order", "no_cycle"}
    assert broken(stopped("p", "p q x", "p q")) == {"complete"}


def test_only_the_sequencer_may_give_a_tail_to_who_stops() -> None:
    verdict = Verdict()
    check_logs(stopped("p x q", "p q x", "p q x"), Service.TOTAL, verdict)
    assert not verdict.findings["same_order"].holds


def test_twice_is_twice_even_in_a_tail() -> None:
    assert broken(stopped("p b b", "p q x", "p q x")) >= {"complete"}


def test_if_nobody_goes_on_the_log_of_the_latest_view_counts() -> None:
    figure = Figure(SENT, ["p a b", "p q", "p q x"])
    figure.add(1, "view", to=(1, 2))
    figure.add(2, "view", to=(1, 2))
    for node in range(3):
        figure.add(node, "crash")
    cut = without_tails(figure.logs())
    assert [len(log) for log in cut.delivered] == [1, 2, 3]


def test_without_anybody_that_stopped_nothing_is_cut() -> None:
    logs = Figure(SENT, ["p q", "q p", ""]).logs()
    assert without_tails(logs) is logs


@pytest.mark.parametrize(
    ("views", "found"),
    [
        ({0: (0, 1), 1: (0, 1)}, []),
        # Neither is in the other, nor has one more than half of the other; and E3 did not install the last.
        ({0: (0, 1), 1: (1, 2)}, ["same_views", "same_views", "primary"]),
        ({1: (1,)}, ["primary"]),  # one of three
    ],
)
def test_views_without_numbers_are_one_chain_of_majorities(views: dict[int, tuple[int, ...]], found: list[str]) -> None:
    figure = Figure(["", "", ""], ["", "", ""])
    for node, to in views.items():
        figure.add(node, "view", to=to)
    logs = replace(figure.logs(), stopped=frozenset())
    assert [violation.breaks for promise in OF_SHRINKING_VIEWS for violation in promise(logs)] == found


# --- levels ---


def accepted_by(*nodes: int, view_first: bool) -> Figure:
    figure = Figure(["a123", "", ""], ["", "", ""])
    for node in nodes:
        if node:
            figure.add(node, "receive", "a")
        figure.add(node, "accept", "a")
    figure.add(0, "view", to=(0, 1))
    if view_first:
        figure.add(1, "view", to=(0, 1))
    figure.add(1, "preack", "a", time=5)
    if not view_first:
        figure.add(1, "view", to=(0, 1), time=6)
    return figure


def test_pre_acknowledged_is_about_the_members_that_the_node_knew() -> None:
    assert not broken(accepted_by(0, 1, view_first=True).logs()) - {"complete"}
    assert "preacknowledged_truthfully" in broken(accepted_by(0, 1, view_first=False).logs())
    assert "preacknowledged_truthfully" in broken(accepted_by(1, view_first=True).logs())
    assert "preacknowledged_truthfully" not in broken(accepted_by(0, 1, 2, view_first=False).logs())


def test_half_of_a_view_is_no_majority() -> None:
    figure = Figure(["p1234 q1234", "", "", ""], ["p q", "p", "p", "p"])
    figure.add(0, "crash")
    figure.add(1, "crash")
    assert not list(delivered_uniformly(replace(figure.logs(), uniform=True))), "nobody went on without q"
