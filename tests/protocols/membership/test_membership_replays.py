"""Recorded units of all earlier views, and recorded applications, said again at random moments: nothing changes."""

from functools import partial
from random import Random
from typing import Any

import pytest

from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.machine import SetTimer, TimerFired
from ordercast.protocols.membership.events import InstallView, ReceiveOutside, SendOutside
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import Found, Install
from tests.protocols.membership.group import Group, Process, disturb, make_peace
from tests.protocols.membership.hand import Hand, apply_of
from tests.protocols.membership.promises import check, check_end


class Recorder:
    """All that was ever received in a group, and by whom."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.control: list[tuple[bytes, Any]] = []
        self.outside: list[tuple[str, Any, str]] = []
        self._control, self._outside = group.control, group.outside
        group.control, group.outside = self._on_control, self._on_outside  # type: ignore[method-assign]

    def _on_control(self, tag: bytes, unit: Any, to: Process) -> None:
        self.control.append((tag, unit))
        self._control(tag, unit, to)

    def _on_outside(self, unit: Any, address: str, to: Process) -> None:
        self.outside.append((to.me.address, unit, address))
        self._outside(unit, address, to)

    def say_again(self, chance: Random, count: int) -> None:
        """To anybody: units of views before the current one of the receiver; and what came from outside."""
        for _ in range(count):
            to = chance.choice([process for process in self.group.processes.values() if process.alive])
            if chance.random() < 0.5 and self.outside:
                _, unit, address = chance.choice(self.outside)
                self._outside(unit, address, to)
            elif self.control and to.member is not None:
                tag, unit = chance.choice(self.control)
                if tag != to.member.current.view.tag:
                    self._control(tag, unit, to)


@pytest.mark.parametrize("name", ["to", "sequencer", "spo", "st"])
def test_what_was_said_in_earlier_views_changes_nothing(name: str) -> None:
    """In the midst of a run nothing goes wrong; once all is quiet, no view follows, and members are as they were."""
    views = 0
    for seed in range(4):
        group, chance = Group(order_of(name), 3 + seed % 3, f"again/{name}/{seed}"), Random(seed)
        group.is_total = name in {"to", "sequencer"}
        recorder = Recorder(group)
        for moment in range(30):
            group.later(moment * 25 * MILLISECOND, partial(recorder.say_again, chance, 10))
        disturb(group, rounds=14, joiners=2)
        check(group)
        if make_peace(group) != "settled":
            continue
        check(group)
        check_end(group)
        before = {process.me.address: essence(process) for process in group.members()}
        for _ in range(20):
            recorder.say_again(chance, 20)
            group.run(group.now + 100 * MILLISECOND)
        assert {process.me.address: essence(process) for process in group.members()} == before
        check(group)
        views += max(group.views)
    assert views > 5


def essence(process: Process) -> tuple[Any, ...]:
    """All that matters of a member that is at rest: not whom it has answered lately, nor what it was told of others."""
    member = process.member
    assert member is not None
    now = (member.current, member.submissions, member.acceptor, member.coordinator, member.leaving, member.blocking)
    return (*(part.snapshot() for part in now), member.applicants.ready(), tuple(process.log))


def test_an_application_of_one_that_died_is_not_taken_again() -> None:
    """It names the view and the member, which are still the same; the ticket is not."""
    hand = Hand(3)
    hand.apply(7, 0)
    recorded = apply_of(7, hand.members[0])
    assert [each.number for each in hand.members[0].applicants.ready()] == [7]
    while hand.members[0].applicants.ready():
        hand.give(0, TimerFired("view.applicants"))  # nothing more comes from it
    for _ in range(3):
        outputs = hand.give(0, ReceiveOutside(recorded, "address 7"))
        assert [type(each.unit) for each in outputs if isinstance(each, SendOutside)] == [Found]
        assert not any(isinstance(each, SetTimer) for each in outputs)
    assert not hand.members[0].applicants.ready()
    hand.apply(7, 0, ticket=1)
    assert [each.number for each in hand.members[0].applicants.ready()] == [7], "it lives: it has asked again"


def test_one_that_lives_gets_another_ticket() -> None:
    """It applies again with what it was told, and is taken in."""
    group = Group(order_of("to"), 2, "ticket")
    for process in group.members():
        assert process.member is not None
        process.member.applicants.ticket = 3
    group.join("living")
    assert make_peace(group, 5 * SECOND) == "settled"
    [view] = {process.view for process in group.members()}
    assert view is not None
    assert [member.name for member in view.members] == ["n0", "n1", "living"]
    hand = Hand(3)
    hand.members[0].applicants.ticket = 3
    hand.apply(7, 0)
    assert not hand.members[0].applicants.ready()


def test_applications_for_earlier_views_are_answered_with_the_present_one() -> None:
    hand = Hand(3)
    recorded = apply_of(7, hand.members[0])
    hand.flush(0, 1, 2)
    hand.accept(0, 1, 2)
    assert hand.members[0].current.view.number == 1
    [answer] = hand.give(0, ReceiveOutside(recorded, "address 7"))
    assert isinstance(answer, SendOutside)
    assert isinstance(answer.unit, Found)
    assert answer.unit.view == 1
    assert not hand.members[0].applicants.ready()


def test_an_application_at_another_incarnation_is_nobodys() -> None:
    hand = Hand(3)
    recorded = apply_of(7, hand.members[0])
    before = hand.members[1].snapshot()
    hand.give(1, ReceiveOutside(recorded, "address 7"))
    assert hand.members[1].snapshot() == before


def test_an_install_of_an_earlier_view_is_not_entered_again() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1, 2)
    hand.install(0, 1)
    before = hand.members[1].snapshot()
    for _ in range(2):
        assert not any(isinstance(each, InstallView) for each in hand.passes(Install, 0, 1))
        assert hand.members[1].snapshot() == before
