"""Members that cannot reach a quorum: they say so, ask on, and hear that others went on."""

import msgspec

from ordercast.model.machine import SetTimer, TimerFired
from ordercast.protocols.membership.events import Blocked, ReceiveOutside, SendOutside
from ordercast.protocols.membership.machine import Phase
from ordercast.protocols.membership.units import Answer, Find, Flush, Found, Propose
from tests.protocols.membership.hand import Hand, apply_of, person, sent


def test_who_cannot_reach_a_quorum_says_so_and_keeps_asking() -> None:
    hand = Hand(3)
    hand.flush(2)
    outputs = hand.give(2, TimerFired("view.blocked"))
    assert [output for output in outputs if isinstance(output, Blocked)] == [Blocked(0b011)]
    finds = [output for output in outputs if isinstance(output, SendOutside)]
    assert [(find.address, type(find.unit)) for find in finds] == [("address 0", Find), ("address 1", Find)]
    again = hand.give(2, TimerFired("view.blocked"))
    assert not any(isinstance(output, Blocked) for output in again)
    [timer] = [output for output in hand.give(2, TimerFired("view.round")) if isinstance(output, SetTimer)]
    assert timer.after >= hand.settings.blocked_repeat


def test_with_a_static_majority_who_reaches_too_few_is_blocked() -> None:
    hand = Hand(5, least=4)
    hand.flush(0, 1, 2)
    assert Blocked(0b11000) in hand.give(0, TimerFired("view.blocked")), "three are a majority, and too few"
    hand.reports(0, 3)
    hand.choose(0)
    assert len(sent(hand.last, Propose)) == 1


def test_who_reaches_a_quorum_is_not_blocked_however_long_it_takes() -> None:
    hand = Hand(5, patience=60)
    hand.flush(0, 1, 2)
    hand.choose(0)
    hand.passes(Flush, 0, 1)
    for number in (0, 1):
        outputs = hand.give(number, TimerFired("view.blocked"))
        assert not any(isinstance(output, Blocked) for output in outputs)
    assert not hand.members[2].blocked, "it was told only that 0 and 1 can be reached"
    hand.passes(Flush, 0, 2)
    hand.flush(3)
    assert Blocked(0b10111) in hand.give(3, TimerFired("view.blocked"))


def test_who_reaches_a_quorum_no_more_is_blocked() -> None:
    """Those that answered first have failed since."""
    hand = Hand(3)
    hand.flush(0, 1)
    hand.passes(Flush, 0, 1)
    assert not any(isinstance(output, Blocked) for output in hand.give(1, TimerFired("view.blocked")))
    assert Blocked(0b101) in hand.give(1, TimerFired("view.blocked"))


def test_a_blocked_member_goes_on_when_it_is_healed() -> None:
    hand = Hand(3)
    hand.flush(2)
    hand.give(2, TimerFired("view.blocked"))
    hand.reports(2, 0, 1)
    hand.accept(2, 0)
    assert hand.told[2][-3:] == ["Blocked", "Unblocked", "view 1: 0,1,2"]


def test_a_blocked_member_hears_that_the_others_went_on() -> None:
    hand = Hand(3)
    hand.flush(2)
    hand.give(2, TimerFired("view.blocked"))
    for _ in range(2):
        hand.flush(0, 1)
        hand.choose(0)
        hand.accept(0, 1)
        hand.install(0, 1)
    find = next(unit for _, unit in hand.outside if isinstance(unit, Find))
    hand.give(0, ReceiveOutside(find, "address 2"))
    [(_, found)] = [(address, unit) for address, unit in hand.outside if isinstance(unit, Found)]
    stranger = msgspec.structs.replace(found, nonce=99)
    hand.give(2, ReceiveOutside(stranger, "address 0"))
    assert hand.told[2][-1] == "Blocked"
    hand.give(2, ReceiveOutside(found, "address 0"))
    assert hand.told[2][-2:] == ["Unblocked", "Excluded"]
    assert hand.members[2].phase is Phase.RETIRED


def test_who_applies_at_a_blocked_member_is_told_that_it_waits_for_more_than_its_turn() -> None:
    """Its own former life may be the one that is missing: then the group cannot go on."""
    hand = Hand(2)
    new = msgspec.structs.replace(person(0), number=77)

    def answered() -> str:
        hand.outside.clear()
        hand.give(1, ReceiveOutside(apply_of(new, hand.members[1]), "address 0"))
        [answer] = [unit for _, unit in hand.outside if isinstance(unit, Answer)]
        assert not answer.refused
        return answer.why

    hand.flush(1)
    assert answered() == "the group takes it in soon"
    hand.give(1, TimerFired("view.blocked"))
    assert answered() == "n1 is cut off from too many members of view 0"
