"""Views by number become views by name."""

import pytest

from ordercast.live.events import View
from ordercast.live.host.membership import Membership, places_of, told
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.events import InstallView
from ordercast.protocols.membership.view import (
    GroupView,
    Incarnation,
    NextView,
    Reason,
    departed_with,
    founding_view,
    view_after,
)

NAMES = tuple("ABCDEFGHIJKL")
PEOPLE = tuple(Incarnation(name, place + 1, f"10.0.0.1:{7000 + place}") for place, name in enumerate(NAMES))
FOUNDED = founding_view(PEOPLE[:3], bytes(8))
RETURNED = Incarnation("B", 100, "10.0.0.1:7001")
NEXT = NextView(1, 0b101, (RETURNED,), 0b101, ((1, Reason.REPLACED),), Cut((0, 0, 0)), 0, (), 4, "B joined")
SECOND = view_after(FOUNDED, NEXT)


def install(left: tuple[tuple[str, str], ...]) -> InstallView:
    return InstallView(SECOND, 0, ("B",), left, "B joined", NEXT, gives_state=False)


def test_a_view_tells_who_joined_and_who_left_and_who_went_on() -> None:
    expected = View(
        number=1,
        position=7,
        members=("A", "C", "B"),
        joined=("B",),
        left={"B": "replaced"},
        together=("A", "C"),
        why="B joined",
    )
    assert told(install((("B", "replaced"),)), 7) == expected
    assert told(install(()), 7, departed_with(FOUNDED, NEXT)) == expected, "as one that joined tells it"
    assert places_of(install(())) == {0: 0, 2: 1}, "another incarnation of B has B's place"


def test_the_first_view_of_a_group() -> None:
    first = InstallView(FOUNDED, 0, (), (), "founded", None, gives_state=False)
    assert told(first, 0) == View(number=0, position=0, members=("A", "B", "C"), joined=("A", "B", "C"), why="founded")
    assert places_of(first) == {}


def test_names_are_bound_to_the_last_incarnation() -> None:
    membership = Membership()
    assert (membership.members, membership.number, membership.present) == ((), 0, 0)
    membership.enter(FOUNDED)
    assert membership.nodes == {"A": 0, "B": 1, "C": 2}
    membership.enter(SECOND)
    assert (membership.members, membership.number, membership.present) == (("A", "C", "B"), 1, 0b1101)
    assert membership.nodes == {"A": 0, "B": 3, "C": 2}
    assert membership.with_names("E2 lost something") == "C lost something", "its machine counts places of the view"


@pytest.mark.parametrize(
    ("names", "sentence", "expected"),
    [
        (NAMES, "E1, E12 and E13; not XE1, E1x", "A, L and E13; not XE1, E1x"),
        (("E2", "E1"), "E1 and E2", "E2 and E1"),
    ],
)
def test_only_numbers_of_members_are_replaced_by_names(names: tuple[str, ...], sentence: str, expected: str) -> None:
    membership = Membership()
    people = tuple(Incarnation(name, place + 1, "10.0.0.1:7000") for place, name in enumerate(names))
    membership.enter(GroupView(0, people, tuple(range(len(people))), bytes(8), len(people)))
    assert membership.with_names(sentence) == expected
