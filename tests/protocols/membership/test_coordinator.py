"""The coordinator: who begins, how long it waits, what it repeats, who takes over."""

import msgspec

from ordercast.model.machine import Discard, SetTimer, Stopped, Suspect, TimerFired
from ordercast.protocols.membership.events import ReceiveControl
from ordercast.protocols.membership.units import CONTROL_UNITS, Accepted, Flush, Overruled, Propose, Report, Suspicion
from tests.protocols.membership.hand import Hand, sent


def test_the_lowest_place_that_is_not_suspected_begins() -> None:
    hand = Hand(4)
    hand.give(1, Suspect(0b1000))
    assert not hand.members[1].stopped
    assert [to for to, _ in sent(hand.last, Suspicion)] == [0, 2]
    assert [output.name for output in hand.last if isinstance(output, SetTimer)] == ["view.round"]
    hand.give(1, Suspect(0b1001))
    assert hand.members[1].acceptor.promised == (1, 1)
    assert any(isinstance(output, Stopped) for output in hand.last)


def test_who_is_told_of_a_suspicion_begins() -> None:
    hand = Hand(4)
    hand.give(2, Suspect(0b1000))
    hand.passes(Suspicion, 2, 0)
    assert hand.members[0].acceptor.promised == (1, 0)
    assert sent(hand.last, Flush) == [(None, Flush(0, 0, (1, 0), 1, "n3 suspected"))]


def test_a_higher_place_begins_when_its_turn_has_come() -> None:
    hand = Hand(3)
    hand.give(1, Suspect(0b100))
    hand.give(1, TimerFired("view.round"))
    assert hand.members[1].acceptor.promised == (1, 1)


def test_nobody_suspects_itself_or_somebody_twice() -> None:
    hand = Hand(3)
    assert hand.give(1, Suspect(0b010)) == []
    hand.give(1, Suspect(0b100))
    assert hand.give(1, Suspect(0b100)) == []


def test_a_refuted_suspicion_costs_a_view_with_the_same_members() -> None:
    hand = Hand(3)
    hand.give(0, Suspect(0b100))
    hand.reports(0, 1, 2)
    hand.accept(0, 2)
    hand.install(0, 1, 2)
    assert [hand.view_of(number) for number in range(3)] == ["0,1,2"] * 3
    assert hand.members[0].coordinator.suspects == 0
    value = hand.members[0].current.value
    assert value is not None
    assert value.why == "n2 suspected", "it did answer"


def test_a_coordinator_waits_longer_for_those_that_are_not_suspected() -> None:
    for suspects, rounds in ((0, 8), (0b100, 2)):
        hand = Hand(3, patience=8, suspected_patience=2)
        hand.flush(0, 1)
        hand.members[0].coordinator.suspects = suspects
        for _ in range(rounds - 1):
            hand.choose(0)
            assert sent(hand.last, Propose) == []
            assert len(sent(hand.last, Flush)) == 1
        hand.choose(0)
        assert len(sent(hand.last, Propose)) == 1


def test_a_static_majority_does_not_go_on_with_fewer() -> None:
    hand = Hand(5, least=3)
    hand.flush(0, 1, 2)
    hand.choose(0)
    hand.accept(0, 1, 2)
    hand.install(0, 1, 2)
    assert hand.view_of(0) == "0,1,2"
    hand.flush(0, 1)
    hand.choose(0)
    assert sent(hand.last, Propose) == []
    hand.reports(0, 2)
    assert hand.find(Propose, 0, 2) is not None


def test_only_suspected_members_are_waited_for_as_long_as_an_answer_takes() -> None:
    hand = Hand(5, patience=8, suspected_patience=2, grace=7)
    hand.flush(0, 1)
    hand.members[0].coordinator.suspects = 0b10000
    hand.reports(0, 2)
    assert sent(hand.last, Flush) == [], "3 is not suspected"
    hand.reports(0, 3)
    assert [flush.heard for _, flush in sent(hand.last, Flush)] == [0b01111]
    [timer] = [output for output in hand.last if isinstance(output, SetTimer)]
    assert (timer.name, 7 <= timer.after < 14) == ("view.round", True)
    hand.choose(0)
    assert len(sent(hand.last, Propose)) == 1


def test_who_was_asked_for_the_last_time_already_is_not_asked_once_more() -> None:
    hand = Hand(4, patience=8, suspected_patience=2, grace=7)
    hand.flush(0, 1)
    hand.members[0].coordinator.suspects = 0b1000
    hand.choose(0)
    hand.reports(0, 2)
    assert hand.last == [], "the round that runs is the last one"
    hand.choose(0)
    assert len(sent(hand.last, Propose)) == 1


def test_the_grace_begins_when_the_last_one_is_suspected() -> None:
    hand = Hand(3, patience=8, suspected_patience=2, grace=7)
    hand.flush(0, 1)
    assert [flush.heard for _, flush in sent(hand.give(0, Suspect(0b100)), Flush)] == [0b011]
    hand.choose(0)
    assert len(sent(hand.last, Propose)) == 1


def test_whoever_can_be_reached_again_is_waited_for() -> None:
    """A ballot that had too few answers for long is answered by some when the network is whole again."""
    hand = Hand(5, patience=8, suspected_patience=2)
    hand.give(0, Suspect(0b11110))
    for _ in range(10):
        hand.choose(0)
    hand.give(0, TimerFired("view.blocked"))
    hand.reports(0, 1, 2)
    [(_, flush)] = sent(hand.last, Flush)
    assert flush.heard == 0b00111, "the others are asked at once"
    [timer] = [output for output in hand.last if isinstance(output, SetTimer)]
    assert timer.after < 2 * hand.settings.repeat, "and soon again"
    hand.choose(0)
    hand.choose(0)
    assert sent(hand.last, Propose) == [], "nobody is suspected any more"
    hand.reports(0, 3, 4)
    assert len(sent(hand.last, Propose)) == 1


def test_who_hears_nothing_of_the_coordinator_takes_over() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.give(1, TimerFired("view.round"))
    assert hand.members[1].acceptor.promised == (1, 0), "it heard the flush"
    hand.give(1, TimerFired("view.round"))
    assert hand.members[1].acceptor.promised == (2, 1)


def test_the_wait_for_a_coordinator_doubles() -> None:
    hand = Hand(3)
    waits = []
    for round_ in (1, 2, 3):
        hand.give(2, ReceiveControl(Flush(0, 0, (round_, 0), 0, "")))
        hand.members[2].coordinator.guided = True
        [timer] = [output for output in hand.give(2, TimerFired("view.round")) if isinstance(output, SetTimer)]
        waits.append(timer.after)
    for round_, wait in enumerate(waits):
        base = (4 + 2) * hand.settings.repeat << round_
        assert base <= wait < 2 * base


def test_who_is_overruled_waits_its_turn_and_then_goes_higher() -> None:
    hand = Hand(3)
    hand.flush(1, 2)
    hand.flush(0)
    hand.passes(Flush, 0, 2)
    assert sent(hand.last, Overruled) == [(0, Overruled(0, 2, (1, 0), (1, 1)))]
    hand.passes(Overruled, 2, 0)
    assert not hand.members[0].coordinator.is_active
    hand.give(0, TimerFired("view.round"))
    assert hand.members[0].acceptor.promised == (2, 0)


def test_only_the_own_ballot_is_overruled() -> None:
    hand = Hand(3, patience=8)
    hand.flush(0)
    other = Overruled(0, 2, (1, 1), (2, 2))
    assert hand.give(0, ReceiveControl(other)) == [Discard(other, "old")]
    assert hand.members[0].coordinator.is_active
    assert hand.members[0].acceptor.highest_round == 2
    own = Overruled(0, 2, (1, 0), (2, 2))
    outputs = hand.give(0, ReceiveControl(own))
    assert [output.name for output in outputs if isinstance(output, SetTimer)] == ["view.round"], "it waits its turn"
    assert hand.members[0].coordinator.yielded
    assert hand.give(0, ReceiveControl(own)) == [Discard(own, "old")]


def test_a_report_for_another_ballot_is_discarded() -> None:
    hand = Hand(3, patience=8)
    hand.flush(0, 1)
    report = hand.find(Report, 1, 0)
    assert report is not None
    old = msgspec.structs.replace(report, source=2, ballot=(9, 0))
    assert hand.give(0, ReceiveControl(old)) == [Discard(old, "old")]
    assert set(hand.members[0].coordinator.reports) == {0, 1}


def test_a_coordinator_repeats_to_those_that_have_not_answered() -> None:
    hand = Hand(5, patience=8)
    hand.flush(0, 1)
    hand.choose(0)
    [(_, flush)] = sent(hand.last, Flush)
    assert flush.heard == 0b0011
    assert hand.give(1, ReceiveControl(flush)) == []
    hand.reports(0, 2, 3, 4)
    hand.accept(0, 1)
    hand.choose(0)
    [(_, propose)] = sent(hand.last, Propose)
    assert propose.heard == 0b0011
    assert hand.give(1, ReceiveControl(propose)) == []


def test_a_vote_for_another_ballot_does_not_count() -> None:
    hand = Hand(5)
    hand.flush(0, 1, 2, 3, 4)
    for vote in (Accepted(0, 1, (9, 0)), Accepted(0, 2, (9, 0)), Accepted(0, 1, (1, 2))):
        assert hand.give(0, ReceiveControl(vote)) == [Discard(vote, "old")]
    assert hand.view_of(0) == "0,1,2,3,4"
    assert hand.members[0].current.view.number == 0
    hand.accept(0, 1, 2)
    assert hand.members[0].current.view.number == 1


def test_a_vote_for_what_is_not_proposed_yet_does_not_count() -> None:
    hand = Hand(3)
    hand.flush(0)
    vote = Accepted(0, 1, (1, 0))
    assert hand.give(0, ReceiveControl(vote)) == [Discard(vote, "old")]
    assert hand.members[0].coordinator.accepts == 0


def test_alone_a_member_changes_its_view_at_once() -> None:
    hand = Hand(1)
    hand.submit(0, "x")
    hand.flush(0)
    assert hand.told[0] == ["view 0: 0", "(x)", "view 1: 0", "(x)"]
    hand.leave(0, drain=False)
    assert hand.told[0][-1] == "LeftGroup"


def test_a_crash_in_a_group_of_64_costs_six_datagrams_for_each_member() -> None:
    """Flush, Report, Propose, Accepted, Install and Entered; one round more for the one that does not answer."""
    hand = Hand(64, patience=8, suspected_patience=2)
    hand.give(0, Suspect(1 << 63))
    others = range(1, 63)
    hand.reports(0, *others)
    hand.choose(0)
    hand.choose(0)
    hand.accept(0, *range(1, 33))
    hand.install(0, *others)
    assert {hand.view_of(number).count(",") for number in range(63)} == {62}
    sizes = [(1 if to is not None else 63) for _, _, to, unit in hand.sent if isinstance(unit, CONTROL_UNITS)]
    suspicions = 2
    assert sum(sizes) <= 6 * 63 + 63 + suspicions
    largest = max(unit.size() for _, _, _, unit in hand.sent if isinstance(unit, CONTROL_UNITS))
    assert largest < 1400, "each fits into one datagram"
