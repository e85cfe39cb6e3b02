"""Views without numbers: one chain of them, each with a majority of the one before, and who is excused by them."""

import pytest

from ordercast.audit.excused import excused
from ordercast.audit.shrinking_views import disagreements, minorities
from ordercast.model.nodes import mask_of

E12, E13, E23, E123 = (mask_of(nodes) for nodes in ((0, 1), (0, 2), (1, 2), (0, 1, 2)))
NEITHER = "E1 installed a view of {E1,E2}, E2 one of {E2,E3}: neither has all members of the other"


def test_of_two_views_one_has_all_members_of_the_other() -> None:
    assert list(disagreements({0: [E12], 1: [E23]}, (), ended=False)) == [(NEITHER, (0, 1))]
    assert list(disagreements({0: [E123, E12], 1: [E12]}, (), ended=False)) == [], "E2 need not pass through both"
    assert list(disagreements({}, (), ended=True)) == []


def test_who_goes_on_has_installed_the_last_view_when_a_run_has_ended() -> None:
    views = {0: [E123, E12], 1: [E123]}
    lacks = ("E1 installed a view of {E1,E2}, and E2 did not", (0, 1))
    assert list(disagreements(views, (2,), ended=True)) == [lacks]
    assert list(disagreements(views, (2,), ended=False)) == []
    assert list(disagreements(views, (1, 2), ended=True)) == [], "E2 has stopped"
    assert list(disagreements({0: [E12]}, (2,), ended=True)) == [lacks], "E2 has no view at all"
    assert list(disagreements({**views, 1: [E123, E12]}, (2,), ended=True)) == []


def test_the_first_node_that_installed_a_view_is_named() -> None:
    views = {2: [E13], 1: [E12], 0: [E13]}
    assert [nodes for _, nodes in disagreements(views, (), ended=False)] == [(1, 0)]


@pytest.mark.parametrize(
    ("nodes", "views", "found"),
    [
        (4, {0: [0b0111]}, []),
        (4, {0: [0b0111, 0b0011]}, []),
        (4, {1: [0b0011], 0: [0b0111]}, []),  # two of three, whoever installed these
        (4, {1: [0b0110]}, [("E2 installed a view of {E2,E3}, no majority of {E1,E2,E3,E4}", (1,))]),  # half
        (3, {1: [E12, 0b010]}, [("E2 installed a view of {E2}, no majority of {E1,E2}", (1,))]),
        (3, {0: [0]}, [("E1 installed a view of nobody, no majority of {E1,E2,E3}", (0,))]),
        (3, {0: [0b11001]}, [("E1 installed a view of {E1,E4,E5}, no majority of {E1,E2,E3}", (0,))]),  # one of three
    ],
)
def test_a_view_has_a_majority_of_the_one_before(
    nodes: int, views: dict[int, list[int]], found: list[tuple[str, tuple[int, ...]]]
) -> None:
    assert list(minorities(nodes, views)) == found


def test_each_node_is_excused_once_for_the_first_reason() -> None:
    assert excused(3, (), (), ()) == ""
    assert excused(3, (), (), [(0, E123)]) == "", "nobody is outside"
    sentence = "what these lack is no violation: E2 (crashed), E1, E3 (aborted the group), E4 (not in a view of E1)"
    assert excused(4, [1], [0, 1, 2], [(0, E12), (1, E12)]) == sentence
