"""Bounds of views and units: the last value that is possible, and the first that is not."""

from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.protocols.membership.choice import admitted, choose
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.units import (
    MAX_DEPARTED,
    MAX_RANGES,
    MAX_TERM,
    MAX_TERMS,
    Answer,
    Apply,
    Fetch,
    Flush,
    Found,
    Overruled,
    Propose,
    Report,
    Suspicion,
    Welcome,
    problem_of,
    problem_of_outside,
)
from ordercast.protocols.membership.view import (
    MAX_ADDRESS,
    MAX_MEMBERS,
    MAX_NAME,
    MAX_WHY,
    Departed,
    GroupView,
    Incarnation,
    MembershipConfig,
    NextView,
    Reason,
    founding_view,
    is_possible,
    is_possible_welcome,
    view_after,
)
from tests.protocols.membership.hand import SETTINGS, VALUE, VIEW, person

PERSON = person(7)
FOUND = Found("g", "n7", 7, 1, person(0), 0, 0, False, False, ("address 0", "address 1"), 0, 0)
APPLY = Apply(PERSON, 0, 0, (), None, 0, 1)
ANSWER = Answer(7, 1, False, "", 0)
WELCOME = Welcome(7, 0, VALUE, view_after(VIEW, VALUE), (), None)
GONE = Departed("n1", 1, 1, 1, 0)
LONG = "x" * MAX_WHY
FULL = (1 << MAX_MEMBERS) - 1
TERM = "t" * MAX_TERM


@pytest.mark.parametrize(
    ("last", "first"),
    [
        ({"name": "n" * MAX_NAME}, {"name": "n" * (MAX_NAME + 1)}),
        ({"name": "n"}, {"name": ""}),
        ({"number": 0}, {"number": -1}),
        ({"number": (1 << 64) - 1}, {"number": 1 << 64}),
        ({"address": "a"}, {"address": ""}),
        ({"address": "a" * MAX_ADDRESS}, {"address": "a" * (MAX_ADDRESS + 1)}),
    ],
)
def test_an_incarnation(last: dict[str, Any], first: dict[str, Any]) -> None:
    assert replace(PERSON, **last).is_well_formed()
    assert not replace(PERSON, **first).is_well_formed()


def of_size(size: int) -> GroupView:
    return founding_view(tuple(map(person, range(size))), b"founding")


def test_a_view_has_one_to_64_members() -> None:
    assert of_size(1).is_well_formed()
    assert of_size(MAX_MEMBERS).is_well_formed()
    assert not of_size(MAX_MEMBERS + 1).is_well_formed()
    assert not GroupView(0, (), (), b"12345678").is_well_formed()


def joins(size: int) -> NextView:
    """One joins so many members."""
    stay = (1 << size) - 1
    return NextView(1, stay, (person(99),), stay, (), Cut((0,) * size), 0, (), size + 1, "")


def test_the_64th_member_is_the_last() -> None:
    assert is_possible(joins(MAX_MEMBERS - 1), of_size(MAX_MEMBERS - 1))
    assert not is_possible(joins(MAX_MEMBERS), of_size(MAX_MEMBERS))
    for size, taken in ((MAX_MEMBERS - 1, (PERSON,)), (MAX_MEMBERS, ())):
        everybody = (1 << size) - 1
        stranger = replace(PERSON, name="stranger", number=99)
        found = admitted(of_size(size), everybody, everybody, [stranger], SETTINGS)
        assert len(found) == len(taken)


def test_a_name_is_admitted_once_and_an_incarnation_that_departed_never() -> None:
    settings = MembershipConfig(has_state=False)
    one, same = (Incarnation("new", number, "a") for number in (7, 8))
    assert admitted(VIEW, 0b1111, 0b1111, [one, same], settings) == (one,)
    member = person(2)
    assert admitted(VIEW, 0b1111, 0b1111, [member], settings) == ()
    assert admitted(VIEW, 0b1111, 0b1111, [replace(member, number=70)], settings) == (), "its name is there"
    assert admitted(VIEW, 0b1011, 0b1011, [member], settings) == (), "it was a member already"
    assert admitted(VIEW, 0b1011, 0b1011, [replace(member, number=70)], settings) == (replace(member, number=70),)


@pytest.mark.parametrize("change", [{"stateless": 1}, {"donors": (0,)}])
def test_a_group_that_ends_has_no_state(change: dict[str, Any]) -> None:
    left = tuple((place, Reason.LEFT) for place in range(4))
    last = replace(VALUE, stay=0, joined=(), heard=0b1111, left=left, stateless=0, donors=(), next_node=4)
    assert is_possible(last, VIEW)
    assert not is_possible(replace(last, **change), VIEW)


@pytest.mark.parametrize(("joined", "has_state", "donors"), [(1, True, 2), (0, True, 0), (1, False, 0)])
def test_there_are_donors_if_somebody_joins_that_is_given_the_state(joined: int, has_state: bool, donors: int) -> None:
    reports = {place: Report(0, place, (1, 0), None, False, True, EpochReport((0,) * 4)) for place in range(4)}
    settings = MembershipConfig(has_state=has_state)
    value = choose(VIEW, reports, [PERSON] * joined, settings, lambda *_: Cut((0,) * 4), "")
    assert value is not None
    assert len(value.donors) == donors


def test_the_reason_of_a_view() -> None:
    assert is_possible(replace(VALUE, why=LONG), VIEW)
    assert not is_possible(replace(VALUE, why=LONG + "x"), VIEW)
    after = view_after(VIEW, VALUE)
    assert is_possible_welcome(replace(VALUE, why=LONG), after)
    assert not is_possible_welcome(replace(VALUE, why=LONG + "x"), after)


def test_a_welcome_names_members_that_stayed() -> None:
    value, view = joins(MAX_MEMBERS), of_size(MAX_MEMBERS)
    less = replace(value, stay=value.stay >> 1, heard=value.heard >> 1, left=((MAX_MEMBERS - 1, Reason.SILENT),))
    assert is_possible_welcome(less, view_after(view, less)), "the view before had as many as there may be"
    after = view_after(VIEW, VALUE)
    everybody = tuple((place, Reason.LEFT) for place in range(4))
    nobody = replace(VALUE, stay=0, heard=0b1111, left=everybody, joined=after.members, stateless=0, donors=())
    assert not is_possible_welcome(nobody, after)
    stranger = replace(VALUE, stay=0b10000, heard=0b10000, left=everybody, stateless=0, donors=())
    one = replace(after, members=(person(3), PERSON), nodes=(3, 4))
    assert not is_possible_welcome(stranger, one), "it stayed, and was not there"


LARGEST = (1 << 60) - 1
OUTSIDE: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
    (FOUND, {"addresses": ("a",), "place": 0}, {"addresses": ()}),
    (FOUND, {"addresses": ("a",) * MAX_MEMBERS}, {"addresses": ("a",) * (MAX_MEMBERS + 1)}),
    (FOUND, {"addresses": ("a" * MAX_ADDRESS,)}, {"addresses": ("a" * (MAX_ADDRESS + 1),)}),
    (FOUND, {"addresses": ("a", "b")}, {"addresses": ("a", "")}),
    (FOUND, {"names": ("n" * MAX_NAME,) * len(FOUND.addresses)}, {"names": ("n",) * (len(FOUND.addresses) + 1)}),
    (FOUND, {"names": ()}, {"names": ("n" * (MAX_NAME + 1),) * len(FOUND.addresses)}),
    (FOUND, {"names": ("n",) * len(FOUND.addresses)}, {"names": ("",) * len(FOUND.addresses)}),
    (FOUND, {"place": 1}, {"place": 2}),
    (FOUND, {"place": 0}, {"place": -1}),
    (FOUND, {"apply_at": 1}, {"apply_at": 2}),
    (FOUND, {"apply_at": 0}, {"apply_at": -1}),
    (FOUND, {"view": 0, "ticket": 0}, {"view": -1}),
    (FOUND, {"terms": (("a", TERM),)}, {"terms": (("a", TERM + "t"),)}),
    (APPLY, {"terms": (("a", "b"),) * MAX_TERMS}, {"terms": (("a", "b"),) * (MAX_TERMS + 1)}),
    (APPLY, {"terms": ((TERM, "b"),)}, {"terms": ((TERM + "t", "b"),)}),
    (APPLY, {"reached": 0}, {"reached": -1}),
    (APPLY, {"reached": FULL}, {"reached": FULL + 1}),
    (ANSWER, {"reach": FULL}, {"reach": FULL + 1}),
    (ANSWER, {"reach": 0}, {"reach": -1}),
    (ANSWER, {"why": LONG}, {"why": LONG + "x"}),
    (WELCOME, {"departed": (GONE,) * MAX_DEPARTED}, {"departed": (GONE,) * (MAX_DEPARTED + 1)}),
    (WELCOME, {"founders": ("a",) * MAX_MEMBERS}, {"founders": ("a",) * (MAX_MEMBERS + 1)}),
    (WELCOME, {"founders": ("a" * MAX_ADDRESS,)}, {"founders": ("a" * (MAX_ADDRESS + 1),)}),
    (WELCOME, {"founders": ("a",)}, {"founders": ("",)}),
    (WELCOME, {"position": 0, "partials": 0}, {"position": -1}),
    (WELCOME, {"position": LARGEST}, {"position": LARGEST + 1}),
    (WELCOME, {"partials": LARGEST}, {"partials": LARGEST + 1}),
    (WELCOME, {"partials": 0}, {"partials": -1}),
    (WELCOME, {"source": 3}, {"source": 4}),
    (WELCOME, {"source": 0}, {"source": -1}),
]


@pytest.mark.parametrize(("unit", "last", "first"), OUTSIDE)
def test_a_unit_outside_of_views(unit: Any, last: dict[str, Any], first: dict[str, Any]) -> None:
    assert problem_of_outside(replace(unit, **last)) is None
    assert problem_of_outside(replace(unit, **first)) is not None


INSIDE: list[tuple[Any, Any]] = [
    (Fetch(0, 1, ((0, 1),) * MAX_RANGES), Fetch(0, 1, ((0, 1),) * (MAX_RANGES + 1))),
    (Fetch(0, 1, ((0, 1),)), Fetch(0, 1, ((-1, 1),))),
    (Suspicion(0, 1, 0b1111, "", 0b1111), Suspicion(0, 1, 0b10000, "")),
    (Suspicion(0, 1, 0, LONG), Suspicion(0, 1, 0, LONG + "x")),
    (Suspicion(0, 1, 0, "", 0), Suspicion(0, 1, 0, "", -1)),
    (Flush(0, 1, (1, 1), 0b1111, LONG), Flush(0, 1, (1, 1), 0b10000, "")),
    (Flush(0, 1, ((1 << 32) - 1, 1), 0, LONG), Flush(0, 1, (1, 1), 0, LONG + "x")),
    (Flush(0, 3, (1, 3), 0, ""), Flush(0, 3, (1 << 32, 3), 0, "")),
    (Propose(0, 1, (1, 1), VALUE, 0b1111), Propose(0, 1, (1, 1), VALUE, -1)),
    (Overruled(0, 1, (1, 1), (1, 2)), Overruled(0, 1, (1, 1), (1, 1))),
]


@pytest.mark.parametrize(("last", "first"), INSIDE)
def test_a_unit_of_a_view(last: Any, first: Any) -> None:
    assert problem_of(last, VIEW) is None
    assert problem_of(first, VIEW) is not None
