"""Membership units on the wire: what a correct member can send gets through, and nothing beyond its bounds."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordercast.model.units import Packet
from ordercast.protocols.membership import units
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.units import CONTROL_UNITS, OUTSIDE_UNITS
from ordercast.protocols.membership.view import Departed, Incarnation, NextView, Reason, founding_view, view_after
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import CONTROL
from ordercast.wire.outside import Outside
from ordercast.wire.unit_validation import is_valid, is_valid_in_view, is_valid_outside

PEOPLE = tuple(Incarnation(name, number, f"10.0.0.{number}:7000") for number, name in enumerate("ABC", 1))
VIEW = founding_view(PEOPLE, b"8 bytes!")
NEXT = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), Cut((3, 4, 5)), 0, (), 3, "C did not answer")
REPORT = EpochReport((3, 4, 5), (1, 1, 1), 2, (0, 0, 0), (7, 7, 7), 9)
PACKET = Packet(1, 0b111, 0, (), 0, (2,), b"\0ab")
BALLOT = (1, 0)
IN_VIEW: list[Any] = [
    units.Flush(0, 0, BALLOT, 0b001, "why"),
    units.Report(0, 1, BALLOT, (BALLOT, NEXT), leaving=False, has_state=True, report=REPORT),
    units.Propose(0, 0, BALLOT, NEXT, 0b001),
    units.Accepted(0, 1, BALLOT),
    units.Overruled(0, 1, BALLOT, (2, 1)),
    units.Install(0, 0, NEXT),
    units.Entered(0, 1, has_state=True),
    units.Fetch(0, 1, ((3, 5),)),
    units.Supply(PACKET, 0, 0, 4),
    units.Leave(0, 2),
    units.Suspicion(0, 1, 0b100, "why"),
    units.Probe(0, 1),
]
NEW = view_after(VIEW, NEXT)
OUTSIDE: list[Any] = [
    units.Find("g", "D", 9, 1),
    units.Found("g", "D", 9, 1, PEOPLE[0], 0, 0, False, False, ("10.0.0.1:7000",), 0, 1),
    units.Apply(PEOPLE[2], 1, 0, (("order", "total"),), None, 0b011, 1),
    units.Answer(9, 1, False, "why", 0b100),
    units.Welcome(9, 0, NEXT, NEW, (Departed("C", 3, 2, 1, 5),), None),
]
CODEC = Codec("spo", (*CONTROL, Outside, *CONTROL_UNITS))
TOO_LARGE = 1 << 60


def changed(unit: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(unit, **fields)


def test_there_is_an_example_of_each_kind() -> None:
    assert {type(unit) for unit in IN_VIEW} == set(CONTROL_UNITS)
    assert {type(unit) for unit in OUTSIDE} == set(OUTSIDE_UNITS)


@pytest.mark.parametrize("unit", IN_VIEW, ids=lambda unit: type(unit).__name__)
def test_a_unit_of_a_view_survives_the_wire(unit: Any) -> None:
    assert CODEC.decode(CODEC.encode(unit)) == unit
    assert is_valid_in_view(unit, VIEW)
    assert not is_valid(unit, 3), "no machine of an order is given it"


@pytest.mark.parametrize("unit", OUTSIDE, ids=lambda unit: type(unit).__name__)
def test_a_unit_from_outside_survives_the_wire_with_an_address(unit: Any) -> None:
    message = Outside("10.0.0.9:7000", unit)
    assert CODEC.decode(CODEC.encode(message)) == message
    assert is_valid_outside(unit)
    with pytest.raises(Malformed):
        CODEC.decode(CODEC.encode(unit))
    for address in ("", "x" * 129):
        with pytest.raises(Malformed):
            CODEC.decode(CODEC.encode(Outside(address, unit)))


@pytest.mark.parametrize("unit", IN_VIEW, ids=lambda unit: type(unit).__name__)
def test_a_unit_of_no_member_or_of_an_impossible_view_is_invalid(unit: Any) -> None:
    for bad in (
        changed(unit, source=3),
        changed(unit, source=-1),
        changed(unit, view=-1),
        changed(unit, view=TOO_LARGE),
    ):
        assert not is_valid_in_view(bad, VIEW)


IMPOSSIBLE: list[Any] = [
    changed(IN_VIEW[0], ballot=(0, 0)),
    changed(IN_VIEW[0], ballot=(1 << 32, 0)),
    changed(IN_VIEW[0], ballot=(1, 3)),
    changed(IN_VIEW[0], ballot=(1, 1)),
    changed(IN_VIEW[0], heard=0b1000),
    changed(IN_VIEW[0], why="x" * 401),
    changed(IN_VIEW[1], report=changed(REPORT, expected=(3, 4))),
    changed(IN_VIEW[1], report=changed(REPORT, expected=(3, 4, -1))),
    changed(IN_VIEW[1], report=changed(REPORT, expected=(3, 4, TOO_LARGE))),
    changed(IN_VIEW[1], report=changed(REPORT, stable=(3, 4, TOO_LARGE))),
    changed(IN_VIEW[1], report=changed(REPORT, base=(3, 4, TOO_LARGE))),
    changed(IN_VIEW[1], report=changed(REPORT, units=(3, 4, TOO_LARGE))),
    changed(IN_VIEW[1], report=changed(REPORT, round=TOO_LARGE)),
    changed(IN_VIEW[1], report=changed(REPORT, numbered_below=TOO_LARGE)),
    changed(IN_VIEW[1], accepted=((0, 0), NEXT)),
    changed(IN_VIEW[1], accepted=(BALLOT, changed(NEXT, cut=Cut((3, 4, TOO_LARGE))))),
    changed(IN_VIEW[2], value=changed(NEXT, number=2)),
    changed(IN_VIEW[2], value=changed(NEXT, heard=0b100, stay=0b100)),
    changed(IN_VIEW[2], value=changed(NEXT, cut=Cut((3, 4)))),
    changed(IN_VIEW[2], value=changed(NEXT, cut=Cut((3, 4, TOO_LARGE)))),
    changed(IN_VIEW[2], value=changed(NEXT, why="x" * 401)),
    changed(IN_VIEW[2], heard=0b1000),
    changed(IN_VIEW[3], ballot=(0, 0)),
    changed(IN_VIEW[4], promised=BALLOT),
    changed(IN_VIEW[5], value=changed(NEXT, next_node=4)),
    changed(IN_VIEW[5], value=changed(NEXT, cut=Cut((3, 4, 5), numbered_below=TOO_LARGE))),
    changed(IN_VIEW[7], ranges=()),
    changed(IN_VIEW[7], ranges=((5, 5),)),
    changed(IN_VIEW[7], ranges=((0, TOO_LARGE),)),
    changed(IN_VIEW[7], ranges=tuple((number, number + 1) for number in range(0, 130, 2))),
    changed(IN_VIEW[8], number=-1),
    changed(IN_VIEW[8], number=TOO_LARGE),
    changed(IN_VIEW[8], packet=changed(PACKET, source=3)),
    changed(IN_VIEW[8], packet=changed(PACKET, lengths=(4,))),
    changed(IN_VIEW[10], members=0b1000),
    changed(IN_VIEW[10], why="x" * 401),
]


@pytest.mark.parametrize("unit", IMPOSSIBLE, ids=lambda unit: type(unit).__name__)
def test_what_no_correct_member_sends_is_invalid(unit: Any) -> None:
    assert not is_valid_in_view(unit, VIEW)


IMPOSSIBLE_OUTSIDE: list[Any] = [
    changed(OUTSIDE[0], group=""),
    changed(OUTSIDE[0], name="x" * 65),
    changed(OUTSIDE[0], nonce=-1),
    changed(OUTSIDE[1], addresses=()),
    changed(OUTSIDE[1], addresses=("x",) * 65),
    changed(OUTSIDE[1], place=1),
    changed(OUTSIDE[1], apply_at=1),
    changed(OUTSIDE[1], view=-1),
    changed(OUTSIDE[1], to=-1),
    changed(OUTSIDE[2], reached=1 << 64),
    changed(OUTSIDE[2], nonce=-1),
    changed(OUTSIDE[2], applicant=Incarnation("", 1, "x")),
    changed(OUTSIDE[2], terms=(("a", "b"),) * 65),
    changed(OUTSIDE[3], reach=-1),
    changed(OUTSIDE[3], why="x" * 401),
    changed(OUTSIDE[4], source=2),
    changed(OUTSIDE[4], view=changed(NEW, number=2)),
    changed(OUTSIDE[4], view=changed(NEW, tag=b"short")),
    changed(OUTSIDE[4], departed=(Departed("C", 3, 2, 1, 5),) * 1025),
]


@pytest.mark.parametrize("unit", IMPOSSIBLE_OUTSIDE, ids=lambda unit: type(unit).__name__)
def test_what_nobody_outside_sends_is_invalid(unit: Any) -> None:
    assert not is_valid_outside(unit)


@given(st.sampled_from(IN_VIEW), st.data())
def test_whatever_is_put_into_a_unit_is_decoded_or_malformed(unit: Any, data: st.DataObject) -> None:
    record = bytearray(CODEC.encode(unit))
    for _ in range(data.draw(st.integers(1, 3))):
        record[data.draw(st.integers(0, len(record) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = CODEC.decode(bytes(record))
    except Malformed:
        return
    if isinstance(found, CONTROL_UNITS):
        is_valid_in_view(found, VIEW)  # type: ignore[arg-type]
