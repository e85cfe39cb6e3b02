"""Views as values: quorums, the next view and its tag, what is impossible."""

from typing import Any

import msgspec
import pytest

from ordercast.model.errors import ConfigError
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.view import (
    MembershipConfig,
    Reason,
    is_possible,
    is_quorum,
    place_after,
    places_after,
    view_after,
)
from tests.protocols.membership.hand import VALUE, VIEW, person


@pytest.mark.parametrize(
    ("places", "size", "enough"),
    [
        *((0b1, 1, True), (0b1, 2, True), (0b10, 2, False), (0b11, 3, True), (0b1, 3, False), (0b11, 4, True)),
        *((0b110, 4, False), (0b1110, 4, True), (0b11, 5, False), (0, 1, False)),
    ],
)
def test_a_quorum_is_more_than_half_or_half_with_place_0(places: int, size: int, enough: bool) -> None:
    assert is_quorum(places, size) is enough


def test_any_two_quorums_of_a_view_have_a_member_in_common() -> None:
    for size in range(1, 7):
        quorums = [places for places in range(1 << size) if is_quorum(places, size)]
        assert all(one & other for one in quorums for other in quorums)


def test_the_next_view_appends_those_that_join() -> None:
    after = view_after(VIEW, VALUE)
    assert [member.name for member in after.members] == ["n0", "n2", "n3", "n7"]
    assert (after.number, after.nodes, after.next_node) == (1, (0, 2, 3, 4), 5)
    assert after.is_well_formed()
    assert after.tag != VIEW.tag
    assert len(after.tag) == 8
    assert places_after(VALUE.stay, 0b1011) == 0b101
    assert [place_after(VALUE, place) for place in (0, 2, 3)] == [0, 1, 2]


def test_the_tag_follows_from_the_whole_history() -> None:
    other = msgspec.structs.replace(VALUE, why="other")
    assert view_after(VIEW, other).tag != view_after(VIEW, VALUE).tag
    elsewhere = msgspec.structs.replace(VIEW, tag=b"elsewher")
    assert view_after(elsewhere, VALUE).tag != view_after(VIEW, VALUE).tag


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2},
        {"stay": 0b1111},
        {"heard": 0b0101, "stay": 0b0101, "left": ((1, Reason.SILENT), (2, Reason.SILENT))},
        {"heard": 0b11101},
        {"stay": 0b1100, "heard": 0b1100, "left": ((0, Reason.LEFT), (1, Reason.SILENT))},
        {"left": ()},
        {"left": ((1, Reason.SILENT), (1, Reason.SILENT))},
        {"next_node": 4},
        {"cut": Cut((0, 0, 0))},
        {"cut": Cut((0, 0, 0, -1))},
        {"cut": Cut((0, 0, 0, 0), base=(1,))},
        {"joined": (person(3),)},
        {"joined": (person(7), person(7)), "next_node": 6, "stateless": 0b11000},
        {"joined": (msgspec.structs.replace(person(7), name=""),)},
        {"stateless": 0b1110},
        {"stateless": 0b11000},
        {"donors": (3,)},
        {"donors": (0, 1, 2)},
        {"donors": (4,)},
        {"why": "x" * 1000},
        {"stay": -1},
    ],
)
def test_an_impossible_view_is_seen(change: dict[str, Any]) -> None:
    assert is_possible(VALUE, VIEW)
    assert not is_possible(msgspec.structs.replace(VALUE, **change), VIEW)


def test_all_that_leave_end_the_group() -> None:
    everybody = tuple((place, Reason.LEFT) for place in range(4))
    last = msgspec.structs.replace(
        VALUE, stay=0, joined=(), heard=0b1111, left=everybody, stateless=0, donors=(), next_node=4
    )
    assert is_possible(last, VIEW)
    assert not is_possible(msgspec.structs.replace(last, joined=(person(7),), next_node=5), VIEW)


@pytest.mark.parametrize(
    "change", [{"repeat": 0}, {"patience": -1}, {"suspected_patience": -1}, {"grace": -1}, {"least": 0}, {"least": 65}]
)
def test_an_impossible_configuration_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        MembershipConfig(**change)
