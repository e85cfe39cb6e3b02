"""The failure detector of simulator and explorer, beat by beat."""

from typing import Any

import pytest

from ordercast.model.machine import Output, Submit
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.silence import BEATS, MANY_BEATS, SilenceDetector
from tests.protocols.membership.hand import Hand


class Watched:
    """A member of three, and the detector that runs in it."""

    def __init__(self, beats: int = BEATS) -> None:
        self.hand = Hand(3)
        self.member: MembershipMachine = self.hand.members[0]
        self.detector = SilenceDetector(1000, beats)

    def sends(self) -> None:
        """A message that the others have not got."""
        self.hand.give(0, Submit(0, (1,), b"x", to_all=True))
        assert self.begins()

    def begins(self) -> bool:
        out: list[Output] = []
        self.detector.begin_if_needed(self.member, out)
        return out != []

    def beat(self) -> tuple[tuple[int, ...], int, bool]:
        """Who is probed, who is suspected, and whether it goes on."""
        out: list[Output] = []
        probed, suspected = self.detector.due(self.member, out)
        return probed, suspected, out != []


def test_a_silent_member_is_probed_after_one_beat_and_suspected_after_several() -> None:
    one = Watched()
    one.sends()
    one.detector.heard(2)
    found = []
    for _ in range(BEATS + 1):
        found.append(one.beat())
        one.detector.heard(2)
    assert found == [((), 0, True), *[((1,), 0, True)] * (BEATS - 1), ((), 0b010, True)]


def test_it_ends_when_nothing_is_outstanding_and_begins_again_with_the_next_message() -> None:
    one = Watched()
    assert not one.begins()
    one.sends()
    assert not one.begins(), "it runs already"
    machine: Any = one.member.machine
    machine.own.clear()
    assert one.beat() == ((), 0, False)
    one.sends()


@pytest.mark.parametrize(("beats", "asked"), [(BEATS, 0), (MANY_BEATS, 2 * MANY_BEATS)])
def test_it_goes_on_for_a_while_after_somebody_has_asked_to_join(beats: int, asked: int) -> None:
    one = Watched(beats)
    one.detector.asked()
    assert one.begins() is (asked > 0)
    count = 0
    while one.beat()[2]:
        count += 1
        assert count < 100
    assert count == asked


def test_a_process_that_has_not_joined_watches_nobody() -> None:
    out: list[Output] = []
    one = Watched()
    one.sends()
    assert one.detector.due(None, out) == ((), 0)
    assert (out, one.detector.runs) == ([], False)
