"""The schedules V1 to V6, V10 to V18 and V25 of the membership rules: each shows what goes wrong without one rule.

They pass with the rules; tests/mutations/semantic/membership.py takes each rule out, and a script here notices.
"""

from typing import Any

import pytest

from ordercast.model.machine import Receive, TimerFired
from ordercast.protocols.membership.events import InstallView, StateLoaded
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import (
    Accepted,
    Answer,
    Fetch,
    Flush,
    Install,
    Leave,
    Propose,
    Report,
    Supply,
    Welcome,
)
from ordercast.protocols.membership.view import Incarnation, Reason
from ordercast.protocols.sequencer.units import Acknowledgment, Broadcast
from tests.protocols.membership.hand import Hand, person


def test_v1_who_has_promised_gives_its_epoch_no_inputs() -> None:
    hand = Hand(3)
    hand.submit(0, "x")
    hand.takes(0, "x")
    hand.takes(1, "x")
    hand.flush(0, 2)
    hand.choose(0)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,2"
    hand.takes(2, "x")
    hand.sees(1, 0, 2)
    assert hand.in_view(1, 0) == hand.in_view(0, 0) == []


def test_v2_a_view_needs_a_quorum() -> None:
    hand = Hand(3)
    for number in (0, 1):
        hand.flush(number)
        hand.choose(number)
    hand.check_one_view()
    assert hand.view_of(0) == hand.view_of(1) == "0,1,2"


def test_v3_place_0_of_the_view_breaks_the_tie() -> None:
    hand = Hand(4)
    for number in (2, 0):
        hand.flush(number, number + 1)
        hand.choose(number)
        hand.passes_if_sent(Propose, number, number + 1)
        hand.passes_if_sent(Accepted, number + 1, number)
    hand.check_one_view()
    assert hand.view_of(0) == "0,1"
    assert hand.view_of(2) == "0,1,2,3"


def test_v4_an_accepted_value_is_proposed_again() -> None:
    hand = Hand(3)
    hand.flush(0, 2)
    hand.choose(0)
    hand.flush(1, 0)
    hand.choose(1)
    hand.accept(1, 0)
    hand.accept(0, 2)
    hand.check_one_view()
    assert hand.view_of(0) == "0,2"
    assert hand.told[1][-1] == "Excluded"


def test_v4_of_several_accepted_values_that_of_the_highest_ballot_counts() -> None:
    hand = Hand(5)
    hand.flush(0, 1, 2)
    hand.choose(0)
    assert hand.members[0].acceptor.accepted is not None
    hand.flush(1, 2, 3)
    hand.choose(1)
    hand.accept(1, 2, 3)
    assert hand.view_of(1) == "1,2,3"
    hand.members[4].acceptor.highest_round = 2
    hand.flush(4, 0, 3)
    hand.choose(4)
    hand.passes(Propose, 4, 0)
    hand.passes_if_sent(Accepted, 0, 4)
    hand.passes(Propose, 4, 3)
    hand.passes_if_sent(Accepted, 3, 4)
    assert hand.told[4][-1] == "Excluded"
    hand.install(4, 0)
    hand.check_one_view()
    assert hand.told[0][-1] == "Excluded"


def test_v5_a_new_incarnation_is_nobody_in_the_view() -> None:
    hand = Hand(3)
    again = Incarnation("n0", 99, "address 0")
    assert hand.view.place_of(again) is None
    with pytest.raises(AssertionError, match="no member"):
        MembershipMachine(again, hand.view, hand.order, hand.config, hand.settings)
    hand.apply(again, 1)
    assert hand.members[1].current.view.place_of(again) is None
    assert not any(isinstance(unit, Welcome) for _, unit in hand.outside)


def test_v6_a_coordinator_has_accepted_before_it_proposes() -> None:
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.submit(0, "x")
    hand.flush(1, 0)
    hand.choose(1)
    assert hand.find(Fetch, 1, 0) is not None
    hand.flush(2, 1)
    hand.choose(2)
    hand.accept(2, 1)
    assert hand.view_of(2) == "1,2"
    hand.passes_if_sent(Propose, 1, 0)
    hand.passes_if_sent(Accepted, 0, 1)
    hand.check_one_view()
    assert hand.view_of(1) == "0,1,2"
    hand.install(2, 1)
    hand.check_one_view()


def _epoch_with_rest() -> Hand:
    """w is with both, x with nobody, y waits."""
    hand = Hand(2)
    hand.submit(0, "w")
    hand.submit(0, "x")
    hand.takes(0, "w")
    hand.takes(1, "w")
    hand.flush(0)
    hand.submit(0, "y")
    hand.reports(0, 1)
    hand.accept(0, 1)
    hand.install(0, 1)
    return hand


def test_v10_own_packets_from_the_cut_on_are_sent_again_in_their_order() -> None:
    hand = _epoch_with_rest()
    hand.settle(0, 1)
    assert [hand.in_view(number, 1) for number in (0, 1)] == [["x", "y"], ["x", "y"]]
    assert [hand.in_view(number, 0) for number in (0, 1)] == [["w"], ["w"]]
    machine: Any = hand.members[0].machine
    assert [packet.first for packet in machine.own] == [1, 2], "message numbers go on"


def test_v11_and_v12_the_view_stands_between_the_epochs() -> None:
    hand = _epoch_with_rest()
    assert hand.told[0] == ["view 0: 0,1", "(w)", "(x)", "w", "view 1: 0,1", "(x)", "(y)"]
    assert hand.told[1] == ["view 0: 0,1", "w", "view 1: 0,1"]


def test_v12_a_donor_takes_the_state_at_the_place_of_the_view() -> None:
    hand = Hand(2)
    hand.submit(0, "w")
    hand.submit(0, "x")
    hand.takes(0, "w")
    hand.takes(1, "w")
    for number in (0, 1):
        hand.apply(2, number)
    hand.flush(0, 1)
    [view] = [output for output in hand.last if isinstance(output, InstallView)]
    assert view.gives_state
    assert view.value is not None
    assert (view.value.donors, view.value.stateless) == ((1, 0), 0b100)
    state = hand.told[0][: hand.told[0].index("view 1: 0,1,2")]
    hand.install(0, 1)
    hand.welcome(2)
    hand.settle(0, 1, 2)
    assert [row for row in state if len(row) == 1] + hand.in_view(2, 1) == ["w", "x"]
    assert hand.in_view(0, 0) + hand.in_view(0, 1) == ["w", "x"]


def test_v13_who_is_excluded_still_tells_the_view() -> None:
    hand = Hand(5)
    hand.flush(0, 1, 2)
    hand.choose(0)
    hand.accept(0, 1, 3)
    hand.install(0, 3)
    assert hand.told[3][-1] == "Excluded"
    # 0 and 4 have crashed: nobody else knows that the view is decided
    hand.flush(1, 2)
    hand.choose(1)
    assert hand.view_of(1) == "0,1,2,3,4"
    hand.passes(Flush, 1, 3)
    hand.passes(Install, 3, 1)
    assert hand.view_of(1) == "0,1,2"
    hand.flush(2)
    hand.passes(Flush, 2, 1)
    hand.passes(Install, 1, 2)
    assert hand.view_of(2) == "0,1,2"
    hand.check_one_view()


def test_v14_of_the_new_view_nobody_is_asked() -> None:
    hand = Hand(4)
    for applicant in (4, 6):
        hand.apply(applicant, 0)
    hand.members[2].applicants.restore(hand.members[0].applicants.snapshot())
    hand.flush(2, 0, 1)
    hand.choose(2)
    hand.passes(Propose, 2, 0)
    # 2 has crashed
    hand.flush(0, 1, 3)
    hand.choose(0)
    hand.accept(0, 1)
    hand.passes_if_sent(Propose, 0, 3)
    hand.passes_if_sent(Accepted, 3, 0)
    assert hand.view_of(0) == "0,1,2,4,6"


def test_v15_those_with_state_stay_a_quorum_when_others_join() -> None:
    hand = Hand(1)
    hand.apply(1, 0)
    hand.apply(2, 0)
    hand.flush(0)
    assert hand.view_of(0) == "0,1"
    hand.welcome(1)
    assert not hand.members[1].current.has_state
    hand.give(1, StateLoaded())
    hand.apply(2, 0)
    hand.apply(3, 0)
    hand.flush(0, 1)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1,2,3"
    value = hand.members[0].current.value
    assert value is not None
    assert (value.stateless, value.donors) == (0b1100, (1, 0))


def _stateless(hand: Hand, *numbers: int) -> None:
    for number in numbers:
        hand.members[number].current.has_state = False


def test_v16a_who_leaves_stays_while_no_other_has_the_state() -> None:
    hand = Hand(4)
    _stateless(hand, 2, 3)
    hand.leave(0)
    hand.passes(Leave, 0, 2)
    hand.flush(2, 0, 3)
    hand.choose(2)
    hand.accept(2, 0)
    hand.accept(2, 3)
    assert hand.view_of(2) == "0,2"
    assert hand.members[2].current.value is not None
    assert hand.members[2].current.value.left == ((1, Reason.SILENT), (3, Reason.STATELESS))


def test_v16b_those_with_state_are_a_quorum_of_every_view() -> None:
    hand = Hand(5)
    _stateless(hand, 3, 4)
    hand.flush(0, 3, 4)
    hand.choose(0)
    hand.accept(0, 3, 4)
    assert hand.view_of(0) == "0,3"
    hand.install(0, 3, 4)
    assert hand.told[4][-1] == "Excluded"
    # 0 crashes: the state is with nobody that could go on
    hand.flush(3)
    hand.choose(3)
    if 4 in hand.members and hand.view_of(4) == hand.view_of(3):
        hand.reports(3, 4)
        hand.choose(3)
        hand.passes_if_sent(Propose, 3, 4)
        hand.passes_if_sent(Accepted, 4, 3)
    assert hand.view_of(3) == "0,3"


def test_v17_who_leaves_waits_until_its_own_messages_have_arrived() -> None:
    hand = Hand(3)
    hand.submit(2, "x")
    hand.leave(2)
    if hand.find(Leave, 2, 0) is None:  # it waits
        for number in (0, 1, 2):
            hand.takes(number, "x")
        hand.sees(2, 0, 1)
        hand.give(2, TimerFired("view.leave"))
    hand.passes(Leave, 2, 0)
    hand.reports(0, 1, 2)
    hand.accept(0, 1)
    hand.install(0, 1, 2)
    assert hand.view_of(0) == "0,1"
    assert hand.told[2][-1] == "LeftGroup"
    assert hand.in_view(0, 0) == hand.in_view(1, 0) == hand.in_view(2, 0) == ["x"]


def test_v17_who_cannot_wait_leaves_at_once() -> None:
    hand = Hand(3)
    hand.submit(2, "x")
    hand.leave(2, drain=True)
    assert hand.find(Leave, 2, 0) is None
    hand.leave(2, drain=False)
    assert hand.find(Leave, 2, 0) is not None


def test_v18_what_is_fetched_is_put_aside() -> None:
    hand = Hand(5, order_of("sequencer"), resilience=2)
    hand.submit(0, "x")
    first = hand.find(Broadcast, 0, 1)
    hand.submit(0, "y")
    hand.give(1, Receive(first))  # type: ignore[arg-type]
    hand.passes(Broadcast, 0, 1)
    hand.flush(2, 1, 3)
    hand.choose(2)
    hand.passes(Fetch, 2, 1)
    supplies = [unit for _, _, _, unit in hand.sent if isinstance(unit, Supply)]
    assert [unit.number for unit in supplies] == [0, 1]
    before = hand.members[2].machine.snapshot()
    hand.give(2, hand._event(supplies[0]))
    assert hand.members[2].machine.snapshot() == before
    # 0 has not stopped; whoever says to hold x is counted
    for number in (1, 2):
        hand.passes_if_sent(Acknowledgment, number, 0)
    hand.give(0, Receive(Acknowledgment(0, 1, 2)))
    hand.flush(3, 2, 4)
    hand.choose(3)
    hand.accept(3, 2, 4)
    assert hand.view_of(3) == "2,3,4"
    assert hand.in_view(0, 0) == hand.in_view(3, 0) == []


def test_v18_an_acceptor_puts_aside_what_it_fetches_for_a_ballot_that_loses() -> None:
    """1 proposes a cut with x and y; 2 has fetched x when 3 overrules it, and chooses without 0 and 1."""
    hand = Hand(5, order_of("sequencer"), resilience=2)
    hand.submit(0, "x")
    first = hand.find(Broadcast, 0, 1)
    hand.submit(0, "y")
    hand.give(1, Receive(first))  # type: ignore[arg-type]
    hand.passes(Broadcast, 0, 1)
    hand.give(0, Receive(Acknowledgment(0, 1, 2)))  # one of the two holders that x needs
    hand.flush(1, 2, 3)
    hand.choose(1)
    hand.passes(Propose, 1, 2)
    hand.passes(Fetch, 2, 1)
    supplies = [unit for _, _, _, unit in hand.sent if isinstance(unit, Supply)]
    before = hand.members[2].machine.snapshot()
    hand.give(2, hand._event(supplies[0]))
    assert hand.members[2].machine.snapshot() == before
    assert list(hand.members[2].acceptor.supplied) == [0]
    hand.passes_if_sent(Acknowledgment, 2, 0)
    assert hand.in_view(0, 0) == [], "0 delivers x when two others hold it, and only 1 does"
    hand.flush(3, 2, 4)
    report = hand.find(Report, 2, 3)
    assert report is not None
    assert (report.report.numbered_below, report.accepted) == (0, None), "no later report names what was fetched"
    hand.choose(3)
    hand.accept(3, 2, 4)
    hand.install(3, 2, 4)
    assert [hand.view_of(number) for number in (2, 3, 4)] == ["2,3,4"] * 3
    assert [hand.told[number][1:] for number in (2, 3, 4)] == [["view 1: 2,3,4"]] * 3, "x and y are in no view"
    assert not hand.members[2].acceptor.supplied, "it is dropped with the epoch"


def test_what_is_fetched_is_delivered_with_the_view() -> None:
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.submit(0, "x")
    hand.passes(Broadcast, 0, 1)
    hand.flush(2, 1)
    hand.choose(2)
    hand.passes(Fetch, 2, 1)
    hand.passes(Supply, 1, 2)
    hand.accept(2, 1)
    hand.install(2, 1)
    assert hand.in_view(1, 0) == hand.in_view(2, 0) == ["x"]


def test_a_member_that_is_told_late_fetches_from_one_that_has_gone_on() -> None:
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.submit(0, "x")
    hand.flush(0, 1, 2)
    hand.passes(Propose, 0, 1)
    hand.passes(Fetch, 1, 0)
    hand.passes(Supply, 0, 1)
    hand.passes(Accepted, 1, 0)
    hand.install(0, 1)
    hand.passes(Install, 0, 2)
    assert hand.view_of(2) == "0,1,2"
    assert hand.in_view(2, 0) == []
    hand.passes(Fetch, 2, 0)
    hand.passes(Supply, 0, 2)
    assert hand.in_view(2, 0) == hand.in_view(0, 0) == ["x"]
    assert [len(hand.views[number]) for number in range(3)] == [2, 2, 2]


def test_v25_an_incarnation_enters_once() -> None:
    hand = Hand(3)
    hand.apply(9, 0)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    hand.install(0, 1, 2)
    assert hand.view_of(0) == "0,1,2,9"
    hand.outside.clear()
    hand.apply(9, 0)
    assert [type(unit) for _, unit in hand.outside] == [Welcome], "the welcome was lost"
    hand.flush(0, 1, 2)
    hand.choose(0)
    hand.accept(0, 1, 2)
    hand.install(0, 1, 2)
    assert hand.view_of(0) == "0,1,2"
    hand.outside.clear()
    hand.apply(9, 0)
    [(_, answer)] = hand.outside
    assert isinstance(answer, Answer)
    assert answer.refused
    assert "new incarnation" in answer.why
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1,2"
    assert person(9).number not in {member.number for member in hand.members[0].current.view.members}


def test_a_later_coordinator_learns_of_a_decision_from_reports() -> None:
    """R8: 0 and 1 have accepted in a ballot of 2, which is dead: with its owner that is a quorum of five."""
    hand = Hand(5)
    hand.flush(2, 0, 1)
    hand.choose(2)
    hand.passes(Propose, 2, 0)
    hand.passes(Propose, 2, 1)
    hand.flush(0)
    hand.passes(Flush, 0, 1)
    hand.passes(Report, 1, 0)
    assert hand.view_of(0) == "0,1,2"


def test_who_learns_of_a_decision_fetches_from_one_that_reported_it() -> None:
    hand = Hand(5, order_of("sequencer"), resilience=2)
    hand.submit(0, "x")
    hand.passes(Broadcast, 0, 1)
    hand.flush(1, 2, 3)
    hand.choose(1)
    hand.passes(Propose, 1, 0)
    hand.passes(Propose, 1, 2)
    hand.passes(Fetch, 2, 1)
    hand.passes(Supply, 1, 2)
    # 1 has crashed; 0, 1 and 2 have accepted
    hand.flush(3, 2, 0)
    assert hand.view_of(3) == "0,1,2,3,4"
    hand.passes(Fetch, 3, 0)
    hand.passes(Supply, 0, 3)
    assert hand.view_of(3) == "1,2,3"
    assert hand.in_view(3, 0) == ["x"]
