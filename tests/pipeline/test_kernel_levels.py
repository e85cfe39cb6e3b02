"""The audit by arrays is told every untruth about levels that the reference is told, and believes none of them."""

from dataclasses import replace

import pytest

from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.checks import passes
from ordercast.pipeline.audit.kernel.columns import columns_of
from tests.audit.figures import Figure
from tests.audit.test_audit_levels import HAPPENED, play, test_each_untruth_is_told
from tests.pipeline.random_runs import batch_of

[UNTRUE] = [mark.args[1] for mark in test_each_untruth_is_told.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]


def passed(figure: Figure) -> bool:
    return passes(columns_of(figure.nodes, [batch_of(figure.rows)]), Service.SELECTIVE_PARTIAL)


def test_the_truth_is_acquitted() -> None:
    assert passed(play(HAPPENED))


@pytest.mark.parametrize("case", range(len(UNTRUE)))
def test_no_untruth_is(case: int) -> None:
    assert not passed(play(UNTRUE[case][0]))


@pytest.mark.parametrize(("order", "good"), [("ab", True), ("ba", False)])
def test_what_is_for_others_stands_between(order: str, good: bool) -> None:
    """E2 must accept a before b, though between them E1 sent c to E3 only."""
    figure = Figure(["a2 c3 b2", "", ""], ["", "", ""])
    for kind in ("receive", "accept", "preack", "ack", "deliver"):
        for letter in order if kind in {"receive", "accept"} else "ab":
            figure.add(1, kind, letter, time=5)
        figure.add(2, kind, "c", time=5)
    assert passed(figure) is good


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_run_may_deliver_what_is_stable_and_nothing_earlier(stable: bool, known: bool) -> None:
    figure = Figure(["a12", ""], ["", ""])
    figure.add(1, "receive", "a", time=1)
    for node in (0, 1):
        figure.add(node, "accept", "a", time=1)
        for kind in ("preack", "deliver") if known or node else ("deliver", "preack"):
            figure.add(node, kind, "a", time=2)
        figure.add(node, "ack", "a", time=3)
    run = replace(columns_of(figure.nodes, [batch_of(figure.rows)]), delivers_stable=stable)
    assert passes(run, Service.SELECTIVE_TOTAL) is (stable and known)


@pytest.mark.parametrize("gives_up", [True, False])
def test_who_gives_up_delivers_what_is_pre_acknowledged(gives_up: bool) -> None:
    figure = Figure(["a12", ""], ["", ""])
    figure.add(1, "receive", "a", time=1)
    for node in (0, 1):
        figure.add(node, "accept", "a", time=1)
        figure.add(node, "preack", "a", time=2)
    figure.add(0, "ack", "a", time=3)
    figure.add(0, "deliver", "a", time=3)
    figure.add(1, "deliver", "a", time=4)
    if gives_up:
        figure.add(1, "abort", time=4)
    assert passed(figure) is gives_up


@pytest.mark.parametrize("knew", [True, False])
def test_pre_acknowledged_is_about_the_members_that_the_node_knew(knew: bool) -> None:
    """E3 never accepts a. E2 pre-acknowledges it after the view without E3, or before."""
    figure = Figure(["a123", "", ""], ["", "", ""])
    figure.add(1, "receive", "a", time=1)
    for node in (0, 1):
        figure.add(node, "accept", "a", time=1)
    figure.add(0, "view", to=(0, 1), time=2)
    for kind in ("view", "preack") if knew else ("preack", "view"):
        figure.add(1, kind, "a" if kind == "preack" else None, to=(0, 1) if kind == "view" else None, time=3)
    figure.add(0, "preack", "a", time=3)
    for node in (0, 1):
        figure.add(node, "ack", "a", time=4)
        figure.add(node, "deliver", "a", time=5)
    assert passed(figure) is knew
