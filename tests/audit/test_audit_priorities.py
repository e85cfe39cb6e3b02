"""Priority runs: the figures of the paper, and each way of not being run-equivalent."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.audit.completeness import complete
from ordercast.audit.logs import Moment, Sent
from ordercast.audit.order import no_cycle, same_order
from ordercast.audit.priorities import (
    _ordinal,
    priority_ordered,
    priority_runs,
    same_runs,
    sender_order_kept_by_priority,
)
from tests.audit.figures import Figure, golden

PRITO = golden("golden-prito-seq.json")["prito"]

Log = list[tuple[str, int]]


def as_sent(log: Any) -> list[Sent]:
    """A log of letters and priorities, each letter of a sender of its own."""
    return [Sent((ord(letter), 0), 0, 0, priority, Moment(0, 0)) for letter, priority in log]


def lengths(log: Any) -> list[int]:
    return [len(run) for run in priority_runs(as_sent(log))]


def figure_from(sent: list[Log], received: list[Log]) -> Figure:
    priorities = {letter: priority for log in sent for letter, priority in log}
    return Figure(
        [" ".join(f"{letter}123" for letter, _ in log) for log in sent],
        [" ".join(letter for letter, _ in log) for log in received],
        priorities,
    )


def found(figure: Figure) -> list[str]:
    return [figure.letters(violation) for violation in same_runs(figure.logs())]


def test_fig_1_is_priority_equivalent_and_not_order_equivalent() -> None:
    fig = PRITO["fig1"]
    received = [fig["RL1"], fig["RL2"], fig["RL3"]]
    figure = figure_from([fig["SL1"], fig["SL2"], fig["SL3"]], received)
    logs = figure.logs()
    for log in logs.delivered:
        assert priority_ordered([logs.sent[message] for message in log])
    assert found(figure) == []
    assert [not list(complete(logs)), not list(same_order(logs))] == [True, False]


def test_equal_priorities_of_one_sender_are_ordered_by_sending() -> None:
    first, second = (Sent((0, seq), seq, 0, 1, Moment(seq, 0)) for seq in range(2))
    assert priority_ordered([first, second])
    assert not priority_ordered([second, first])


def test_fig_2_runs() -> None:
    fig = PRITO["fig2"]
    for name in ("R1", "R2", "R3", "R4"):
        part = fig["L"][fig[name]["from"] - 1 : fig[name]["to"]]
        assert priority_ordered(as_sent(part)) == fig[name]["run"], name
    assert lengths(fig["L"]) == fig["maximum_run_partition_lengths"]


def test_fig_3_partitions() -> None:
    fig = PRITO["fig3"]
    assert [lengths(fig["L1"]), lengths(fig["L2"])] == [fig["R1"], fig["R2"]]
    figure = figure_from([fig["L1"], [], []], [fig["L1"], fig["L2"], fig["L1"]])
    assert found(figure) == ["c b"]  # of one sender this would be against its order …
    figure = figure_from([fig["L1"][:2], fig["L1"][2:], []], [fig["L1"], fig["L2"], fig["L1"]])
    assert found(figure) == []  # … of two it is not


@pytest.mark.parametrize(("service", "total"), [("PriO", False), ("PriTO", True)])
def test_fig_4_services(service: str, total: bool) -> None:
    fig = PRITO["fig4"]
    figure = figure_from([fig["SL1"], fig["SL2"], fig["SL3"]], fig[service])
    logs = figure.logs()
    for log in fig[service]:
        assert lengths(log) == fig["maximum_run_partition_lengths"]
    assert found(figure) == []
    assert not list(complete(logs))
    assert not list(sender_order_kept_by_priority(logs))
    assert [not list(same_order(logs)), not list(no_cycle(logs))] == [total, total]


def test_the_printed_condition_would_not_be_unique() -> None:
    case = PRITO["maximum_partition_printed_condition_is_wrong"]
    assert [lengths(case["L"])] == case["corrected_condition_accepts"]


def test_the_run_synchronisation_as_printed_is_not_run_equivalent() -> None:
    case = PRITO["run_sync_counterexample"]
    priorities = dict(case["data"])
    received = [" ".join(case["paper_delivers"][name]) for name in ("E1", "E2", "E3")]
    figure = Figure(["b123 g123 x123 h123", "", ""], received, priorities)
    assert [violation.nodes for violation in same_runs(figure.logs())] == [(1, 0), (2, 0)]
    assert list(same_order(figure.logs()))


SENT: list[Log] = [[("a", 2), ("b", 3)], [("c", 2), ("d", 1)], [("e", 2), ("f", 2)]]


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        (["b c e d a f", "b e c d a f", "b e c d f a"], []),
        (["b c e d a f", "b c e a d f", "b c e d a f"], ["a"]),  # a went into an earlier run
        (["b c e d a f", "b c e d f", "b c e d a f"], ["a"]),  # lacking
        (["b c e d a f", "b c e d a f", "b c e d"], ["a"]),  # a whole run is lacking
        (["b c e f a d"] * 2 + ["b c e d a f"], ["a"]),  # another number of runs
        (["b c f e d a", "b c e f d a", "b c e f d a"], ["f e"]),  # equal priorities against the sending order
        (["c b a e f d"] * 3, []),  # two runs, alike everywhere
        (["", "", ""], []),
        (["b c e d a f", "a f b c e d", "b c e d a f"], ["b a"]),  # the runs change places
    ],
)
def test_run_equivalence(received: list[str], expected: list[str]) -> None:
    priorities = {letter: priority for log in SENT for letter, priority in log}
    figure = Figure(["a123 b123", "c123 d123", "e123 f123"], received, priorities)
    assert found(figure) == expected


def test_a_difference_is_told_in_words() -> None:
    priorities = {letter: priority for log in SENT for letter, priority in log}
    figure = Figure(["a123 b123", "c123 d123", "e123 f123"], ["b c e d a f", "b c a d e f", "b c e d a f"], priorities)
    assert [violation.sentence for violation in same_runs(figure.logs())] == [
        "the 1st priority run of E2 lacks E3#0 and has E1#0, unlike that of E1"
    ]
    told = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "111th", "113th", "123rd"]
    assert [_ordinal(number - 1) for number in (1, 2, 3, 4, 11, 12, 13, 21, 22, 111, 113, 123)] == told


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("b e", []),
        ("b e c d a", []),
        ("", []),
        ("b e c d f", []),
        ("e a", ["a"]),  # a is not of the first run
        ("b c d a", ["e"]),  # a run that is not the last must be whole
    ],
)
def test_the_log_of_a_stopped_node_ends_anywhere(cut: str, expected: list[str]) -> None:
    priorities = {letter: priority for log in SENT for letter, priority in log}
    figure = Figure(["a123 b123", "c123 d123", "e123 f123"], ["b c e d a f", cut, "b e c d f a"], priorities)
    figure.add(1, "crash")
    assert found(figure) == expected


def test_those_that_go_on_are_what_a_stopped_one_is_measured_by() -> None:
    priorities = {letter: priority for log in SENT for letter, priority in log}
    figure = Figure(["a123 b123", "c123 d123", "e123 f123"], ["b c d", "b", "b c e d a f"], priorities)
    figure.add(2, "crash")
    assert [violation.nodes for violation in same_runs(figure.logs())] == [(1, 0), (2, 0)]


def test_two_that_both_stopped_may_have_stopped_at_different_places() -> None:
    priorities = {letter: priority for log in SENT for letter, priority in log}
    figure = Figure(["a123 b123", "c123 d123", "e123 f123"], ["b c", "b e", "b e c d a"], priorities)
    for node in range(3):
        figure.add(node, "abort")
    assert found(figure) == []
    figure = Figure(["a123 b123", "c123 d123", "e123 f123"], ["b e", "b", "b c a"], priorities)
    for node in range(3):
        figure.add(node, "abort")
    assert found(figure) == []
    figure = Figure(["a123 b123", "c123 d123", "e123 f123"], ["a f", "b e", "b e c d a"], priorities)
    for node in range(3):
        figure.add(node, "abort")
    assert found(figure) == ["a"]


def test_what_nobody_sent_or_came_twice_has_no_run() -> None:
    figure = Figure(["a12", "b12"], ["a ? b a", "a b"], {"a": 2, "b": 1})
    assert found(figure) == []


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ("b1 a2 c1", []),  # by priority, b before a that was sent earlier
        ("c b a", ["c b"]),
        ("c a b", ["c b"]),  # within the definition: two runs, <c> and <a b>
        ("? c b b", ["c b"]),
        ("b c a", []),
    ],
)
def test_equal_priorities_of_a_sender_stay_in_order_across_runs(received: str, expected: list[str]) -> None:
    figure = Figure(["a1 b1 c1"], [" ".join(word[0] for word in received.split())], {"a": 2, "b": 1, "c": 1})
    assert [figure.letters(violation) for violation in sender_order_kept_by_priority(figure.logs())] == expected


@given(st.lists(st.integers(1, 3), max_size=8))
def test_the_partition_is_the_only_one_whose_runs_cannot_be_joined(priorities: list[int]) -> None:
    log = as_sent([(chr(ord("a") + place), priority) for place, priority in enumerate(priorities)])
    runs = priority_runs(log)
    assert [sent for run in runs for sent in run] == log
    assert all(run and priority_ordered(run) for run in runs)
    for one, other in pairwise(runs):
        assert not priority_ordered([*one, *other])
