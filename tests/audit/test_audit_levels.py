"""The truth of the levels, broken in every way that they can be."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ordercast.audit.levels import (
    accepted_truthfully,
    acknowledged_truthfully,
    delivered_truthfully,
    preacknowledged_truthfully,
)
from ordercast.audit.services import LEVEL_SOUNDNESS, Property
from tests.audit.figures import Figure

Spoil = Callable[[list[tuple[int, str, str, int]]], list[tuple[int, str, str, int]]]

# E1 sends a to E1 and E2, then b to E2 and E3; c of E3 is for E2 alone. (node, event, message, time)
HAPPENED = [
    (1, "receive", "a", 10),
    (0, "accept", "a", 0),
    (1, "accept", "a", 10),
    (1, "receive", "b", 12),
    (1, "accept", "b", 12),
    (2, "receive", "b", 13),
    (2, "accept", "b", 13),
    (1, "receive", "c", 14),
    (1, "accept", "c", 14),
    (0, "preack", "a", 20),
    (1, "preack", "a", 21),
    (1, "preack", "b", 20),
    (2, "preack", "b", 22),
    (1, "preack", "c", 14),
    (0, "ack", "a", 30),
    (1, "ack", "a", 30),
    (1, "ack", "b", 30),
    (2, "ack", "b", 22),
    (1, "ack", "c", 14),
    (0, "deliver", "a", 30),
    (1, "deliver", "a", 30),
    (1, "deliver", "b", 30),
    (2, "deliver", "b", 30),
    (1, "deliver", "c", 30),
]


def play(happened: list[tuple[int, str, str, int]]) -> Figure:
    figure = Figure(["a12 b23", "", "c2"], ["", "", ""])
    for node, kind, letter, time in happened:
        figure.add(node, kind, letter, time=time)
    return figure


def broken(figure: Figure) -> dict[str, list[str]]:
    logs = figure.logs()
    found = {truth.__name__: [figure.letters(violation) for violation in truth(logs)] for truth in LEVEL_SOUNDNESS}
    return {name: letters for name, letters in found.items() if letters}


def without(*gone: tuple[int, str, str]) -> list[tuple[int, str, str, int]]:
    return [row for row in HAPPENED if row[:3] not in gone]


def at(moved: tuple[int, str, str], time: int) -> list[tuple[int, str, str, int]]:
    return [(*row[:3], time) if row[:3] == moved else row for row in HAPPENED]


def first(moved: tuple[int, str, str]) -> list[tuple[int, str, str, int]]:
    """At the same time, but before everything else that the node did."""
    return sorted(HAPPENED, key=lambda row: row[:3] != moved)


def test_the_truth_is_told() -> None:
    assert broken(play(HAPPENED)) == {}
    assert broken(play([*HAPPENED, (0, "accept", "b", 31)])) == {}, "a sender may accept what is for others"
    assert broken(play([*HAPPENED, (0, "preack", "b", 31)])) == {}, "and know how far that has come"


@pytest.mark.parametrize(
    ("happened", "truth", "letters"),
    [
        (without((1, "receive", "b")), accepted_truthfully, ["b"]),  # accepted, never received
        (first((1, "accept", "a")), accepted_truthfully, ["a"]),  # accepted, received later
        (without((1, "accept", "a")), accepted_truthfully, ["b a"]),  # an earlier one was never accepted
        ([*without((1, "accept", "a")), (1, "accept", "a", 13)], accepted_truthfully, ["b a"]),  # … or later
        ([*HAPPENED, (0, "receive", "?", 13), (0, "accept", "?", 13)], accepted_truthfully, ["?"]),  # nobody sent it
        (without((2, "accept", "b")), preacknowledged_truthfully, ["b", "b"]),  # a destination never accepted
        (at((2, "accept", "b"), 21), preacknowledged_truthfully, ["b"]),  # … or too late for one of the two
        (first((1, "preack", "a")), preacknowledged_truthfully, ["a"]),  # itself later, at any time
        ([*HAPPENED, (2, "preack", "a", 9)], preacknowledged_truthfully, ["a"]),  # at one that is no destination
        ([*HAPPENED, (0, "preack", "?", 40)], preacknowledged_truthfully, ["?"]),
        (without((0, "preack", "a")), acknowledged_truthfully, ["a", "a"]),
        (at((2, "preack", "b"), 31), acknowledged_truthfully, ["b"]),  # for itself, time says nothing
        (first((2, "ack", "b")), acknowledged_truthfully, ["b"]),
        ([*HAPPENED, (0, "ack", "c", 13)], acknowledged_truthfully, ["c"]),
        (without((1, "ack", "b")), delivered_truthfully, ["b"]),
        (first((2, "deliver", "b")), delivered_truthfully, ["b"]),
        ([*HAPPENED, (2, "deliver", "a", 90)], delivered_truthfully, ["a"]),
    ],
)
def test_each_untruth_is_told(happened: list[tuple[int, str, str, int]], truth: Property, letters: list[str]) -> None:
    assert broken(play(happened))[truth.__name__] == letters


def test_one_in_the_middle_is_missed() -> None:
    figure = Figure(["a2 b2 c2 d2", ""], ["", ""])
    for time, letter in enumerate("acd", start=1):
        figure.add(1, "receive", letter, time=time)
        figure.add(1, "accept", letter, time=time)
    assert broken(figure)["accepted_truthfully"] == ["c b", "d b"], "whatever was accepted before and after"


def test_an_own_message_is_not_accepted_before_it_is_sent() -> None:
    figure = play(without((0, "accept", "a")))
    figure.rows.append((0, -1, 0, "accept", 0, 0, None, None))
    assert broken(figure)["accepted_truthfully"] == ["a"]


def test_the_late_ones_are_named() -> None:
    [violation] = preacknowledged_truthfully(play(at((2, "accept", "b"), 21)).logs())
    assert violation.nodes == (1, 2)
    assert violation.sentence == "E2 pre-acknowledged E1#1 before {E3} had accepted it"


def test_a_cause_at_the_same_instant_elsewhere_is_in_time() -> None:
    assert broken(play(at((2, "accept", "b"), 20))) == {}
    assert "preacknowledged_truthfully" in broken(play(at((2, "accept", "b"), 21)))


def test_a_level_reached_again_changes_nothing() -> None:
    assert broken(play([*HAPPENED, (2, "accept", "b", 99), (2, "preack", "b", 99)])) == {}


def test_without_recorded_receipts_acceptance_is_judged_by_order_only() -> None:
    narrow = [row for row in HAPPENED if row[1] != "receive"]
    assert broken(play(narrow)) == {}
    assert "accepted_truthfully" in broken(play([row for row in narrow if row[:3] != (1, "accept", "a")]))


def test_who_gives_up_delivers_at_that_instant_what_it_preacknowledged() -> None:
    def last_words(preacknowledged: bool, delivered_at: int, *, gives_up: bool = True) -> dict[str, list[str]]:
        figure = play([row for row in HAPPENED if row[2] == "a" and row[1] in {"receive", "accept"}])
        if preacknowledged:
            figure.add(1, "preack", "a", time=20)
        figure.add(1, "deliver", "a", time=delivered_at)
        if gives_up:
            figure.add(1, "abort", time=50)
        return broken(figure)

    assert last_words(True, 50) == {}
    assert last_words(True, 49) == {"delivered_truthfully": ["a"]}
    assert last_words(False, 50) == {"delivered_truthfully": ["a"]}
    assert last_words(True, 50, gives_up=False) == {"delivered_truthfully": ["a"]}


@pytest.mark.parametrize(("delivered_at", "good"), [(19, False), (21, True), (30, True)])
def test_a_run_that_delivers_what_is_stable_delivers_nothing_earlier(delivered_at: int, good: bool) -> None:
    happened = sorted(at((1, "deliver", "a"), delivered_at), key=lambda row: row[3])
    logs = play([row for row in happened if row[:3] != (1, "ack", "a")]).logs()
    assert [each.sentence for each in delivered_truthfully(logs)] == [
        "E2 delivered E1#0 without having acknowledged it"
    ]
    told = [each.sentence for each in delivered_truthfully(replace(logs, delivers_stable=True))]
    assert told == ([] if good else ["E2 delivered E1#0 without having pre-acknowledged it"])


def test_levels_are_recorded_or_not() -> None:
    assert play(HAPPENED).logs().has_levels()
    assert not play([row for row in HAPPENED if row[1] in {"receive", "deliver"}]).logs().has_levels()


def test_a_cause_at_the_same_instant_is_in_time_even_if_another_is_late() -> None:
    [violation] = preacknowledged_truthfully(play([*HAPPENED, (0, "preack", "b", 12)]).logs())
    assert violation.nodes == (0, 2), "E2 accepted it at that instant, E3 later"
