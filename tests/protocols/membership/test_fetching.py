"""What a member lacks below the cut of a view: from whom it is fetched, what of it is taken, and when it is enough."""

from typing import Any

import pytest

from ordercast.model.machine import Discard
from ordercast.model.units import Packet
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.events import InstallView, ReceiveControl, SendControl
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import Accepted, ControlUnit, Fetch, Install, Propose, Supply
from ordercast.protocols.membership.view import NextView, Reason
from ordercast.protocols.sequencer.units import Broadcast
from tests.protocols.membership.hand import Hand, sent

CUT = Cut((3, 0, 0), numbered_below=3)
GOES_ON = NextView(1, 0b110, (), 0b110, ((0, Reason.SILENT),), CUT, 0, (), 3, "")
"""Numbers 0 to 2 are below its cut."""


def lacking(unit: ControlUnit) -> Hand:
    """2 has nothing, and 1 tells or proposes a view; 2 asks it for all."""
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.flush(1, 2)
    outputs = hand.give(2, ReceiveControl(unit))
    assert sent(outputs, Fetch) == [(1, Fetch(0, 2, ((0, 3),)))]
    return hand


def supplied(hand: Hand, number: int) -> list[Any]:
    packet = Packet(0, 0b111, number, (), number, (1,), "abcde"[number].encode())
    return hand.give(2, ReceiveControl(Supply(packet, 0, 1, number)))


def decided() -> Hand:
    return lacking(Install(0, 1, GOES_ON))


def test_when_the_last_one_that_was_asked_for_comes_what_is_still_lacking_is_asked_for_again() -> None:
    hand = decided()
    assert supplied(hand, 0) == [], "more is on its way"
    assert sent(supplied(hand, 2), Fetch) == [(1, Fetch(0, 2, ((1, 2),)))]
    outputs = supplied(hand, 1)
    assert any(isinstance(output, InstallView) for output in outputs)
    assert hand.in_view(2, 0) == ["a", "b", "c"]


def test_when_nothing_is_lacking_any_more_the_last_one_is_not_waited_for() -> None:
    hand = decided()
    for number in (2, 1):
        assert not any(isinstance(output, InstallView) for output in supplied(hand, number))
    assert any(isinstance(output, InstallView) for output in supplied(hand, 0))


@pytest.mark.parametrize("number", [3, 4])
def test_what_is_not_lacking_is_not_taken(number: int) -> None:
    hand = decided()
    [discarded] = supplied(hand, number)
    assert isinstance(discarded, Discard)
    assert discarded.why == "old"
    supplied(hand, 1)
    assert [type(output) for output in supplied(hand, 1)] == [Discard]
    assert list(hand.members[2].acceptor.supplied) == [1]


def test_a_proposal_is_accepted_when_nothing_below_its_cut_is_lacking() -> None:
    hand = lacking(Propose(0, 1, (1, 1), GOES_ON, 0))
    supplied(hand, 0)
    assert [type(output.unit) for output in supplied(hand, 2)] == [Fetch]
    assert [type(output.unit) for output in supplied(hand, 1)] == [Accepted]


def test_a_member_that_does_not_go_on_accepts_when_it_has_what_the_others_have() -> None:
    """2 is not heard; it is asked to accept all the same, and fetches first."""
    value = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), CUT, 0, (), 3, "")
    hand = lacking(Propose(0, 1, (1, 1), value, 0))
    for number in (0, 1):
        assert supplied(hand, number) == []
    assert [type(output.unit) for output in supplied(hand, 2)] == [Accepted]


def test_one_that_has_more_than_the_cut_lacks_nothing() -> None:
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.submit(0, "x")
    hand.passes(Broadcast, 0, 2)
    hand.flush(1, 2)
    value = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), Cut((0, 0, 0)), 0, (), 3, "")
    outputs = hand.give(2, ReceiveControl(Propose(0, 1, (1, 1), value, 0)))
    assert [type(output.unit) for output in outputs if isinstance(output, SendControl)] == [Accepted]


@pytest.mark.parametrize("teller", [0, 1])
def test_what_a_decided_view_needs_is_fetched_from_whoever_told_it(teller: int) -> None:
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.flush(0, 2)
    outputs = hand.give(2, ReceiveControl(Install(0, teller, GOES_ON)))
    assert [to for to, _ in sent(outputs, Fetch)] == [teller]


def test_who_learns_of_a_decision_fetches_from_the_last_one_that_reported_it() -> None:
    """As in `test_membership_scripts`, and 2 reports after 0."""
    hand = Hand(5, order_of("sequencer"), resilience=2)
    hand.submit(0, "x")
    hand.passes(Broadcast, 0, 1)
    hand.flush(1, 2, 3)
    hand.choose(1)
    hand.passes(Propose, 1, 0)
    hand.passes(Propose, 1, 2)
    hand.passes(Fetch, 2, 1)
    hand.passes(Supply, 1, 2)
    hand.flush(3, 0, 2)
    assert [to for to, _ in sent(hand.last, Fetch)] == [2]


def test_what_was_fetched_is_there_for_others_in_the_next_view() -> None:
    hand = decided()
    for number in range(3):
        supplied(hand, number)
    assert hand.members[2].current.view.number == 1
    outputs = hand.give(2, ReceiveControl(Fetch(0, 1, ((0, 3),))))
    assert [supply.number for _, supply in sent(outputs, Supply)] == [0, 1, 2]
