"""The bounds of every number in every kind of unit: the first and the last valid value, and those next to them.

What a bound protects: a member index or a set with somebody unknown would index outside of a machine's vectors; numbers
near 2**64 could overflow when they are added. What lies within the bounds must get through, or a group would stop.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership import units as membership
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.view import Incarnation
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.sequencer import units as sequencer
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.protocols.st.units import (
    PacketPosition,
    PlacedCopy,
    PlacedData,
    PlacedReady,
    PlacedStatus,
    ResetDone,
    ResetNeed,
    ResetReply,
)
from ordercast.protocols.to.units import CarryingVector, EpochVector, Heading, OrderedData, OrderedReady, UnorderedReady
from ordercast.wire.unit_validation import CHECKS, is_valid, is_valid_in_view, is_valid_outside
from tests.protocols.membership import hand

NODES = 3
PACKET = Packet(1, 0b101, 4, (), 9, (1, 2), b"\0abc")
TO_SOME = msgspec.structs.replace(PACKET, seq_to=(1, 2, 3))
STATUS = Status(3, (1, 2, 3), (1, 2, 3), 5, 6)
PLACED = PlacedStatus(3, (1, 2, 3), (1, 2, 3), 5, 6, (7, 8, 9), ((6, 4),))
HEADING = Heading(1, 3, 4, (1, 2, 3), 2, 0b10)
VECTOR = EpochVector(1, 3, (1, 2, 3), installed=False, wants=0b10)
VIEW = sequencer.NextView(4, 0b111, 1, 5, "")

EXAMPLES: tuple[Unit, ...] = (
    Data(TO_SOME, STATUS),
    Ready(1, 2, (1, 2, 3), STATUS, 0b1, ((0, ((2, 5),)),)),
    ResetReply(1, 2, 3, (1, 2, 3), ((1, 0b1),), ((0, 1, 0b1), (1, 1, 0b1)), 1),
    ResetNeed(1, 2, 0b1, ((0, 1),), 0b10, 3),
    ResetDone(1, 2),
    PlacedData(TO_SOME, PLACED),
    PlacedReady(1, 2, (1, 2, 3), PLACED, 0b1, ((0, 1, ((2, 5),), False),), 0),
    PlacedCopy(TO_SOME, 3, 6, (7, 8, 9), (1, 2, 3), (2, 3, 4)),
    PacketPosition(1, (0, 4), 3, (7, 8, 9), (1, 2, 3), (2, 3, 4)),
    PacketPosition(1, (0, 4), 3, (7, 8, 9), (1, 2, 3), (4, 4, 4)),
    OrderedData(PACKET, HEADING),
    OrderedReady(HEADING),
    UnorderedReady(HEADING),
    RunMarker(HEADING, 7),
    VECTOR,
    CarryingVector(PACKET, VECTOR, 5),
    sequencer.Offer(PACKET, 1, 2),
    sequencer.Broadcast(PACKET, 1, 2, 3, 4, 5),
    sequencer.Broadcast(PACKET, 0, 2, 0, 0, 0),  # the first one of all
    sequencer.NumberAnnouncement(1, 2, 3, ((0, 1),), 4, 5),
    sequencer.Acknowledgment(1, 2, 3, ((2, 5),)),
    sequencer.SequencerStatus(1, 2, 3, 4, 5, 0b1),
    sequencer.Synchronise(1, 2, 3, 1, 4, 5, 0b1),
    sequencer.Synchronised(1, 2, 3, 4),
    sequencer.Flush(1, 2, (3, 1), 0b1),
    sequencer.Flushed(1, 2, (3, 1), 4, ((5, 1), VIEW)),
    sequencer.Refused(1, 2, (3, 1), (4, 1)),
    sequencer.Propose(1, 2, (3, 1), VIEW, 0b1),
    sequencer.Accepted(1, 2, (3, 1)),
    sequencer.Install(1, 2, VIEW),
    sequencer.ViewRequest(1, 2),
    sequencer.Fetch(1, 2, (3, 1), ((2, 5),)),
    sequencer.Supply(PACKET, 1, 2, 3),
)
NUMBER, MEMBER, SET = (0, (1 << 60) - 1), (0, NODES - 1), (0, (1 << NODES) - 1)
BOUNDS = {
    "source": MEMBER,
    "packet.source": MEMBER,
    "packet.destinations": (1, SET[1]),
    "packet.priority": (0, 255),
    "packet.lengths.0": (0, 2),  # the two messages have at most the 4 bytes of the payload
    "packet.lengths.1": (0, 3),
    "heading.source": MEMBER,
    "heading.wants": SET,
    "vector.source": MEMBER,
    "vector.wants": SET,
    "wants": SET,
    "has": SET,
    "done": SET,
    "reply_from": SET,
    "answered": SET,
    "phase": (1, 2),
    "preacknowledged": (0, 2),  # the length of the log
    "ballot.1": MEMBER,
    "promised.1": MEMBER,
    "accepted.0.1": MEMBER,
    "sent.0.1": SET,
    "log.0.0": MEMBER,
    "log.0.2": SET,
    "log.1.0": MEMBER,
    "log.1.2": SET,
    "packets.0.0": MEMBER,
    "Ready missing.0.0": MEMBER,
    "Ready missing.0.1.0.0": (0, 4),  # a range is not empty
    "Ready missing.0.1.0.1": (3, NUMBER[1]),
    "PlacedReady missing.0.0": MEMBER,
    "PlacedReady missing.0.2.0.0": (0, 4),
    "PlacedReady missing.0.2.0.1": (3, NUMBER[1]),
    "witness": (-1, MEMBER[1]),
    **{f"high.{place}": (-1, NUMBER[1]) for place in range(NODES)},
    "of.0": MEMBER,
    "ResetNeed missing.0.0": MEMBER,
    "Acknowledgment missing.0.0": (0, 4),
    "Acknowledgment missing.0.1": (3, NUMBER[1]),
    "Fetch missing.0.0": (0, 4),
    "Fetch missing.0.1": (3, NUMBER[1]),
    # A unit that a member sends for itself alone is of its own packet, and a view has its sequencer.
    "OrderedData packet.source": (1, 1),
    "OrderedData heading.source": (1, 1),
    "CarryingVector packet.source": (1, 1),
    "CarryingVector vector.source": (1, 1),
    "value.members": (0b010, 0b111),
    "value.sequencer": MEMBER,
    "accepted.1.members": (0b010, 0b111),
    "accepted.1.sequencer": MEMBER,
}
"""By path, or by kind and path: the first and the last valid value. All others are `NUMBER`."""


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number in a value: its path, and a function that makes a copy with another number there."""
    dot = f"{path}." if path else ""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            for inner, put in numbers(getattr(value, field), f"{dot}{field}"):
                yield inner, lambda number, field=field, put=put: msgspec.structs.replace(value, **{field: put(number)})
    elif isinstance(value, tuple):
        for place, item in enumerate(value):
            for inner, put in numbers(item, f"{dot}{place}"):
                yield inner, lambda number, at=place, put=put: (*value[:at], put(number), *value[at + 1 :])
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, lambda number: number


PLACES = [
    pytest.param(unit, path, put, id=f"{type(unit).__name__} {path}")
    for unit in EXAMPLES
    for path, put in numbers(unit)
]


def test_there_is_a_valid_example_of_every_kind() -> None:
    assert {type(unit) for unit in EXAMPLES} == CHECKS.keys()
    assert [unit for unit in EXAMPLES if not is_valid(unit, NODES)] == []


@pytest.mark.parametrize(("unit", "path", "put"), PLACES)
def test_a_number_is_valid_within_its_bounds_and_nowhere_else(unit: Unit, path: str, put: Any) -> None:
    kind = type(unit).__name__
    first, last = BOUNDS.get(f"{kind} {path}", BOUNDS.get(path, NUMBER))
    assert is_valid(put(first), NODES)
    assert is_valid(put(last), NODES)
    assert not is_valid(put(first - 1), NODES)
    assert not is_valid(put(last + 1), NODES)


def test_every_bound_is_of_a_number_that_is_there() -> None:
    there = {name for unit in EXAMPLES for path, _ in numbers(unit) for name in (path, f"{type(unit).__name__} {path}")}
    assert there >= BOUNDS.keys()


def test_a_vector_has_an_entry_for_each_member() -> None:
    """One entry more or less, wherever a unit has a vector."""
    for wrong in ((1, 2), (1, 2, 3, 4)):
        for unit in (
            Data(msgspec.structs.replace(TO_SOME, seq_to=wrong), STATUS),
            sequencer.Offer(msgspec.structs.replace(PACKET, seq_to=wrong), 1, 2),
            Data(TO_SOME, msgspec.structs.replace(STATUS, expects=wrong)),
            Data(TO_SOME, msgspec.structs.replace(STATUS, preacknowledged_below=wrong)),
            Ready(1, 2, wrong, STATUS),
            ResetReply(1, 2, 3, wrong, (), (), 0),
            UnorderedReady(msgspec.structs.replace(HEADING, expects=wrong)),
            msgspec.structs.replace(VECTOR, expects=wrong),
        ):
            assert not is_valid(unit, NODES), unit


def test_a_flush_may_be_answered_without_an_accepted_view() -> None:
    assert is_valid(sequencer.Flushed(1, 2, (3, 1), 4, None), NODES)


# --- units of the membership protocol ---

HUGE = 1 << 62
APPLICANT = Incarnation("D", 7, "127.0.0.1:7000")
FIND = membership.Find("group", "D", 7, 5)
APPLY = membership.Apply(APPLICANT, 3, 0, (("order", "total"),), None, 0b1, 5)
FOUND = membership.Found("group", "D", 7, 5, APPLICANT, 1, 0, False, False, ("here",), 0, 7)
BALLOT = 1, 1
VECTORS = dict.fromkeys(("expected", "stable", "base", "units"), (1, 2, 3, 4))
REPORT = membership.Report(
    0, 1, BALLOT, None, leaving=False, has_state=True, report=EpochReport(**VECTORS, round=5, numbered_below=6)
)
REPORT_OF_VALUE = msgspec.structs.replace(REPORT, accepted=(BALLOT, hand.VALUE))
SUPPLY = membership.Supply(PACKET, 0, 1, 5)
IN_VIEW = (
    membership.Flush(0, 1, BALLOT, 0, "why"),
    REPORT,
    REPORT_OF_VALUE,
    membership.Propose(0, 1, BALLOT, hand.VALUE, 0),
    membership.Accepted(0, 1, BALLOT),
    membership.Overruled(0, 1, BALLOT, (2, 1)),
    membership.Install(0, 1, hand.VALUE),
    membership.Entered(0, 1, has_state=True),
    membership.Fetch(0, 1, ((2, 5),)),
    SUPPLY,
    membership.Leave(0, 1),
    membership.Suspicion(0, 1, 0b1, "why"),
    membership.Probe(0, 1),
)


def test_a_unit_of_a_view_is_valid_with_numbers_that_can_be_added() -> None:
    unit = membership.Install(0, 1, hand.VALUE)
    assert is_valid_in_view(unit, hand.VIEW)
    for wrong in (
        {"view": -1},
        {"view": HUGE},
        {"value": msgspec.structs.replace(hand.VALUE, cut=Cut((HUGE, 0, 0, 0)))},
        {"value": msgspec.structs.replace(hand.VALUE, next_node=HUGE)},
    ):
        assert not is_valid_in_view(msgspec.structs.replace(unit, **wrong), hand.VIEW), wrong


def test_names_of_one_that_asks_are_neither_empty_nor_long() -> None:
    assert is_valid_outside(FIND)
    for wrong in ({"group": ""}, {"name": ""}, {"group": "x" * 65}, {"name": "x" * 65}, {"nonce": -1}):
        assert not is_valid_outside(msgspec.structs.replace(FIND, **wrong)), wrong
    assert is_valid_outside(msgspec.structs.replace(FIND, group="x" * 64, name="y" * 64, nonce=0))


def test_no_number_of_an_application_is_negative() -> None:
    assert is_valid_outside(APPLY)
    assert is_valid_outside(msgspec.structs.replace(APPLY, to=0, nonce=0, ticket=0, old=0))
    for name in ("to", "view", "nonce", "ticket", "old"):
        assert not is_valid_outside(msgspec.structs.replace(APPLY, **{name: -1})), name
    assert not is_valid_outside(msgspec.structs.replace(APPLY, reached=1 << 64)), "there are 64 places"


@pytest.mark.parametrize("unit", IN_VIEW, ids=lambda unit: type(unit).__name__)
def test_every_kind_of_unit_of_a_view_gets_through(unit: membership.ControlUnit) -> None:
    """A kind that never did would keep every view from ending. The number of its view has the bounds of all numbers."""
    assert is_valid_in_view(unit, hand.VIEW)
    assert is_valid_in_view(msgspec.structs.replace(unit, view=NUMBER[1]), hand.VIEW)
    assert not is_valid_in_view(msgspec.structs.replace(unit, view=NUMBER[1] + 1), hand.VIEW)
    assert not is_valid_in_view(msgspec.structs.replace(unit, source=4), hand.VIEW), "four members"


def test_there_is_an_example_of_every_kind_of_a_view() -> None:
    assert {type(unit) for unit in IN_VIEW} == set(membership.CONTROL_UNITS)


WITH_NUMBER = {
    **{
        f"report {path}": lambda number, put=put: msgspec.structs.replace(REPORT, report=put(number))
        for path, put in numbers(REPORT.report)
    },
    **{
        f"{name} {path}": lambda number, kind=kind, put=put: kind(msgspec.structs.replace(hand.VALUE, cut=put(number)))
        for name, kind in (
            ("accepted", lambda value: msgspec.structs.replace(REPORT, accepted=(BALLOT, value))),
            ("proposed", lambda value: membership.Propose(0, 1, BALLOT, value, 0)),
            ("installed", lambda value: membership.Install(0, 1, value)),
        )
        for path, put in numbers(Cut((1, 2, 3, 4), 5, (1, 2, 3, 4), (1, 2, 3, 4), 6))
    },
    "fetched": lambda stop: membership.Fetch(0, 1, ((2, stop),)),
    "supplied": lambda number: msgspec.structs.replace(SUPPLY, number=number),
    "seq supplied": lambda seq: msgspec.structs.replace(SUPPLY, packet=msgspec.structs.replace(PACKET, seq=seq)),
}
"""Units of a view with any number in one place."""


@pytest.mark.parametrize("unit", WITH_NUMBER.values(), ids=WITH_NUMBER.keys())
def test_what_members_of_a_view_add_ends_where_all_numbers_do(unit: Any) -> None:
    assert is_valid_in_view(unit(NUMBER[1]), hand.VIEW)
    assert not is_valid_in_view(unit(NUMBER[1] + 1), hand.VIEW)


def test_the_messages_of_a_supply_fit_into_its_packet() -> None:
    """The payload has four bytes, the first message one."""
    for length, is_valid_then in ((3, True), (4, False)):
        packet = msgspec.structs.replace(PACKET, lengths=(1, length))
        assert is_valid_in_view(msgspec.structs.replace(SUPPLY, packet=packet), hand.VIEW) == is_valid_then


def test_one_that_is_found_says_where_it_is() -> None:
    assert is_valid_outside(FOUND)
    assert is_valid_outside(msgspec.structs.replace(FOUND, view=0, to=0, nonce=0))
    for name in ("view", "to", "nonce"):
        assert not is_valid_outside(msgspec.structs.replace(FOUND, **{name: -1})), name
    assert not is_valid_outside(msgspec.structs.replace(FOUND, place=1)), "one member has no place 1"
    for name in ("group", "name"):
        assert not is_valid_outside(msgspec.structs.replace(FOUND, **{name: ""})), name


def test_one_that_applied_is_answered() -> None:
    answer = membership.Answer(7, 5, refused=False, why="wait", reach=0b1)
    assert is_valid_outside(answer)
    assert not is_valid_outside(msgspec.structs.replace(answer, reach=1 << 64)), "there are 64 places"
