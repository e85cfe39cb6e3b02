"""Installing a view: it is repeated to those behind, and those that it is without learn of it."""

from ordercast.model.machine import Submit, TimerFired
from ordercast.protocols.membership.events import Excluded, OtherView, Retired, SendControl, SendOutside
from ordercast.protocols.membership.machine import Phase
from ordercast.protocols.membership.units import Entered, Install
from tests.protocols.membership.hand import Hand, sent


def test_a_member_of_the_view_before_is_told_what_followed_once_in_a_while() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    first = hand.give(0, OtherView(2))
    answers = [output for output in first if isinstance(output, SendControl)]
    assert [(output.to, output.view, type(output.unit)) for output in answers] == [(2, 0, Install)]
    assert hand.give(0, OtherView(2)) == []
    assert hand.give(0, OtherView(9)) == []
    hand.give(0, TimerFired("view.answer"))
    assert hand.give(0, OtherView(2)) != []
    hand.passes(Install, 0, 2)
    assert hand.view_of(2) == "0,1,2"
    assert len(hand.views[2]) == 2


def test_the_installer_repeats_until_all_have_entered() -> None:
    hand = Hand(3)
    hand.apply(7, 0)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    hand.install(0, 1)
    hand.passes(Entered, 1, 0)
    outputs = hand.give(0, TimerFired("view.install"))
    assert [to for to, _ in sent(outputs, Install)] == [2]
    assert [output.address for output in outputs if isinstance(output, SendOutside)] == ["address 7"]
    hand.install(0, 2)
    hand.passes(Entered, 2, 0)
    hand.welcome(7)
    hand.passes(Entered, 7, 0)
    assert hand.give(0, TimerFired("view.install")) == []


def test_who_does_not_enter_is_suspected_after_a_failure_timeout() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    hand.install(0, 1)
    hand.passes(Entered, 1, 0)
    for _ in range(200):
        if hand.members[0].stopped:
            break
        hand.give(0, TimerFired("view.install"))
    assert hand.members[0].coordinator.suspects == 0b100


def test_an_install_that_comes_again_is_answered() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    hand.install(0, 1)
    hand.passes(Install, 0, 1)
    assert sent(hand.last, Entered) == [(0, Entered(1, 1, True))]


def test_who_is_excluded_learns_which_of_its_packets_were_delivered() -> None:
    hand = Hand(3)
    hand.submit(2, "x")
    hand.submit(2, "y")
    for number in (0, 1):
        hand.takes(number, "x")
    hand.flush(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    hand.install(0, 2)
    [excluded] = [output for output in hand.last if isinstance(output, Excluded)]
    assert (excluded.number, excluded.end) == (1, 1)
    assert hand.members[0].current.departed[0].end == 1
    assert [event.payload for event in hand.members[2].not_delivered()] == [b"y"]
    assert hand.members[2].phase is Phase.RETIRED
    assert hand.give(2, Submit(1, (1,), b"z")) == []
    assert [type(output) for output in hand.give(2, TimerFired("view.retired"))] == [Retired]
    hand.passes(Install, 0, 2)
    assert hand.last == []
