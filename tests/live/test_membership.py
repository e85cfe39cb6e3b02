"""Views by number become views by name."""

from ordercast.live.events import View
from ordercast.live.host.membership import Membership
from ordercast.model.machine import ViewInstalled

NAMES = tuple("ABCDEFGHIJKL")


def test_a_view_tells_who_joined_and_who_left() -> None:
    membership = Membership(NAMES[:3])
    assert list(membership.members) == ["A", "B", "C"]
    left = membership.install(ViewInstalled(1, 0b101, "B did not answer"), position=7)
    assert left == View(number=1, position=7, members=("A", "C"), left=("B",), why="B did not answer")
    assert list(membership.members) == ["A", "C"]
    assert membership.with_names("E2 lost something") == "C lost something", "its machine counts places of the view"
    back = membership.install(ViewInstalled(2, 0b110, ""), position=9)
    assert (back.members, back.joined, back.left) == (("B", "C"), ("B",), ("A",))
    assert membership.view.number == 2


def test_only_numbers_of_members_are_replaced_by_names() -> None:
    membership = Membership(NAMES)
    assert membership.with_names("E1, E12 and E13; not XE1, E1x") == "A, L and E13; not XE1, E1x"
    assert Membership(("E2", "E1")).with_names("E1 and E2") == "E2 and E1"
