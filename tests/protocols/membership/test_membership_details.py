"""Details that only a reader of the code would miss: each is noticed if one line of a part is wrong."""

from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.config import SECOND, GroupConfig
from ordercast.model.errors import ConfigError
from ordercast.model.machine import CancelTimer, Discard, SetTimer, Submit, TimerFired
from ordercast.model.units import Packet
from ordercast.protocols.membership.acceptor import _first
from ordercast.protocols.membership.choice import choose
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.events import (
    Blocked,
    Excluded,
    InstallView,
    LeaveGroup,
    ReceiveControl,
    ReceiveOutside,
    SendControl,
    SendOutside,
    Unblocked,
    Withdrawn,
)
from ordercast.protocols.membership.failure_detector import HEARTBEATS_PER_TIMEOUT, DetectorConfig, FailureDetector
from ordercast.protocols.membership.joiner import Joiner, Waits
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import (
    MAX_COPIES,
    Accepted,
    Answer,
    Apply,
    Entered,
    Fetch,
    Find,
    Flush,
    Found,
    Install,
    Leave,
    Probe,
    Propose,
    Report,
    Supply,
    problem_of,
)
from ordercast.protocols.membership.view import (
    MAX_MEMBERS,
    Departed,
    MembershipConfig,
    NextView,
    Reason,
    founding_view,
    heard_members,
    is_possible_welcome,
    view_after,
)
from tests.protocols.membership.hand import SETTINGS, Hand, person
from tests.protocols.membership.orders import STREAMS

VIEW = founding_view(tuple(map(person, range(4))), b"founding")


def timers(outputs: list[Any]) -> list[str]:
    return [output.name for output in outputs if isinstance(output, SetTimer)]


def cancelled(outputs: list[Any]) -> set[str]:
    return {output.name for output in outputs if isinstance(output, CancelTimer)}


# --- bounds ---


def test_bounds_of_the_settings() -> None:
    assert MembershipConfig(patience=0, suspected_patience=0, least=MAX_MEMBERS).least == MAX_MEMBERS
    wrong: tuple[dict[str, Any], ...] = ({"patience": -1}, {"suspected_patience": -1}, {"least": 0}, {"least": 65})
    for changes in (*wrong, {"repeat": 0}, {"failure_timeout": 0}, {"gather": 0}, {"guard": 0}, {"blocked_repeat": 0}):
        with pytest.raises(ConfigError):
            MembershipConfig(**changes)
    least = 2 * HEARTBEATS_PER_TIMEOUT
    assert DetectorConfig(failure_timeout=least).tick == 1
    with pytest.raises(ConfigError):
        DetectorConfig(failure_timeout=least - 1)


def test_bounds_of_ballots() -> None:
    assert problem_of(Accepted(0, 1, ((1 << 32) - 1, 3)), VIEW) is None
    for ballot in ((0, 0), (1 << 32, 0), (1, 4), (1, -1)):
        assert problem_of(Accepted(0, 1, ballot), VIEW) is not None


def test_what_is_answered_at_once_is_bounded() -> None:
    assert _first(((0, 20), (30, 50), (60, 61))) == ((0, 20), (30, 42))
    assert _first(((0, 1000),)) == ((0, MAX_COPIES),)
    assert _first(((0, 32), (40, 41))) == ((0, 32),)


def test_what_is_asked_for_at_once_is_bounded() -> None:
    epoch = Hand(3, order_of("sequencer")).members[0].epoch
    cut, packet = Cut((0, 0, 0), numbered_below=1000), Packet(0, 0b111, 0, (), 0, (1,), b"x")
    assert epoch.lacks(cut, {}) == ((0, MAX_COPIES),)
    assert epoch.lacks(cut, dict.fromkeys(range(10), packet)) == ((10, 10 + MAX_COPIES),)
    found = epoch.lacks(cut, dict.fromkeys(range(0, 1000, 2), packet))
    assert found == tuple((number, number + 1) for number in range(1, 2 * MAX_COPIES, 2))
    assert problem_of(Fetch(0, 1, found), VIEW) is None, "so many ranges are possible"


# --- values ---


def test_why_a_view_changes() -> None:
    reports = {place: Report(0, place, (1, 0), None, place == 1, True, EpochReport((0,) * 4)) for place in range(3)}

    def cut(*_: Any) -> Cut:
        return Cut((0,) * 4)

    value = choose(VIEW, reports, [person(7)], SETTINGS, cut, "asked for")
    assert value is not None
    assert value.why == "n3 did not answer; n1 left; n7 joined"
    assert value.left == ((1, Reason.LEFT), (3, Reason.SILENT))
    everybody = {place: replace(reports[0], source=place) for place in range(4)}
    same = choose(VIEW, everybody, [], SETTINGS, cut, "asked for")
    assert same is not None
    assert same.why == "asked for"


def test_whose_reports_ended_a_view() -> None:
    value = NextView(
        1, 0b0101, (), 0b0111, ((1, Reason.LEFT), (3, Reason.SILENT)), Cut((0, 0, 0, 0)), 0, (), 4, "n1 left"
    )
    after = view_after(VIEW, value)
    gone = (Departed("old", 9, 9, 0, 0), Departed("n1", 1, 1, 1, 0), Departed("n3", 3, 3, 1, 0))
    assert heard_members(after, value, gone) == ((0, 0), (1, 1), (2, 2))
    assert heard_members(after, None, gone) == ()


# --- timers ---


def test_the_timers_of_a_view_end_with_it() -> None:
    hand = Hand(2)
    hand.flush(0, 1)
    assert cancelled(hand.last) >= {"view.round", "view.blocked", "view.fetch", "view.install"}


def test_who_alone_is_a_member_sends_to_nobody_and_others_to_all() -> None:
    hand = Hand(1)
    assert not any(isinstance(output, SendControl) for output in hand.give(0, LeaveGroup()))
    both = Hand(2)
    assert any(isinstance(output, SendControl) and output.to is None for output in both.give(0, LeaveGroup()))
    both.give(1, ReceiveControl(Probe(0, 0)))
    assert [output.to for output in both.last if isinstance(output, SendControl)] == [0]


def test_who_leaves_looks_again_until_it_is_drained() -> None:
    hand = Hand(2)
    hand.submit(0, "x")
    outputs = hand.give(0, LeaveGroup())
    assert timers(outputs) == ["view.leave"]
    assert hand.find(Leave, 0, 1) is None
    assert timers(hand.give(0, TimerFired("view.leave"))) == ["view.leave"]
    outputs = hand.give(0, LeaveGroup(drain=False))
    assert "view.leave" in timers(outputs)
    assert hand.find(Leave, 0, 1) is not None


def test_who_has_stopped_says_later_that_it_leaves() -> None:
    """Its report is made: the next view would be without what it has said."""
    hand = Hand(3)
    hand.flush(0, 1)
    assert timers(hand.give(1, LeaveGroup())) == ["view.leave"]
    assert hand.find(Leave, 1, 0) is None
    assert not hand.members[1].acceptor.leaving


def test_an_install_is_repeated_until_all_have_entered() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.accept(0, 1)
    for _ in range(3):
        outputs = hand.give(0, TimerFired("view.install"))
        assert timers(outputs) == ["view.install"]
        assert [output.to for output in outputs if isinstance(output, SendControl)] == [1, 2]
    hand.passes(Install, 0, 1)
    hand.passes(Entered, 1, 0)
    outputs = hand.give(0, TimerFired("view.install"))
    assert [output.to for output in outputs if isinstance(output, SendControl)] == [2]


def test_a_name_that_is_applied_with_is_probed_each_round() -> None:
    hand = Hand(3)
    hand.apply(replace(person(2), number=9), 0)
    assert [output.to for output in hand.last if isinstance(output, SendControl)] == [2]
    for _ in range(2):
        outputs = hand.give(0, TimerFired("view.applicants"))
        assert [output.to for output in outputs if isinstance(output, SendControl)] == [2]
        assert timers(outputs) == ["view.applicants"], "the next round follows"


def test_nobody_is_welcomed_into_the_first_view() -> None:
    value = NextView(1, 0b1111, (person(4),), 0b1111, (), Cut((0, 0, 0, 0)), 0, (), 5, "")
    view = view_after(VIEW, value)
    assert is_possible_welcome(value, view)
    assert not is_possible_welcome(replace(value, number=0), replace(view, number=0))


# --- being blocked ---


def blocked(count: int = 3) -> Hand:
    """The last one has stopped, and reaches nobody."""
    hand = Hand(count)
    hand.flush(count - 1)
    outputs = hand.give(count - 1, TimerFired("view.blocked"))
    assert any(isinstance(output, Blocked) for output in outputs)
    assert timers(outputs) == ["view.blocked"], "it asks again"
    return hand


def test_a_blocked_member_that_is_excluded_is_not_blocked_any_more() -> None:
    hand = blocked()
    value = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), Cut((0, 0, 0)), 0, (), 3, "")
    outputs = hand.give(2, ReceiveControl(Install(0, 0, value)))
    told = [type(output) for output in outputs if isinstance(output, Unblocked | Excluded)]
    assert told == [Unblocked, Excluded]
    assert not hand.members[2].blocked


def test_answers_to_a_blocked_member_count_if_it_asked_and_the_others_went_on() -> None:
    hand = blocked()
    found = Found("g", "n2", 2, 1, person(0), 1, 0, False, False, ("a", "b"), 0, 0)
    for wrong in ({"nonce": 0}, {"nonce": 2}, {"view": 0}, {"is_member": True}, {"incarnation": 3}, {"group": "h"}):
        outputs = hand.give(2, ReceiveOutside(replace(found, **wrong), "a"))
        assert not any(isinstance(output, Excluded) for output in outputs), wrong
    assert any(isinstance(output, Excluded) for output in hand.give(2, ReceiveOutside(found, "a")))


def test_as_many_as_must_report_are_enough_not_to_be_blocked() -> None:
    hand = Hand(3, order_of("sequencer"), resilience=1)
    assert hand.members[2].epoch.reports_needed(3) == 2
    hand.give(2, ReceiveControl(Flush(0, 1, (1, 1), 0, "")))
    assert hand.members[2].acceptor.reached == 0b110
    assert not any(isinstance(output, Blocked) for output in hand.give(2, TimerFired("view.blocked")))


# --- one that is no member any more ---


def test_who_was_excluded_still_supplies() -> None:
    hand = Hand(3)
    value = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), Cut((0, 0, 0)), 0, (), 3, "")
    hand.give(2, ReceiveControl(Install(0, 0, value)))
    hand.members[2].acceptor.supplied[4] = packet = Packet(0, 0b111, 4, (), 4, (1,), b"x")
    outputs = hand.give(2, ReceiveControl(Fetch(0, 1, ((3, 6),))))
    assert outputs == [SendControl(Supply(packet, 0, 2, 4), 1, 0)]


# --- submissions ---


def test_numbers_go_on_after_what_was_withdrawn() -> None:
    """Two messages were withdrawn before; what waited follows them."""
    hand = Hand(2)
    member = hand.members[0]
    hand.flush(0)
    hand.submit(0, "x")
    member.submissions.skips = 2
    hand.reports(0, 1)
    outputs = hand.last
    assert [type(output) for output in outputs if isinstance(output, InstallView)] == [InstallView]
    assert hand.told[0][-1] == "(x)"
    machine: Any = member.machine
    assert [packet.first for packet in machine.own] == [2]
    hand.give(0, Submit(0, (1,), b"y", to_all=True))
    assert [packet.first for packet in machine.own] == [2, 3]


def test_what_waited_for_one_that_is_gone_is_withdrawn_with_its_number() -> None:
    """Two messages were withdrawn before, and one was left over."""
    hand = Hand(3, STREAMS)
    hand.flush(0)
    hand.give(0, Submit(0b100, (1,), b"x"))
    hand.members[0].submissions.skips = 2
    hand.reports(0, 1)
    for _ in range(2):
        hand.choose(0)
    hand.passes(Propose, 0, 1)
    outputs = hand.passes(Accepted, 1, 0)
    assert [(output.submit.payload, output.first) for output in outputs if isinstance(output, Withdrawn)] == [(b"x", 2)]
    assert hand.members[0].submissions.skips == 3


# --- timers that need not run, and some that must ---


def test_who_follows_a_coordinator_waits_for_it() -> None:
    hand = Hand(3)
    hand.flush(0)
    assert "view.round" in timers(hand.passes(Flush, 0, 1))


def test_what_is_lacking_below_a_decided_cut_is_asked_for_until_it_comes() -> None:
    hand = Hand(3, order_of("sequencer"), resilience=1)
    hand.flush(0, 1)
    cut = Cut((1, 0, 0), numbered_below=1)
    value = NextView(1, 0b011, (), 0b011, ((2, Reason.SILENT),), cut, 0, (), 3, "")
    outputs = hand.give(1, ReceiveControl(Install(0, 0, value)))
    for _ in range(3):
        assert [output.unit for output in outputs if isinstance(output, SendControl)] == [Fetch(0, 1, ((0, 1),))]
        assert "view.fetch" in timers(outputs)
        outputs = hand.give(1, TimerFired("view.fetch"))
    packet = Packet(0, 0b111, 0, (), 0, (1,), b"x")
    outputs = hand.give(1, ReceiveControl(Supply(packet, 0, 0, 0)))
    assert any(isinstance(output, InstallView) for output in outputs)


def test_what_is_fetched_is_asked_for_again_only_while_something_is_decided() -> None:
    assert timers(Hand(2).give(0, TimerFired("view.fetch"))) == []


def test_an_installer_suspects_who_does_not_enter_for_a_failure_timeout() -> None:
    hand = Hand(3)
    hand.flush(0, 1, 2)
    hand.passes(Propose, 0, 1)
    assert "view.install" in timers(hand.passes(Accepted, 1, 0))
    rounds = SETTINGS.failure_timeout // SETTINGS.repeat
    for _ in range(rounds - 1):
        assert timers(hand.give(0, TimerFired("view.install"))) == ["view.install"]
    hand.give(0, TimerFired("view.install"))
    assert hand.members[0].coordinator.suspects == 0b110


def test_the_timer_of_applications_is_set_once() -> None:
    hand = Hand(3)
    hand.members[0].applicants.asking = {9}
    assert timers(hand.apply(7, 0)) == ["view.applicants", "view.gather"]
    assert timers(hand.apply(8, 0)) == []


def test_a_stray_answer_is_discarded() -> None:
    hand = Hand(3)
    found = Found("g", "n0", 0, 1, person(1), 1, 0, False, False, ("a",), 0, 0)
    for unit in (found, Answer(0, 1, True, "no", 0)):
        assert [type(output) for output in hand.give(0, ReceiveOutside(unit, "a"))] == [Discard]


def test_a_watcher_that_heard_it_a_third_of_the_timeout_ago_vouches_for_a_member() -> None:
    for ago, suspected in ((0, 0), (1, 0b0010)):
        detector = FailureDetector(0, 4, DetectorConfig(failure_timeout=24 * SECOND))
        detector.silent[1] = 23 * SECOND
        detector.vouched[1] = 7 * SECOND + ago
        detector.active = 0b1100
        detector.ticked_at = 0
        assert detector.tick(SECOND).suspected == suspected


# --- joining ---


def joiner() -> Joiner:
    return Joiner(person(7), "g", ("a", "b"), 100, SETTINGS)


def found_by(one: Joiner, **changes: Any) -> Found:
    values: dict[str, Any] = {"view": 1, "place": 0, "blocked": False, "is_member": False}
    values.update(changes)
    return Found("g", "n7", 7, 100 + one.searches, person(0), **values, addresses=("a", "b"), apply_at=0, to=0)


def test_a_joiner_applies_again_and_again() -> None:
    one = joiner()
    one.begin()
    one.handle(ReceiveOutside(found_by(one), "a"))
    outputs = one.handle(ReceiveOutside(found_by(one, place=1), "b"))
    assert [type(output.unit) for output in outputs if isinstance(output, SendOutside)] == [Apply]
    for _ in range(3):
        assert "join.apply" in timers(outputs)
        outputs = one.handle(TimerFired("join.apply"))
        assert [type(output.unit) for output in outputs if isinstance(output, SendOutside)] == [Apply]


def test_the_timers_of_a_joiner() -> None:
    """It applies soon, though not all have answered; once refused, nothing is due any more."""
    one = joiner()
    assert timers(one.begin()) == ["join.find"]
    assert timers(one.handle(ReceiveOutside(found_by(one), "a"))) == ["join.apply"]
    outputs = one.handle(ReceiveOutside(Answer(7, 101, True, "no", 0), "a"))
    assert cancelled(outputs) == {"join.find", "join.apply"}
    assert one.handle(TimerFired("join.find")) == []


def test_a_joiner_says_that_it_waits_only_while_all_are_blocked() -> None:
    one = joiner()
    one.begin()
    outputs = one.handle(ReceiveOutside(found_by(one, blocked=True), "a"))
    assert any(isinstance(output, Waits) for output in outputs)
    one.handle(ReceiveOutside(found_by(one), "a"))
    outputs = one.handle(ReceiveOutside(found_by(one, blocked=True, place=1), "b"))
    assert not any(isinstance(output, Waits) for output in outputs)
    assert one.found is not None
    assert one.reached == 0b01


def test_a_joiner_asks_with_a_new_number_each_time() -> None:
    one = joiner()
    asked = [output.unit for output in one.begin() if isinstance(output, SendOutside)]
    again = [output.unit for output in one.handle(TimerFired("join.find")) if isinstance(output, SendOutside)]
    assert [unit.nonce for unit in (*asked, *again) if isinstance(unit, Find)] == [101, 101, 102, 102]


def test_the_group_is_as_large_as_its_view() -> None:
    hand = Hand(3)
    hand.flush(0, 1)
    for _ in range(2):
        hand.choose(0)
    hand.accept(0, 1)
    config: GroupConfig = hand.members[0].epoch.config_of(hand.members[0].current.size)
    assert config.nodes == 2
    assert config.views
