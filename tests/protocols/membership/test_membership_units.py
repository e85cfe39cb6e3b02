"""Units of the membership protocol: which are impossible and discarded, and how they are encoded."""

from typing import Any

import msgspec
import pytest

from ordercast.model.machine import Discard
from ordercast.protocols.membership.epoch import EpochReport
from ordercast.protocols.membership.events import ReceiveControl
from ordercast.protocols.membership.units import (
    CONTROL_UNITS,
    Accepted,
    Entered,
    Fetch,
    Flush,
    Install,
    Leave,
    Overruled,
    Probe,
    Propose,
    Report,
    Supply,
    Suspicion,
    problem_of,
)
from tests.protocols.membership.hand import VALUE, VIEW, Hand


def test_units_of_other_views_and_own_units_are_discarded() -> None:
    hand = Hand(3)
    for unit in (Flush(7, 1, (1, 1), 0, ""), Flush(0, 0, (1, 0), 0, ""), Flush(0, 5, (1, 5), 0, "")):
        assert [type(output) for output in hand.give(0, ReceiveControl(unit))] == [Discard]


REPORT = Report(0, 1, (1, 0), None, False, True, EpochReport((0, 0, 0, 0)))


@pytest.mark.parametrize(
    "unit",
    [
        Flush(0, 1, (0, 1), 0, ""),
        Flush(0, 1, (1, 2), 0, ""),
        Flush(0, 1, (1, 1), 1 << 9, ""),
        Flush(0, 1, (1, 1), 0, "x" * 1000),
        Propose(0, 1, (1, 1), msgspec.structs.replace(VALUE, number=3), 0),
        Accepted(0, 1, (1, 9)),
        Overruled(0, 1, (2, 0), (1, 1)),
        Install(0, 1, msgspec.structs.replace(VALUE, number=3)),
        Fetch(0, 1, ()),
        Fetch(0, 1, ((3, 3),)),
        Fetch(0, 1, ((0, 1),) * 65),
        Suspicion(0, 1, 1 << 9, ""),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0))),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0, -1))),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0, 0), stable=(1,))),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0, 0), round=-1)),
        msgspec.structs.replace(REPORT, accepted=((1, 9), VALUE)),
        msgspec.structs.replace(REPORT, accepted=((1, 1), msgspec.structs.replace(VALUE, stay=0b1111))),
    ],
)
def test_an_impossible_unit_is_discarded(unit: Any) -> None:
    assert problem_of(unit, VIEW) is not None
    hand = Hand(4)
    before = hand.members[0].snapshot()
    assert [type(output) for output in hand.give(0, ReceiveControl(unit))] == [Discard]
    assert hand.members[0].snapshot() == before


def test_possible_units_are_not_discarded() -> None:
    for unit in (
        REPORT,
        Flush(0, 1, (1, 1), 0, ""),
        Propose(0, 1, (1, 1), VALUE, 0),
        Install(0, 1, VALUE),
        Probe(0, 1),
    ):
        assert problem_of(unit, VIEW) is None
    assert problem_of(Probe(0, 4), VIEW) is not None
    for kind in (Probe(0, 1), Entered(0, 1, True)):
        for applicant in (None, 0, (1 << 64) - 1):
            assert problem_of(msgspec.structs.replace(kind, applicant=applicant), VIEW) is None
        for applicant in (-1, 1 << 64):
            assert problem_of(msgspec.structs.replace(kind, applicant=applicant), VIEW) is not None


ControlUnits: Any = (
    Flush | Report | Propose | Accepted | Overruled | Install | Entered | Fetch | Supply | Leave | Suspicion | Probe
)


def test_every_unit_survives_encoding() -> None:
    decoder: Any = msgspec.msgpack.Decoder(ControlUnits)
    for unit in (REPORT, Propose(0, 1, (1, 1), VALUE, 0), Install(0, 1, VALUE), Entered(0, 1, True), Leave(0, 1)):
        assert decoder.decode(msgspec.msgpack.encode(unit)) == unit
        assert unit.size() > 16
        assert unit.label() == "view"
    assert sorted(kind.__struct_config__.tag for kind in CONTROL_UNITS) == list(range(60, 72))  # type: ignore[type-var]
    assert Fetch(0, 1, ((0, 1), (3, 5))).asks_for() == "0+3-4"
