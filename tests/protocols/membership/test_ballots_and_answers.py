"""When a ballot begins, goes on or is begun anew, and what is answered by whom; each by one input."""

from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.machine import Discard, TimerFired
from ordercast.protocols.membership.coordinator import FETCH_ROUNDS
from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.events import (
    ChangeView,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
    SendControl,
    SendOutside,
)
from ordercast.protocols.membership.joiner import Waits
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import (
    Accepted,
    Answer,
    Entered,
    Fetch,
    Find,
    Flush,
    Found,
    Install,
    Leave,
    Probe,
    Report,
    Welcome,
)
from ordercast.protocols.membership.view import NextView, Reason
from ordercast.protocols.sequencer.units import Broadcast
from tests.protocols.membership.hand import Hand, sent
from tests.protocols.membership.test_membership_joining import applied, joiner

# --- ballots ---


def test_a_ballot_says_why_it_began() -> None:
    hand = Hand(3)
    outputs = hand.give(1, ChangeView("a stall"))
    assert [flush.why for _, flush in sent(outputs, Flush)] == ["a stall"]


def test_a_coordinator_that_is_asked_for_another_view_goes_on_with_its_ballot() -> None:
    hand = Hand(3)
    hand.give(1, ChangeView("a stall"))
    assert hand.give(1, ChangeView("another one")) == []
    assert hand.members[1].acceptor.promised == (1, 1)


def test_a_member_that_follows_another_ballot_begins_its_own_when_it_is_asked_to() -> None:
    hand = Hand(3)
    hand.flush(0, 1)
    outputs = hand.give(1, ChangeView("a stall"))
    assert [flush.ballot for _, flush in sent(outputs, Flush)] == [(2, 1)]


def fetching() -> Hand:
    """2 has chosen a view, and lacks x, which 1 reported."""
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.submit(0, "x")
    hand.passes(Broadcast, 0, 1)
    hand.flush(2, 1)
    hand.choose(2)
    assert [to for to, _ in sent(hand.last, Fetch)] == [1]
    return hand


def test_a_coordinator_that_fetches_has_a_proposal_and_counts_no_more_reports() -> None:
    hand = fetching()
    hand.passes(Flush, 2, 0)
    outputs = hand.passes(Report, 0, 2)
    assert [output.why for output in outputs if isinstance(output, Discard)] == ["old"]
    assert sorted(hand.members[2].coordinator.reports) == [1, 2]


def test_a_coordinator_that_cannot_fetch_begins_anew_after_some_rounds() -> None:
    """Until then it tells all others that it is there, and asks again."""
    hand = fetching()
    for _ in range(FETCH_ROUNDS):
        outputs = hand.give(2, TimerFired("view.round"))
        assert [(to, flush.ballot, flush.heard) for to, flush in sent(outputs, Flush)] == [(None, (1, 2), 0b111)]
        assert [to for to, _ in sent(outputs, Fetch)] == [1]
    outputs = hand.give(2, TimerFired("view.round"))
    assert [flush.ballot for _, flush in sent(outputs, Flush)] == [(2, 2)]


def test_the_same_broken_link_is_a_reason_once() -> None:
    hand = Hand(3)
    coordinator = hand.members[2].coordinator
    out: list[Any] = []
    coordinator.unheard(0, 0b010, "0 does not hear 1", out)
    assert out
    assert coordinator.unheard(1, 0b001, "1 does not hear 0", out) is None
    assert coordinator.why == "0 does not hear 1"
    coordinator.unheard(1, 0b101, "1 hears nobody", out)
    assert coordinator.why == "1 hears nobody"


def test_one_that_leaves_waits_if_those_that_are_not_suspected_would_be_too_few() -> None:
    for suspects, stopped in ((0, True), (0b100, False)):
        hand = Hand(3, least=2)
        hand.members[1].coordinator.suspects = suspects
        hand.give(1, ReceiveControl(Leave(0, 0)))
        assert hand.members[1].stopped is stopped


def test_applicants_that_could_not_enter_a_round_ago_may_enter_now() -> None:
    """Of three members with 7, two must have the state."""
    hand = Hand(2)
    hand.members[0].applicants.stateless = 0b10
    hand.apply(7, 0)
    hand.give(0, TimerFired("view.applicants"))
    assert not hand.members[0].stopped
    hand.members[0].applicants.stateless = 0
    hand.give(0, TimerFired("view.applicants"))
    assert hand.members[0].stopped


# --- the view before ---


def entered() -> Hand:
    """0 and 1 are in the next view."""
    hand = Hand(3)
    hand.flush(0, 1)
    value = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), Cut((0, 0, 0)), 0, (), 3, "")
    hand.give(1, ReceiveControl(Install(0, 0, value)))
    assert hand.view_of(1) == "0,1"
    return hand


@pytest.mark.parametrize(
    ("unit", "why"),
    [
        (Accepted(0, 2, (1, 0)), "old"),
        (Entered(0, 2, True, None), "old"),
        (Leave(0, 3), "its source is no member"),
    ],
)
def test_what_says_nothing_any_more_from_the_view_before_is_discarded(unit: Any, why: str) -> None:
    hand = entered()
    assert hand.give(1, ReceiveControl(unit)) == [Discard(unit, why)]


# --- those outside ---


def test_a_member_that_applies_again_later_is_not_welcomed_again() -> None:
    """It was welcomed when it joined; what it asks now was on its way since then."""
    hand = Hand(3)
    outputs = hand.apply(2, 0)
    assert [output.why for output in outputs if isinstance(output, Discard)] == ["old"]
    assert not [output for output in outputs if isinstance(output, SendOutside)]


def test_a_member_that_joined_and_asks_a_blocked_one_is_welcomed() -> None:
    """It applies at nobody that is blocked, and it may be the one that is lacking here."""
    hand = Hand(1)
    hand.apply(7, 0)
    assert hand.view_of(0) == "0,7"
    find = Find("g", "n7", 7, 5)
    for blocked, kinds in ((False, [Found]), (True, [Found, Welcome])):
        hand.members[0].blocking.blocked = blocked
        outputs = hand.give(0, ReceiveOutside(replace(find, nonce=5 + blocked), "address 7"))
        assert [type(output.unit) for output in outputs if isinstance(output, SendOutside)] == kinds
    outputs = hand.give(0, ReceiveOutside(replace(find, name="n8", incarnation=8), "address 8"))
    assert [type(output.unit) for output in outputs if isinstance(output, SendOutside)] == [Found]


def test_who_joins_knows_who_was_a_member_before_and_refuses_it() -> None:
    hand = Hand(3)
    hand.apply(7, 0)
    hand.reports(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1,7"
    hand.welcome(7)
    assert [one.number for one in hand.members[7].current.departed] == [2]
    outputs = hand.apply(2, 7)
    [answer] = [output.unit for output in outputs if isinstance(output, SendOutside)]
    assert isinstance(answer, Answer)
    assert answer.refused


def test_one_that_looks_for_the_group_anew_says_so() -> None:
    one = joiner()
    applied(one)
    outputs: list[Any] = []
    while one.found is not None:
        outputs = one.handle(TimerFired("join.apply"))
    assert outputs[0] == Waits("no member answers")
    assert not isinstance(outputs[1], SendControl | Answer)


@pytest.mark.parametrize(
    ("blocked", "why"),
    [(False, "the group takes it in soon"), (True, "n0 is cut off from too many members of view 0")],
)
def test_one_that_applies_is_told_whether_the_member_can_take_it_in(blocked: bool, why: str) -> None:
    hand = Hand(3)
    hand.members[0].blocking.blocked = blocked
    answers = [output.unit for output in hand.apply(7, 0) if isinstance(output, SendOutside)]
    assert [unit.why for unit in answers if isinstance(unit, Answer)] == [why]


def test_one_that_joined_and_cannot_go_on_tells_its_view_to_those_that_it_never_heard_in_it() -> None:
    """They may be in the view before, whose tag it does not know. Who was in that view sends under its tag."""
    hand = Hand(1)
    hand.apply(7, 0)
    hand.welcome(7)
    for number, told in ((7, ["address 0"]), (0, [])):
        hand.give(number, ChangeView("a stall"))
        outputs = hand.give(number, TimerFired("view.blocked"))
        welcomes = [output for output in outputs if isinstance(output, SendOutside) and type(output.unit) is Welcome]
        assert [welcome.address for welcome in welcomes] == told


def test_members_of_the_view_before_are_answered_and_no_others() -> None:
    hand = entered()
    assert [to for to, _ in sent(hand.give(1, OtherView(2)), Install)] == [2]
    assert hand.give(1, OtherView(3)) == []
    assert hand.give(1, OtherView(-1)) == []


def test_one_that_goes_on_and_tells_the_view_hears_who_has_entered_it() -> None:
    hand = entered()
    value = hand.members[1].current.value
    assert value is not None
    assert [to for to, _ in sent(hand.give(1, ReceiveControl(Install(0, 0, value))), Entered)] == [0]
    assert hand.give(1, ReceiveControl(Install(0, 2, value))) == [], "it is not in the view"


def test_who_has_no_state_is_asked_for_it_while_somebody_wants_to_join() -> None:
    hand = Hand(2)
    hand.members[0].applicants.stateless = 0b10
    assert sent(hand.give(0, TimerFired("view.applicants")), Probe) == []
    hand.apply(7, 0)
    assert [to for to, _ in sent(hand.give(0, TimerFired("view.applicants")), Probe)] == [1]
