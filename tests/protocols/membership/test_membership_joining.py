"""Joining: the joiner, and what members answer it."""

from typing import Any

import msgspec
import pytest

from ordercast.model.machine import Discard, SetTimer, TimerFired
from ordercast.protocols.membership.events import ReceiveOutside, SendOutside, StateLoaded
from ordercast.protocols.membership.joiner import Joined, Joiner, Refused, Waits
from ordercast.protocols.membership.units import Answer, Apply, Entered, Find, Found, Leave, Probe, Welcome
from ordercast.protocols.membership.view import Incarnation, Reason, founding_view
from tests.protocols.membership.hand import SETTINGS, Hand, person

ME = person(7)


def joiner(*contacts: str, **options: Any) -> Joiner:
    return Joiner(ME, "g", contacts or ("address 0",), 1000, SETTINGS, **options)


def sent(outputs: list[Any], kind: type) -> list[Any]:
    return [(each.address, each.unit) for each in outputs if isinstance(each, SendOutside) and type(each.unit) is kind]


def found(place: int = 0, view: int = 0, nonce: int = 1001, **fields: Any) -> Found:
    unit = Found(
        *("g", "n7", 7, nonce, person(place), view, place, False, False),
        *(("address 0", "address 1", "address 2"), 0, 0),
    )
    return msgspec.structs.replace(unit, **fields)


def hears(one: Joiner, unit: Any) -> list[Any]:
    return one.handle(ReceiveOutside(unit, "somewhere"))


# --- the joiner ---


def test_it_asks_all_contacts_again_and_again_with_new_numbers() -> None:
    one = joiner("address 0", "address 4")
    first = one.begin()
    assert [(address, unit.nonce) for address, unit in sent(first, Find)] == [("address 0", 1001), ("address 4", 1001)]
    waits = []
    for _ in range(9):
        outputs = one.handle(TimerFired("join.find"))
        waits += [each.after for each in outputs if isinstance(each, SetTimer)]
    assert waits[0] < waits[3] < waits[6]
    assert max(waits) < 4_000_000_000
    assert one.searches == 10


@pytest.mark.parametrize(("own", "applied_with"), [(None, ("a", "b")), (("a", "c"), ("a", "c"))])
def test_it_applies_with_its_own_terms_or_with_those_of_the_group(own: Any, applied_with: Any) -> None:
    one = joiner(terms=own)
    one.begin()
    alone = found(0, addresses=("address 0",), terms=("a", "b"))
    [(_, apply)] = sent(hears(one, alone), Apply)
    assert apply.terms == applied_with


def test_it_applies_when_it_has_reached_every_member() -> None:
    one = joiner()
    one.begin()
    asked = hears(one, found(0))
    assert [address for address, _ in sent(asked, Find)] == ["address 1", "address 2"]
    assert sent(hears(one, found(1)), Apply) == []
    [(address, apply)] = sent(hears(one, found(2)), Apply)
    assert (address, apply.applicant, apply.to, apply.reached) == ("address 0", ME, 0, 0b111)


def test_it_takes_the_highest_view_and_none_that_is_blocked() -> None:
    one = joiner()
    one.begin()
    assert [type(each) for each in hears(one, found(0, blocked=True))] == [Discard, Waits]
    hears(one, found(0, view=3))
    hears(one, found(1, view=2))
    assert one.found is not None
    assert (one.found.view, one.reached) == (3, 0b001)
    hears(one, found(2, view=4))
    assert (one.found.view, one.reached) == (4, 0b100)


def test_it_follows_the_member_that_it_is_sent_to() -> None:
    one = joiner()
    one.begin()
    for place in range(3):
        hears(one, found(place))
    [(address, apply)] = sent(hears(one, found(0, apply_at=1, to=1)), Apply)
    assert (address, apply.to) == ("address 1", 1)


@pytest.mark.parametrize(
    "unit",
    [
        found(nonce=1002),
        found(nonce=999),
        found(incarnation=8),
        found(name="n8"),
        found(group="other"),
        found(place=5),
        found(apply_at=9),
        found(addresses=()),
        Answer(8, 1001, True, "", 0),
        Answer(7, 5000, True, "", 0),
        Find("g", "n7", 7, 1001),
    ],
)
def test_it_takes_no_answers_to_other_questions(unit: Any) -> None:
    one = joiner()
    one.begin()
    before = one.snapshot()
    assert [type(each) for each in hears(one, unit)] == [Discard]
    assert one.snapshot() == before


def test_it_looks_anew_when_nobody_answers() -> None:
    one = joiner()
    one.begin()
    for place in range(3):
        hears(one, found(place))
    outputs: list[Any] = []
    for _ in range(40):
        outputs = one.handle(TimerFired("join.apply"))
        if one.found is None:
            break
        assert len(sent(outputs, Apply)) == 1
    assert one.found is None
    assert "address 2" in [address for address, _ in sent(outputs, Find)]
    assert one.handle(TimerFired("join.apply")) == []


def test_an_answer_keeps_it_waiting_and_tells_whom_to_reach() -> None:
    one = joiner()
    one.begin()
    for place in range(3):
        hears(one, found(place))
    outputs = hears(one, Answer(7, 1001, False, "it does not reach n2", 0b100))
    assert outputs[-1] == Waits("it does not reach n2")
    assert [address for address, _ in sent(outputs, Find)] == ["address 2"]
    assert one.reached == 0b011


def test_it_ends_when_it_is_refused_or_welcomed() -> None:
    one = joiner()
    one.begin()
    assert hears(one, Answer(7, 1001, True, "no", 0))[-1] == Refused("no")
    assert hears(one, found(0)) == []
    assert one.handle(TimerFired("join.find")) == []


def test_a_welcome_names_the_incarnation() -> None:
    hand = Hand(1)
    hand.apply(7, 0)
    hand.flush(0)
    [(address, welcome)] = hand.outside[-1:]
    assert address == "address 7"
    one = joiner()
    one.begin()
    other = msgspec.structs.replace(welcome, incarnation=8)
    assert [type(each) for each in hears(one, other)] == [Discard]
    broken = msgspec.structs.replace(welcome, source=9)
    assert [type(each) for each in hears(one, broken)] == [Discard]
    assert hears(one, welcome)[-1] == Joined(welcome)
    assert hears(one, welcome) == [], "it is a member, and no joiner any more"


# --- members ---


def answers(hand: Hand, kind: type) -> list[Any]:
    return sent(hand.last, kind)


def test_each_question_is_answered_once() -> None:
    hand = Hand(2)
    find = Find("g", "n7", 7, 1001)
    hand.give(1, ReceiveOutside(find, "address 7"))
    [(address, unit)] = answers(hand, Found)
    assert address == "address 7"
    assert (unit.view, unit.place, unit.apply_at, unit.to, unit.is_member) == (0, 1, 0, 0, False)
    assert unit.addresses == ("address 0", "address 1")
    assert [type(each) for each in hand.give(1, ReceiveOutside(find, "address 7"))] == [Discard]
    other = Find("other", "n7", 7, 1)
    assert [type(each) for each in hand.give(1, ReceiveOutside(other, "address 7"))] == [Discard]
    for nonce in range(100):
        hand.give(1, ReceiveOutside(Find("g", "n7", 7, nonce), "address 7"))
    assert len(hand.members[1].applicants.answered) == 64


def test_a_member_that_asks_is_told_that_it_is_one() -> None:
    hand = Hand(2)
    hand.give(0, ReceiveOutside(Find("g", "n1", 1, 5), "address 1"))
    assert answers(hand, Found)[0][1].is_member


def asks(hand: Hand, number: int, at: int) -> None:
    hand.give(at, ReceiveOutside(Find("g", f"n{number}", number, 1), f"address {number}"))


def timers_set(hand: Hand) -> set[str]:
    return {each.name for each in hand.last if isinstance(each, SetTimer)}


def test_a_ready_applicant_is_taken_in_at_once() -> None:
    """There is no timer on the way of one that comes alone."""
    hand = Hand(1)
    asks(hand, 7, 0)
    hand.apply(7, 0)
    [(_, answer)] = answers(hand, Answer)
    assert not answer.refused
    assert "view.gather" not in timers_set(hand)
    assert hand.view_of(0) == "0,7"
    assert [unit.incarnation for _, unit in answers(hand, Welcome)] == [7]


def test_who_has_asked_is_waited_for_a_little_and_one_view_takes_in_all() -> None:
    hand = Hand(1, has_state=False)
    asks(hand, 7, 0)
    asks(hand, 8, 0)
    hand.apply(7, 0)
    assert timers_set(hand) == {"view.applicants", "view.gather"}
    assert hand.view_of(0) == "0"
    hand.apply(8, 0)
    assert hand.view_of(0) == "0,7,8", "all that have asked are ready: nothing is waited for any more"


def test_one_that_only_asks_is_waited_for_once() -> None:
    hand = Hand(1)
    asks(hand, 8, 0)
    hand.apply(7, 0)
    assert hand.view_of(0) == "0"
    hand.give(0, TimerFired("view.gather"))
    assert hand.view_of(0) == "0,7"
    hand = Hand(2)
    asks(hand, 8, 0)
    hand.give(0, TimerFired("view.gather"))
    hand.apply(7, 0)
    assert "view.gather" not in timers_set(hand)
    assert hand.members[0].stopped


def test_a_member_that_asks_joins_nothing_and_is_not_waited_for() -> None:
    hand = Hand(2)
    asks(hand, 1, 0)
    hand.apply(7, 0)
    assert hand.members[0].stopped


def test_so_many_are_waited_for_and_no_more_are_remembered() -> None:
    hand = Hand(1)
    for number in range(100, 200):
        asks(hand, number, 0)
    assert len(hand.members[0].applicants.asking) == 64


def test_the_coordinator_alone_takes_applications() -> None:
    hand = Hand(2)
    hand.apply(7, 1)
    [(_, unit)] = answers(hand, Found)
    assert (unit.apply_at, unit.to, unit.nonce) == (0, 0, 7)
    assert hand.members[1].applicants.ready() == []


def test_an_application_to_another_incarnation_or_view_is_not_taken() -> None:
    hand = Hand(1)
    hand.apply(7, 0, view=3)
    assert [unit.view for _, unit in answers(hand, Found)] == [0]
    unit = Apply(ME, 99, 0, (), None, 1, 7)
    assert [type(each) for each in hand.give(0, ReceiveOutside(unit, "address 7"))] == [Discard]
    assert hand.members[0].applicants.ready() == []


def test_other_terms_are_refused_with_the_difference() -> None:
    hand = Hand(1)
    hand.apply(7, 0, terms=(("window", "4"),))
    [(_, answer)] = answers(hand, Answer)
    assert answer.refused
    assert answer.why == "window is None here, not 4"
    assert hand.members[0].applicants.ready() == []


def test_a_malformed_name_is_discarded() -> None:
    hand = Hand(1)
    for name in ("", "x" * 65, "a\nb"):
        assert [type(each) for each in hand.apply(Incarnation(name, 7, "address 7"), 0)] == [Discard]


def test_who_does_not_reach_all_is_told_whom() -> None:
    hand = Hand(3)
    hand.apply(7, 0, reached=0b101)
    [(_, answer)] = answers(hand, Answer)
    assert (answer.refused, answer.reach, answer.why) == (False, 0b010, "it does not reach n1")
    assert hand.members[0].applicants.ready() == []


def test_a_full_group_refuses() -> None:
    hand = Hand(64)
    hand.apply(99, 0)
    [(_, answer)] = answers(hand, Answer)
    assert answer.refused


AGAIN = Incarnation("n2", 70, "address 70")


def test_a_name_in_use_is_refused_when_its_member_answers() -> None:
    hand = Hand(3)
    hand.apply(AGAIN, 0)
    hand.passes(Probe, 0, 2)
    hand.passes(Entered, 2, 0)
    assert hand.members[0].applicants.ready() == []
    hand.apply(AGAIN, 0)
    [(_, answer)] = answers(hand, Answer)
    assert answer.refused
    assert answer.why == "the name n2 is in use"
    hand.apply(Incarnation("n0", 71, "address 71"), 0)
    assert answers(hand, Answer)[0][1].refused


def test_what_a_process_said_before_it_crashed_does_not_keep_its_next_incarnation_out() -> None:
    """It entered the view, said so, and crashed; the word arrives when its name is applied with, and probed."""
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    hand.install(0, 1, 2)
    hand.apply(AGAIN, 0, reached=0b011)
    assert [unit.applicant for _, _, to, unit in hand.sent if isinstance(unit, Probe) and to == 2] == [70]
    hand.passes(Entered, 2, 0)
    assert hand.members[0].applicants.ready() == [AGAIN]
    hand.outside.clear()
    hand.apply(AGAIN, 0, reached=0b011)
    [(_, answer)] = answers(hand, Answer)
    assert not answer.refused


def test_a_name_that_was_in_use_is_probed_for_the_next_one_that_applies_with_it() -> None:
    """Its member has answered once, and crashed since."""
    hand = Hand(3)
    hand.apply(AGAIN, 0, reached=0b011)
    hand.passes(Probe, 0, 2)
    hand.passes(Entered, 2, 0)
    later = Incarnation("n2", 71, "address 71")
    hand.apply(later, 0, reached=0b011)
    assert [unit.applicant for _, _, to, unit in hand.sent if isinstance(unit, Probe) and to == 2] == [70, 71]
    hand.passes(Entered, 2, 0)
    assert hand.members[0].applicants.ready() == [later], "the answer is to the first probe"
    for _ in range(4):
        hand.give(0, TimerFired("view.applicants"))
    assert hand.members[0].acceptor.promised == (1, 0), "it is suspected"


def test_of_two_that_apply_with_a_name_in_use_both_are_refused() -> None:
    hand = Hand(3)
    later = Incarnation("n2", 71, "address 71")
    hand.apply(AGAIN, 0, reached=0b011)
    hand.passes(Probe, 0, 2)
    hand.apply(later, 0, reached=0b011)
    hand.passes(Entered, 2, 0)
    assert hand.members[0].applicants.ready() == [later]
    assert 2 in hand.members[0].applicants.probing, "it has not answered for the second one yet"
    hand.passes(Probe, 0, 2)
    hand.passes(Entered, 2, 0)
    assert hand.members[0].applicants.ready() == []
    assert hand.members[0].applicants.probing == {}
    hand.passes(Entered, 2, 0)
    for one in (AGAIN, later):
        hand.outside.clear()
        hand.apply(one, 0, reached=0b011)
        assert answers(hand, Answer)[0][1].refused


def test_those_that_were_refused_are_remembered_up_to_a_number() -> None:
    hand = Hand(3)
    for number in range(70, 135):
        hand.apply(Incarnation("n2", number, f"address {number}"), 0, reached=0b011)
        hand.passes(Probe, 0, 2)
        hand.passes(Entered, 2, 0)
    assert list(hand.members[0].applicants.refused) == list(range(71, 135))


def test_a_name_whose_member_is_silent_is_replaced() -> None:
    hand = Hand(3)
    hand.apply(AGAIN, 0, reached=0b011)
    for _ in range(3):
        hand.give(0, TimerFired("view.applicants"))
        assert hand.members[0].acceptor.promised is None
    hand.give(0, TimerFired("view.applicants"))
    hand.reports(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    value = hand.members[0].current.value
    assert value is not None
    assert value.left == ((2, Reason.REPLACED),)
    assert [member.number for member in hand.members[0].current.view.members] == [0, 1, 70]


def test_who_replaces_the_oldest_applies_at_the_next_one() -> None:
    """It would coordinate, and is dead: nobody waits for a failure timeout to find out."""
    hand = Hand(3)
    again = Incarnation("n0", 70, "address 0")
    for name, at in (("n0", 1), ("n9", 0)):
        hand.give(1, ReceiveOutside(Find("g", name, 70, at), "somewhere"))
        [(_, unit)] = answers(hand, Found)
        assert (unit.apply_at, unit.to) == (at, at)
    hand.apply(again, 1, reached=0b110)
    for _ in range(4):
        hand.give(1, TimerFired("view.applicants"))
    hand.reports(1, 2)
    hand.choose(1)
    hand.accept(1, 2)
    value = hand.members[1].current.value
    assert value is not None
    assert value.left == ((0, Reason.REPLACED),)
    assert [member.number for member in hand.members[1].current.view.members] == [1, 2, 70]


def test_a_restarted_process_does_not_wait_for_an_answer_at_its_own_address() -> None:
    one = joiner("address 0")
    one.begin()
    hears(one, found(0, addresses=("address 0", "address 1", ME.address)))
    [(_, apply)] = sent(hears(one, found(1, addresses=("address 0", "address 1", ME.address))), Apply)
    assert apply.reached == 0b011


def test_an_application_that_is_not_repeated_is_forgotten() -> None:
    hand = Hand(2)
    hand.members[1].current.has_state = False
    hand.members[0].applicants.stateless = 0b10
    hand.apply(7, 0)
    for _ in range(101):
        hand.give(0, TimerFired("view.applicants"))
    assert hand.members[0].applicants.ready() == []


def test_an_applicant_that_may_not_enter_yet_waits_for_the_state_of_others() -> None:
    hand = Hand(2)
    hand.members[1].current.has_state = False
    hand.members[0].applicants.stateless = 0b10
    hand.apply(7, 0)
    assert not hand.members[0].stopped
    hand.give(0, TimerFired("view.applicants"))
    hand.passes(Probe, 0, 1)
    hand.passes(Entered, 1, 0)
    assert hand.members[0].applicants.stateless == 0b10
    hand.give(1, StateLoaded())
    hand.passes(Entered, 1, 0)
    assert hand.members[0].stopped, "the ballot for it has begun"


def test_the_oldest_applications_come_first() -> None:
    hand = Hand(2)
    for number in (9, 8, 7):
        hand.apply(number, 0)
    hand.apply(9, 0)
    hand.flush(0, 1)
    assert hand.view_of(0) == "0,1,9,8"


def test_no_more_than_64_apply_at_once() -> None:
    hand = Hand(1)
    for number in range(1, 80):
        hand.apply(number, 0)
    assert len(hand.members[0].applicants.ready()) == 64


def test_who_returns_is_told_what_became_of_its_packets() -> None:
    hand = Hand(3)
    hand.submit(2, "x")
    for number in (0, 1):
        hand.takes(number, "x")
    hand.flush(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    hand.install(0, 1)
    hand.apply(AGAIN, 0, old=2)
    hand.flush(0, 1)
    hand.accept(0, 1)
    welcome = next(unit for _, unit in reversed(hand.outside) if isinstance(unit, Welcome))
    assert welcome.end_of_old is not None
    assert (welcome.end_of_old.node, welcome.end_of_old.view, welcome.end_of_old.end) == (2, 1, 1)
    assert welcome.view.nodes == (0, 1, 3)


def test_a_view_that_cannot_be_one_is_seen() -> None:
    good = founding_view((person(0), person(1)), b"founding")
    assert good.is_well_formed()
    for change in (
        {"number": -1},
        {"members": ()},
        {"members": (person(0), person(0))},
        {"nodes": (0,)},
        {"nodes": (1, 0)},
        {"nodes": (-1, 0)},
        {"next_node": 1},
        {"tag": b"short"},
    ):
        assert not msgspec.structs.replace(good, **change).is_well_formed()


def applied(one: Joiner) -> None:
    """It has reached everybody, and applies."""
    one.begin()
    for place in range(3):
        hears(one, found(place))


def rounds_until_it_looks_anew(one: Joiner) -> int:
    count = 0
    while one.found is not None:
        one.handle(TimerFired("join.apply"))
        count += 1
    return count


def test_it_looks_anew_after_a_failure_timeout_without_any_word() -> None:
    """100 rounds; it applies every four."""
    one = joiner()
    applied(one)
    assert rounds_until_it_looks_anew(one) == 25


@pytest.mark.parametrize("word", [found(0), Answer(7, 1001, False, "soon", 0)])
def test_any_word_of_a_member_lets_it_wait_as_long_again(word: Any) -> None:
    one = joiner()
    applied(one)
    for _ in range(20):
        one.handle(TimerFired("join.apply"))
    hears(one, word)
    assert rounds_until_it_looks_anew(one) == 25


def test_an_answer_that_names_nobody_to_be_reached_is_only_told() -> None:
    one = joiner()
    applied(one)
    assert hears(one, Answer(7, 1001, False, "soon", 0)) == [Waits("soon")]
    assert one.reached == 0b111


def test_an_answer_to_one_that_has_not_found_the_group_is_only_told() -> None:
    one = joiner()
    one.begin()
    assert hears(one, Answer(7, 1001, False, "it does not reach n0", 0b001)) == [Waits("it does not reach n0")]


def test_a_welcome_to_a_view_without_it_is_discarded() -> None:
    """Its number is that of another name."""
    hand = Hand(1)
    hand.apply(Incarnation("n8", 7, "address 8"), 0)
    [(_, welcome)] = answers(hand, Welcome)
    one = joiner()
    one.begin()
    assert hears(one, welcome) == [Discard(welcome, "stray")]


def test_who_joins_knows_who_has_no_state_yet() -> None:
    hand = Hand(1)
    hand.apply(7, 0)
    hand.welcome(7)
    assert hand.members[7].applicants.stateless == 0b10


def test_a_coordinator_that_gets_the_state_takes_in_at_once_whoever_waited_for_that() -> None:
    """0 wants to leave, so that 7 coordinates; of three members two must have the state."""
    hand = Hand(1)
    hand.apply(7, 0)
    hand.welcome(7)
    hand.leave(0)
    hand.passes(Leave, 0, 7)
    hand.apply(8, 7)
    assert not hand.members[7].stopped
    hand.give(7, StateLoaded())
    assert hand.members[7].stopped


def test_applicants_keep_their_order_in_a_member_that_is_restored() -> None:
    hand = Hand(3, least=3)
    asks(hand, 99, 0)
    for number in (9, 7, 8):
        hand.apply(number, 0)
    before = [each.number for each in hand.members[0].applicants.ready()]
    hand.members[0].restore(hand.members[0].snapshot())
    assert [each.number for each in hand.members[0].applicants.ready()] == before == [9, 7, 8]
