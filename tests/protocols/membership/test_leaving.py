"""Leaving: together, once more in each view, coordinating last, and after a lost word."""

from ordercast.model.machine import CancelTimer, TimerFired
from ordercast.protocols.membership.events import LeaveGroup
from ordercast.protocols.membership.machine import Phase
from ordercast.protocols.membership.units import Install, Leave
from tests.protocols.membership.hand import Hand, sent


def test_all_that_leave_leave_together() -> None:
    hand = Hand(3)
    for number in range(3):
        hand.leave(number)
    for number in (1, 2):
        hand.passes(Leave, number, 0)
    if hand.members[0].acceptor.promised is None:
        hand.choose(0)
    hand.reports(0, 1, 2)
    hand.accept(0, 1)
    hand.install(0, 1, 2)
    assert [hand.told[number][-1] for number in range(3)] == ["LeftGroup"] * 3


def test_with_a_static_majority_only_so_many_may_leave() -> None:
    hand = Hand(4, least=3)
    for number in (1, 2):
        hand.leave(number)
    hand.passes(Leave, 2, 0)
    hand.reports(0, 1, 2, 3)
    hand.accept(0, 1, 3)
    hand.install(0, 1, 2, 3)
    assert hand.view_of(0) == "0,1,3", "the younger of the two has left"
    assert hand.told[2][-1] == "LeftGroup"
    hand.passes(Leave, 1, 0)
    assert not hand.members[0].stopped, "the group goes on, with the other"
    for number in (0, 3):
        hand.leave(number)
    hand.passes(Leave, 3, 0)
    assert hand.members[0].stopped, "all leave: the group ends"


def test_one_that_may_stay_and_has_to_goes_on_as_before() -> None:
    hand = Hand(4, least=3)
    for number in (1, 2):
        hand.give(number, LeaveGroup(drain=False, may_stay=True))
    hand.passes(Leave, 2, 0)
    hand.reports(0, 1, 2, 3)
    hand.accept(0, 1, 3)
    hand.install(0, 1)
    assert CancelTimer("view.leave") in hand.last
    hand.install(0, 2, 3)
    assert hand.told[2][-1] == "LeftGroup", "the group did not need both"
    stays = hand.members[1]
    assert not stays.leaves
    assert not stays.acceptor.leaving
    assert hand.find(Leave, 1, 0) == Leave(0, 1), "it says nothing of the kind in this view"
    hand.submit(1, "x")
    assert hand.told[1][-1] == "(x)"


def test_one_that_may_stay_and_is_then_told_to_leave_leaves() -> None:
    hand = Hand(4, least=3)
    hand.give(1, LeaveGroup(drain=False, may_stay=True))
    hand.leave(1, drain=False)
    hand.give(1, LeaveGroup(drain=False, may_stay=True))
    assert not hand.members[1].leaving.may_stay
    hand.leave(2)
    hand.passes(Leave, 2, 0)
    hand.reports(0, 1, 2, 3)
    hand.accept(0, 1, 3)
    hand.install(0, 1, 2, 3)
    assert hand.find(Leave, 1, 0) == Leave(1, 1), "in the next view, too"


def test_who_leaves_says_so_again_in_each_view() -> None:
    hand = Hand(4)
    for number in (2, 3):
        hand.members[number].current.has_state = False
    hand.leave(0)
    hand.passes(Leave, 0, 2)
    hand.flush(2, 0, 3)
    hand.choose(2)
    hand.accept(2, 0)
    hand.accept(2, 3)
    hand.install(2, 0)
    assert sent(hand.last, Leave) == [(None, Leave(1, 0))]


def test_who_leaves_coordinates_last() -> None:
    hand = Hand(3)
    hand.leave(0)
    assert hand.members[0].acceptor.promised is None
    hand.passes(Leave, 0, 1)
    assert hand.members[1].acceptor.promised == (1, 1)


def test_leaving_twice_is_leaving() -> None:
    hand = Hand(2)
    hand.leave(1)
    hand.give(1, LeaveGroup())
    assert hand.members[1].acceptor.leaving


def test_one_that_leaves_and_lost_the_word_of_the_view_asks_for_it() -> None:
    hand = Hand(3)
    hand.leave(2)
    hand.passes(Leave, 2, 0)
    hand.reports(0, 1, 2)
    hand.accept(0, 1, 2)
    assert hand.view_of(0) == "0,1"
    assert hand.told[2][-1] != "LeftGroup", "the word was lost"
    assert sent(hand.give(2, TimerFired("view.leave")), Leave) == [(None, Leave(0, 2))]
    hand.passes(Leave, 2, 0)
    hand.passes(Install, 0, 2)
    assert hand.members[2].phase is Phase.RETIRED
    assert hand.told[2][-1] == "LeftGroup"
