"""Single rules of the membership protocol: who coordinates, what is repeated, who is answered, what is discarded."""

from typing import Any

import msgspec
import pytest

from ordercast.model.errors import ConfigError, LocalProtocolError
from ordercast.model.machine import (
    Discard,
    Drained,
    GiveUp,
    Numbered,
    Receive,
    SetTimer,
    Stopped,
    Submit,
    Suspect,
    TimerFired,
)
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.events import (
    Blocked,
    Excluded,
    LeaveGroup,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
    Retired,
    SendControl,
    SendOutside,
    Withdrawn,
)
from ordercast.protocols.membership.machine import Member, Phase
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import (
    CONTROL_UNITS,
    Accept,
    Entered,
    Fetch,
    Find,
    Flush,
    Found,
    Install,
    Leave,
    Overruled,
    Probe,
    Propose,
    Report,
    Supply,
    Suspicion,
    problem_of,
)
from ordercast.protocols.membership.view import (
    MembershipConfig,
    NextView,
    Reason,
    founding_view,
    is_possible,
    is_quorum,
    place_after,
    places_after,
    view_after,
)
from ordercast.protocols.spo.units import Data
from tests.protocols.membership.group import Group, disturb
from tests.protocols.membership.hand import Hand, person
from tests.protocols.membership.orders import ONE_STREAM, STREAMS

VIEW = founding_view(tuple(map(person, range(4))), b"founding")
VALUE = NextView(1, 0b1101, (person(7),), 0b1101, ((1, Reason.SILENT),), Cut((0, 0, 0, 0)), 0b1000, (2, 1), 5, "why")


def sent(outputs: list[Any], kind: type) -> list[Any]:
    return [
        (output.to, output.unit) for output in outputs if isinstance(output, SendControl) and type(output.unit) is kind
    ]


# --- views as values ---


@pytest.mark.parametrize(
    ("places", "size", "enough"),
    [
        *((0b1, 1, True), (0b1, 2, True), (0b10, 2, False), (0b11, 3, True), (0b1, 3, False), (0b11, 4, True)),
        *((0b110, 4, False), (0b1110, 4, True), (0b11, 5, False), (0, 1, False)),
    ],
)
def test_a_quorum_is_more_than_half_or_half_with_place_0(places: int, size: int, enough: bool) -> None:
    assert is_quorum(places, size) is enough


def test_any_two_quorums_of_a_view_have_a_member_in_common() -> None:
    for size in range(1, 7):
        quorums = [places for places in range(1 << size) if is_quorum(places, size)]
        assert all(one & other for one in quorums for other in quorums)


def test_the_next_view_appends_those_that_join() -> None:
    after = view_after(VIEW, VALUE)
    assert [member.name for member in after.members] == ["n0", "n2", "n3", "n7"]
    assert (after.number, after.nodes, after.next_node) == (1, (0, 2, 3, 4), 5)
    assert after.is_well_formed()
    assert after.tag != VIEW.tag
    assert len(after.tag) == 8
    assert places_after(VALUE.stay, 0b1011) == 0b101
    assert [place_after(VALUE, place) for place in (0, 2, 3)] == [0, 1, 2]


def test_the_tag_follows_from_the_whole_history() -> None:
    other = msgspec.structs.replace(VALUE, why="other")
    assert view_after(VIEW, other).tag != view_after(VIEW, VALUE).tag
    elsewhere = msgspec.structs.replace(VIEW, tag=b"elsewher")
    assert view_after(elsewhere, VALUE).tag != view_after(VIEW, VALUE).tag


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2},
        {"stay": 0b1111},
        {"heard": 0b0101, "stay": 0b0101, "left": ((1, Reason.SILENT), (2, Reason.SILENT))},
        {"heard": 0b11101},
        {"stay": 0b1100, "heard": 0b1100, "left": ((0, Reason.LEFT), (1, Reason.SILENT))},
        {"left": ()},
        {"left": ((1, Reason.SILENT), (1, Reason.SILENT))},
        {"next_node": 4},
        {"cut": Cut((0, 0, 0))},
        {"cut": Cut((0, 0, 0, -1))},
        {"cut": Cut((0, 0, 0, 0), base=(1,))},
        {"joined": (person(3),)},
        {"joined": (person(7), person(7)), "next_node": 6, "stateless": 0b11000},
        {"joined": (msgspec.structs.replace(person(7), name=""),)},
        {"stateless": 0b1110},
        {"stateless": 0b11000},
        {"donors": (3,)},
        {"donors": (0, 1, 2)},
        {"donors": (4,)},
        {"why": "x" * 1000},
        {"stay": -1},
    ],
)
def test_an_impossible_view_is_seen(change: dict[str, Any]) -> None:
    assert is_possible(VALUE, VIEW)
    assert not is_possible(msgspec.structs.replace(VALUE, **change), VIEW)


def test_all_that_leave_end_the_group() -> None:
    everybody = tuple((place, Reason.LEFT) for place in range(4))
    last = msgspec.structs.replace(
        VALUE, stay=0, joined=(), heard=0b1111, left=everybody, stateless=0, donors=(), next_node=4
    )
    assert is_possible(last, VIEW)
    assert not is_possible(msgspec.structs.replace(last, joined=(person(7),), next_node=5), VIEW)


@pytest.mark.parametrize(
    "change", [{"repeat": 0}, {"patience": -1}, {"suspected_patience": -1}, {"grace": -1}, {"least": 0}, {"least": 65}]
)
def test_an_impossible_configuration_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        MembershipConfig(**change)


# --- who coordinates ---


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


def test_with_a_static_majority_who_reaches_too_few_is_blocked() -> None:
    hand = Hand(5, least=4)
    hand.flush(0, 1, 2)
    assert Blocked(0b11000) in hand.give(0, TimerFired("view.blocked")), "three are a majority, and too few"
    hand.reports(0, 3)
    hand.choose(0)
    assert len(sent(hand.last, Propose)) == 1


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


def test_a_report_stays_the_same_in_every_ballot() -> None:
    hand = Hand(3)
    hand.submit(0, "x")
    hand.takes(2, "x")
    hand.flush(0, 2)
    hand.give(2, Receive(hand.sent[0][3]))
    hand.flush(1, 2)
    reports = [unit.report for _, by, _, unit in hand.sent if isinstance(unit, Report) and by == 2]
    assert reports == [EpochReport((1, 0, 0))] * 2


def test_alone_a_member_changes_its_view_at_once() -> None:
    hand = Hand(1)
    hand.submit(0, "x")
    hand.flush(0)
    assert hand.told[0] == ["view 0: 0", "(x)", "view 1: 0", "(x)"]
    hand.leave(0, drain=False)
    assert hand.told[0][-1] == "LeftGroup"


# --- the epoch and its submissions ---


def test_while_stopped_nothing_reaches_the_epoch_and_submissions_wait() -> None:
    hand = Hand(3)
    hand.flush(0, 1)
    before = hand.members[1].machine.snapshot()
    hand.submit(1, "x")
    for event in (Drained(), TimerFired("status"), GiveUp("why")):
        assert hand.give(1, event) == []
    assert hand.members[1].machine.snapshot() == before
    assert len(hand.members[1].waiting) == 1


def test_what_nobody_is_left_for_is_withdrawn() -> None:
    hand = Hand(3, STREAMS)
    hand.give(0, Submit(0b100, (1,), b"x"))
    hand.give(0, Submit(0b110, (1,), b"y"))
    hand.flush(0, 1)
    hand.give(0, Submit(0b101, (1,), b"z"))
    hand.choose(0)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1"
    assert [output.submit.payload for output in hand.last if isinstance(output, Withdrawn)] == [b"x"]
    machine: Any = hand.members[0].machine
    packets = [(packet.payload, packet.destinations, packet.first) for packet in machine.own]
    assert packets == [(b"y", 0b10, 1), (b"z", 0b01, 2)], "the number of what is withdrawn is not given again"


def test_the_numbers_of_what_was_withdrawn_are_left_out_later() -> None:
    hand = Hand(3, STREAMS)
    hand.give(0, Submit(0b100, (1,), b"x"))
    assert hand.members[0].is_direct
    for others in ((1,), (1,)):
        hand.flush(0, *others)
        hand.choose(0)
        hand.passes_if_sent(Propose, 0, 1)
        hand.passes_if_sent(Accept, 1, 0)
        hand.install(0, 1)
        assert not hand.members[0].is_direct
    hand.submit(0, "y")
    hand.submit(0, "z")
    machine: Any = hand.members[0].machine
    assert [(packet.payload, packet.first) for packet in machine.own] == [(b"y", 1), (b"z", 2)]
    assert hand.members[0].is_direct


def test_who_leaves_takes_no_more_submissions() -> None:
    hand = Hand(2)
    hand.leave(1)
    with pytest.raises(LocalProtocolError):
        hand.submit(1, "x")


# --- leaving ---


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


# --- those behind, those excluded ---


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


# --- blocked ---


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


def test_who_is_excluded_without_knowing_the_view_still_votes() -> None:
    hand = Hand(3)
    hand.flush(2)
    hand.give(2, TimerFired("view.blocked"))
    find = next(unit for _, unit in hand.outside if isinstance(unit, Find))
    found = Found(
        *(find.group, find.name, find.incarnation, find.nonce, person(0), 5, 0, False, False, ("address 0",), 0, 0)
    )
    hand.give(2, ReceiveOutside(found, "address 0"))
    hand.members[0].acceptor.highest_round = 5
    hand.flush(0)
    hand.passes(Flush, 0, 2)
    assert len(sent(hand.last, Report)) == 1


# --- what is discarded ---


def test_units_of_other_views_and_own_units_are_discarded() -> None:
    hand = Hand(3)
    for unit in (Flush(7, 1, (1, 1), 0, ""), Flush(0, 0, (1, 0), 0, ""), Flush(0, 5, (1, 5), 0, "")):
        assert [type(output) for output in hand.give(0, ReceiveControl(unit))] == [Discard]


REPORT = Report(0, 1, (1, 0), None, False, True, EpochReport((0, 0, 0, 0)))


@pytest.mark.parametrize(
    "unit",
    [
        Flush(0, 1, (0, 1), 0, ""),
        Flush(0, 1, (1, 2), 0, ""),
        Flush(0, 1, (1, 1), 1 << 9, ""),
        Flush(0, 1, (1, 1), 0, "x" * 1000),
        Propose(0, 1, (1, 1), msgspec.structs.replace(VALUE, number=3), 0),
        Accept(0, 1, (1, 9)),
        Overruled(0, 1, (2, 0), (1, 1)),
        Install(0, 1, msgspec.structs.replace(VALUE, number=3)),
        Fetch(0, 1, ()),
        Fetch(0, 1, ((3, 3),)),
        Fetch(0, 1, ((0, 1),) * 65),
        Suspicion(0, 1, 1 << 9, ""),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0))),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0, -1))),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0, 0), stable=(1,))),
        msgspec.structs.replace(REPORT, report=EpochReport((0, 0, 0, 0), round=-1)),
        msgspec.structs.replace(REPORT, accepted=((1, 9), VALUE)),
        msgspec.structs.replace(REPORT, accepted=((1, 1), msgspec.structs.replace(VALUE, stay=0b1111))),
    ],
)
def test_an_impossible_unit_is_discarded(unit: Any) -> None:
    assert problem_of(unit, VIEW) is not None
    hand = Hand(4)
    before = hand.members[0].snapshot()
    assert [type(output) for output in hand.give(0, ReceiveControl(unit))] == [Discard]
    assert hand.members[0].snapshot() == before


def test_possible_units_are_not_discarded() -> None:
    for unit in (
        REPORT,
        Flush(0, 1, (1, 1), 0, ""),
        Propose(0, 1, (1, 1), VALUE, 0),
        Install(0, 1, VALUE),
        Probe(0, 1),
    ):
        assert problem_of(unit, VIEW) is None
    assert problem_of(Probe(0, 4), VIEW) is not None


ControlUnits: Any = (
    Flush | Report | Propose | Accept | Overruled | Install | Entered | Fetch | Supply | Leave | Suspicion | Probe
)


# --- state ---


class Restored(Member):
    """Each input is also given to a twin that is restored before it; the twin knows nothing else."""

    def handle(self, event: Any) -> list[Any]:
        before, me = self.snapshot(), self.current.me
        twin = Member(
            *(me, founding_view((me,), b"founding"), self.epoch.order, self.epoch.config, self.current.settings),
            group="g",
            contacts=self.blocking.contacts,
        )
        twin.restore(before)
        assert twin.snapshot() == before
        expected, found = twin.handle(event), super().handle(event)
        assert found == expected
        assert twin.snapshot() == self.snapshot()
        return found


def test_a_member_that_is_restored_before_every_input_does_the_same() -> None:
    views = 0
    for seed in range(6):
        group = Group((ONE_STREAM, STREAMS)[seed % 2], 3, f"restored/{seed}", member=Restored)
        disturb(group, rounds=8, joiners=2)
        views += group.counts["views"]
    assert views > 40


def test_every_unit_survives_encoding() -> None:
    decoder: Any = msgspec.msgpack.Decoder(ControlUnits)
    for unit in (REPORT, Propose(0, 1, (1, 1), VALUE, 0), Install(0, 1, VALUE), Entered(0, 1, True), Leave(0, 1)):
        assert decoder.decode(msgspec.msgpack.encode(unit)) == unit
        assert unit.size() > 16
        assert unit.label() == "view"
    assert sorted(kind.__struct_config__.tag for kind in CONTROL_UNITS) == list(range(60, 72))  # type: ignore[type-var]
    assert Fetch(0, 1, ((0, 1), (3, 5))).asks_for() == "0+3-4"


def test_leaving_twice_is_leaving() -> None:
    hand = Hand(2)
    hand.leave(1)
    hand.give(1, LeaveGroup())
    assert hand.members[1].acceptor.leaving


# --- cost ---


def test_a_crash_in_a_group_of_64_costs_six_datagrams_for_each_member() -> None:
    """Flush, Report, Propose, Accept, Install and Entered; one round more for the one that does not answer."""
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


# --- message numbers over views, with the machine of an order with selected destinations ---


def _numbered(outputs: list[Any]) -> list[tuple[bytes, int]]:
    return [(each.packet.payload, each.packet.first) for each in outputs if isinstance(each, Numbered)]


def test_a_message_keeps_its_number_when_one_behind_it_was_withdrawn_in_an_earlier_view() -> None:
    hand = Hand(4, order_of("spo"))
    hand.give(0, Submit(0b0010, (1,), b"p"))
    hand.give(0, Submit(0b1000, (1, 1), b"qq"))
    hand.flush(0, 1, 2)
    hand.choose(0)
    hand.accept(0, 1)
    entering = hand.last
    assert _numbered(entering) == [(b"p", 0)]
    assert [(each.submit.payload, each.first) for each in entering if isinstance(each, Withdrawn)] == [(b"qq", 1)]
    hand.install(0, 1, 2)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    assert hand.members[0].current.view.number == 2
    assert _numbered(hand.last) == [(b"p", 0)], "it is before what was withdrawn"
    assert _numbered(hand.give(0, Submit(0b0010, (1,), b"r"))) == [(b"r", 3)]


def test_an_own_packet_of_the_cut_whose_destinations_are_all_gone_is_withdrawn() -> None:
    """It is in the cut, since nobody that goes on lacks it; whether it was delivered, nobody knows."""
    hand = Hand(3, order_of("spo"))
    hand.give(0, Submit(0b100, (1,), b"x"))
    hand.passes(Data, 0, 1)
    hand.flush(0, 1)
    hand.choose(0)
    hand.accept(0, 1)
    assert [(each.submit.payload, each.first) for each in hand.last if isinstance(each, Withdrawn)] == [(b"x", 0)]
    assert hand.view_of(0) == "0,1"


def test_an_own_packet_for_one_that_leaves_is_not_withdrawn() -> None:
    """It finishes its last view."""
    hand = Hand(3, order_of("spo"))
    hand.give(0, Submit(0b100, (1,), b"x"))
    for receiver in (1, 2):
        hand.passes(Data, 0, receiver)
    hand.leave(2, drain=False)
    hand.passes(Leave, 2, 0)
    hand.reports(0, 1, 2)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1"
    assert not [each for each in hand.last if isinstance(each, Withdrawn)]


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
