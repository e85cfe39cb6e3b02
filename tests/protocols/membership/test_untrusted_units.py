"""What no honest member would send: it is discarded, or believed without harm to the machine; nothing raises."""

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.machine import Discard
from ordercast.model.units import Packet
from ordercast.protocols.membership.acceptor import MAX_BALLOTS_AHEAD
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.events import ChangeView, OtherView, ReceiveControl
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import (
    Flush,
    Install,
    Overruled,
    Propose,
    Report,
    Supply,
    Welcome,
    problem_of,
    problem_of_outside,
)
from ordercast.protocols.membership.view import NextView, Reason, is_possible, view_after
from ordercast.protocols.sequencer.flush import SequencerFlush
from ordercast.protocols.spo.flush import SpoFlush
from ordercast.protocols.st.flush import StFlush
from ordercast.protocols.to.flush import ToFlush
from ordercast.wire.unit_validation import is_valid_in_view, is_valid_outside
from tests.protocols.membership.group import Group, disturb
from tests.protocols.membership.hand import Hand, person
from tests.protocols.membership.strange_units import Strange

ORDERS = ("spo", "po", "st", "to", "prito", "prio", "sequencer")
VALUE = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), Cut((0, 0, 0)), 0, (), 3, "")


@pytest.mark.parametrize("name", ORDERS)
def test_no_unit_makes_a_member_of_any_order_fail(name: str) -> None:
    """Units of real runs with some things changed, and lies that are well made, at any moment of a member's life."""
    given = 0
    for seed in range(5):
        group = Group(order_of(name), 2 + seed % 4, f"strange/{name}/{seed}", resilience=seed % 3)
        strange = Strange(group, Random(f"{name}/{seed}"), often=0.5)
        disturb(group, rounds=8, joiners=2)
        given += strange.given
    assert given > 200


@pytest.mark.soak
@pytest.mark.parametrize("name", ORDERS)
def test_no_unit_makes_a_member_of_any_order_fail_in_many_runs(name: str) -> None:
    for seed in range(5, 400):
        group = Group(order_of(name), 2 + seed % 5, f"strange/{name}/{seed}", resilience=seed % 3)
        Strange(group, Random(f"{name}/{seed}"), often=0.6)
        disturb(group, rounds=10, joiners=3)


def stopped(hand: Hand) -> Hand:
    """0 coordinates; it and 1 have reported."""
    hand.flush(0, 1)
    return hand


def why_discarded(hand: Hand, number: int, unit: Any) -> str:
    """The member is as it was before, and says why."""
    before = hand.members[number].snapshot()
    [output] = hand.give(number, ReceiveControl(unit))
    assert isinstance(output, Discard)
    assert hand.members[number].snapshot() == before
    return output.why


@pytest.mark.parametrize("kind", ["propose", "install", "report"])
def test_a_value_that_contradicts_what_a_member_has_is_not_believed(kind: str) -> None:
    def unit(value: NextView) -> Any:
        if kind == "propose":
            return Propose(0, 0, (3, 0), value, 0)
        return Install(0, 0, value) if kind == "install" else Report(0, 0, (1, 1), ((1, 0), value), False, True, NONE)

    hand = Hand(3, order_of("to"))
    cut = replace(VALUE, cut=Cut((0, 0, 0), units=(0, 0, 0)))
    assert why_discarded(hand, 1, unit(cut)) == "it names a report that was not made"
    stopped(hand)
    left = replace(cut, stay=0b001, left=((1, Reason.LEFT), (2, Reason.SILENT)))
    assert why_discarded(hand, 1, unit(left)) == "it names one as leaving that stays"
    missing = replace(cut, cut=Cut((0, 0, 0), units=(1, 0, 0)))
    assert why_discarded(hand, 1, unit(missing)) == "something below the cut is missing"
    other = replace(cut, heard=0b101, stay=0b101, left=((1, Reason.SILENT),))
    assert hand.members[1].acceptor.objection(unit(other)) is None, "it is not among those that made the cut"
    assert hand.members[1].acceptor.objection(unit(cut)) is None


NONE = EpochReport((0, 0, 0), units=(0, 0, 0))


def test_a_ballot_that_is_too_far_ahead_is_not_followed() -> None:
    """The rounds that there are would be used up."""
    hand = Hand(3)
    far = MAX_BALLOTS_AHEAD + 1
    for unit in (Flush(0, 1, (far, 1), 0, ""), Overruled(0, 1, (1, 0), (far, 1))):
        assert why_discarded(hand, 0, unit) == "its ballot is too far ahead"
    assert not any(isinstance(each, Discard) for each in hand.give(0, ReceiveControl(Flush(0, 1, (far - 1, 1), 0, ""))))


def test_a_report_that_contradicts_is_not_counted() -> None:
    """The coordinator goes on with the others."""
    hand = Hand(3, order_of("spo"))
    hand.give(0, ChangeView("asked for"))
    good = EpochReport((0, 0, 0), (0, 0, 0))
    for report in (
        EpochReport((0, 0, 0)),
        EpochReport((0, 0, 0), (1, 0, 0)),
        replace(good, round=1),
        replace(good, base=(0, 0, 0)),
    ):
        unit = Report(0, 1, (1, 0), None, False, True, report)
        [output] = hand.give(0, ReceiveControl(unit))
        assert isinstance(output, Discard)
        assert output.why == "contradicts another report"
        assert sorted(hand.members[0].coordinator.reports) == [0]
    hand.give(0, ReceiveControl(Report(0, 1, (1, 0), None, False, True, good)))
    assert sorted(hand.members[0].coordinator.reports) == [0, 1]


def test_reports_that_contradict_each_other_are_asked_for_again() -> None:
    """Each agrees with that of the coordinator, and not with the other: it does not choose."""
    hand = Hand(3, order_of("to"))
    hand.give(0, ChangeView("asked for"))
    machine: Any = hand.members[0].machine
    machine.recovery.epoch = 1
    hand.members[0].coordinator.reports[0] = replace(
        hand.members[0].coordinator.reports[0], report=EpochReport((0, 0, 0), round=1, base=(0, 0, 0), units=(0, 0, 0))
    )
    ahead = EpochReport((0, 0, 0), round=1, base=(0, 0, 0), units=(0, 0, 0))
    hand.give(0, ReceiveControl(Report(0, 1, (1, 0), None, False, True, replace(ahead, base=()))))
    assert sorted(hand.members[0].coordinator.reports) == [0, 1]
    outputs = hand.give(0, ReceiveControl(Report(0, 2, (1, 0), None, False, True, replace(ahead, round=0, base=()))))
    assert [output.why for output in outputs if isinstance(output, Discard)] == ["contradicts another report"] * 2
    assert sorted(hand.members[0].coordinator.reports) == [0]
    assert hand.members[0].coordinator.proposed is None


# --- what each order finds wrong ---


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("spo", Cut((0, 0, 0), round=1)),
        ("spo", Cut((0, 0, 0), units=(0, 0, 0))),
        ("spo", Cut((1, 0, 0))),
        ("po", Cut((0, 0, 0), numbered_below=1)),
        ("st", Cut((0, 0, 0), round=1)),
        ("st", Cut((0, 0, 0), round=2)),
        ("st", Cut((0, 0, 0), base=(0, 0, 0))),
        ("st", Cut((0, 1, 0))),
        ("to", Cut((0, 0, 0))),
        ("to", Cut((0, 0, 0), units=(0, 0, 0), round=1, base=(0, 0, 0))),
        ("to", Cut((0, 0, 0), units=(0, 0, 0), numbered_below=1)),
        ("to", Cut((0, 0, 0), units=(0, 1, 0))),
        ("prito", Cut((0, 0, 0), round=2)),
        ("sequencer", Cut((0, 0, 0), round=1)),
        ("sequencer", Cut((1, 0, 0))),
        ("sequencer", Cut((1, 0, 0), numbered_below=1)),
    ],
)
def test_a_cut_that_cannot_be_is_a_problem(name: str, cut: Cut) -> None:
    """Of members that have sent and received nothing."""
    order = order_of(name)
    flush = Hand(3, order).members[0].epoch.flush
    good = flush.cut({0: flush.report()}, 3)
    assert flush.problem(good) is None
    assert flush.problem(cut) is not None


VECTOR = (0, 0, 0)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (SpoFlush, EpochReport(VECTOR, VECTOR), [EpochReport(VECTOR), EpochReport(VECTOR, VECTOR, round=1)]),
        (StFlush, EpochReport(VECTOR, base=VECTOR), [EpochReport(VECTOR, VECTOR), EpochReport(VECTOR, units=VECTOR)]),
        (
            ToFlush,
            EpochReport(VECTOR, units=VECTOR),
            [
                EpochReport(VECTOR),
                EpochReport(VECTOR, VECTOR, units=VECTOR),
                EpochReport(VECTOR, units=VECTOR, numbered_below=1),
            ],
        ),
        (SequencerFlush, EpochReport(VECTOR, numbered_below=2), [EpochReport(VECTOR, VECTOR)]),
    ],
)
def test_a_report_has_what_its_order_has(kind: Any, good: EpochReport, bad: list[EpochReport]) -> None:
    assert kind.is_report(good, 3)
    assert not any(kind.is_report(report, 3) for report in bad)


def test_reports_of_to_agree_on_what_a_round_begins_with() -> None:
    ahead, behind = EpochReport((3, 3), round=2, base=(4, 4), units=(5, 4)), EpochReport((2, 2), round=1, units=(4, 6))
    assert ToFlush.agree({0: ahead, 1: behind})
    wrong: list[Mapping[int, EpochReport]] = [
        {0: replace(ahead, base=()), 1: behind},
        {0: replace(ahead, round=3), 1: behind},
        {0: ahead, 1: replace(behind, units=(4, 3))},
        {0: replace(ahead, units=(5, 3)), 1: behind},
        {0: ahead, 1: behind, 2: replace(ahead, base=(4, 3))},
        {0: replace(ahead, expected=(0, 3)), 1: behind},
    ]
    assert not any(ToFlush.agree(reports) for reports in wrong)


# --- what no member of the view can have sent ---


@pytest.mark.parametrize(
    "changes",
    [
        {"left": ((2, Reason.LEFT),)},
        {"left": ((2, Reason.STATELESS),)},
        {"stay": 0b001, "left": ((1, Reason.SILENT), (2, Reason.SILENT))},
        {"stay": 0, "left": ((0, Reason.LEFT), (1, Reason.LEFT), (2, Reason.SILENT))},
        {"cut": Cut((0, 0))},
        {"cut": Cut(())},
    ],
)
def test_a_view_whose_lists_lie_cannot_follow(changes: dict[str, Any]) -> None:
    view = Hand(3).view
    assert is_possible(VALUE, view)
    assert is_possible(replace(VALUE, stay=0, heard=0b111, left=tuple((each, Reason.LEFT) for each in range(3))), view)
    assert not is_possible(replace(VALUE, **changes), view)


def test_a_packet_that_cannot_be_is_not_supplied() -> None:
    view, packet = Hand(3).view, Packet(0, 0b111, 0, (), 0, (1,), b"x")
    assert problem_of(Supply(packet, 0, 1, 0), view) is None
    for wrong in ({"destinations": 0}, {"destinations": 0b1000}, {"source": 3}, {"seq": -1}, {"first": -1}):
        assert problem_of(Supply(replace(packet, **wrong), 0, 1, 0), view) is not None
    assert problem_of(Supply(packet, 0, 1, -1), view) is not None


def test_a_welcome_must_fit_its_view() -> None:
    joined = person(7)
    value = replace(VALUE, joined=(joined,), next_node=4, stateless=0b100, donors=(1,))
    welcome = Welcome(7, 0, value, view_after(Hand(3).view, value), (), None)
    assert problem_of_outside(welcome) is None
    assert is_valid_outside(welcome)
    for wrong in (
        {"stay": 0b111},
        {"stay": -1},
        {"stay": 0},
        {"heard": 0b001},
        {"heard": 0b1011},
        {"joined": ()},
        {"joined": (person(8),)},
        {"left": ()},
        {"next_node": 5},
        {"stateless": 0b1000},
        {"donors": (2,)},
        {"donors": (9,)},
        {"number": 2},
        {"why": "x" * 1000},
        {"cut": Cut(())},
    ):
        assert problem_of_outside(replace(welcome, value=replace(value, **wrong))) is not None, wrong
    assert problem_of_outside(replace(welcome, source=3)) is not None
    for name in ("position", "partials"):
        assert problem_of_outside(replace(welcome, **{name: (1 << 60) - 1})) is None
        for number in (-1, 1 << 60):
            assert problem_of_outside(replace(welcome, **{name: number})) is not None
    assert problem_of_outside(replace(welcome, view=replace(welcome.view, tag=b""))) is not None


def test_a_place_outside_the_view_before_is_not_answered() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1, 2)
    assert hand.members[0].current.view.number == 1
    for place in (-1, 3):
        assert hand.give(0, OtherView(place)) == []
    assert hand.give(0, OtherView(1)) != []


def test_the_wire_lets_no_unit_pass_that_a_member_discards() -> None:
    """Changed units: what the checks of the wire take is no reason to fail, and numbers stay below 64 bits."""
    group = Group(order_of("sequencer"), 3, "wire", resilience=1)
    strange = Strange(group, Random(3), often=0.0)
    disturb(group, rounds=8, joiners=2)
    member = next(process.member for process in group.processes.values() if process.member)
    passed = 0
    for _ in range(3000):
        event = strange.event_for(member)
        if isinstance(event, ReceiveControl) and is_valid_in_view(event.unit, member.current.view):
            before = member.snapshot()
            member.handle(event)
            member.restore(before)
            passed += 1
    assert passed > 200
