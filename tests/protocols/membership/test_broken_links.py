"""P5, F6: two members that do not hear each other, while others hear both: one of them is left out."""

from typing import Any

import pytest

from ordercast.model.config import SECOND
from ordercast.model.machine import TimerFired
from ordercast.model.nodes import mask_of, members
from ordercast.protocols.membership.choice import without_broken_links
from ordercast.protocols.membership.events import Excluded, ReceiveControl, SendControl, Unheard
from ordercast.protocols.membership.failure_detector import (
    STALL_TIMEOUTS,
    TICKS_PER_TIMEOUT,
    DetectorConfig,
    FailureDetector,
)
from ordercast.protocols.membership.units import Flush, Install, Propose, Report, Suspicion, problem_of
from ordercast.protocols.membership.view import MembershipConfig
from tests.protocols.membership.hand import Hand

SETTINGS = MembershipConfig()
ALL = 0b11111


@pytest.mark.parametrize(
    ("broken", "left_out"),
    [
        ({(0, 1)}, [1]),
        ({(0, 1), (0, 2)}, [0]),
        ({(0, 2), (1, 2)}, [2]),
        ({(0, 1), (2, 3)}, [1, 3]),
        ({(1, 2), (2, 3), (3, 4)}, [2, 3]),
        (set(), []),
        ({(0, 7)}, []),
    ],
)
def test_who_hears_the_fewest_is_left_out_of_two_the_younger(broken: set[tuple[int, int]], left_out: list[int]) -> None:
    stay = without_broken_links(ALL, ALL, broken, SETTINGS)
    assert list(members(ALL & ~stay)) == left_out
    assert not [pair for pair in broken if all(stay >> place & 1 for place in pair)]


def test_nobody_is_left_out_if_too_few_would_go_on() -> None:
    least = MembershipConfig(least=5)
    assert without_broken_links(ALL, ALL, {(0, 1)}, least) == ALL
    assert without_broken_links(ALL, ALL, {(0, 1)}, MembershipConfig(least=4)) == 0b11101
    assert without_broken_links(0b11, 0b10, {(0, 1)}, SETTINGS) == 0b11, "1 alone has the state"


def test_a_member_that_another_does_not_hear_is_left_out_of_the_next_view() -> None:
    """2 does not hear 1; 0 hears both, and coordinates."""
    hand = Hand(3)
    outputs = hand.give(2, Unheard(0b110))
    told = [(output.to, output.unit) for output in outputs if isinstance(output, SendControl)]
    assert [(to, type(unit)) for to, unit in told] == [(0, Suspicion), (1, Suspicion)]
    assert hand.passes(Suspicion, 2, 0) != []
    hand.reports(0, 1, 2)
    hand.accept(0, 1)
    assert hand.view_of(0) == "0,1"
    [excluded] = [output for output in hand.passes(Install, 0, 2) if isinstance(output, Excluded)]
    assert excluded.why == "n2 left out: n2 does not hear n1"
    value = hand.members[0].current.value
    assert value is not None
    assert [(place, reason.value) for place, reason in value.left] == [(2, "unreachable")]
    assert not hand.members[0].coordinator.broken, "it is about one view"


def test_it_is_told_and_counted_once() -> None:
    hand = Hand(4)
    hand.give(3, Unheard(0b0010))
    [unit] = {each for _, by, _, each in hand.sent if isinstance(each, Suspicion) and by == 3}
    before = hand.members[1].snapshot()
    hand.give(1, ReceiveControl(unit))
    assert hand.members[1].snapshot() != before
    after = hand.members[1].snapshot()
    hand.give(1, ReceiveControl(unit))
    assert hand.members[1].snapshot() == after
    assert hand.give(3, Unheard(0b1000)) == [], "itself"
    assert hand.give(3, Unheard(0)) == []


def test_who_has_stopped_waits_for_the_next_view() -> None:
    hand = Hand(3)
    hand.flush(0, 2)
    assert hand.give(2, Unheard(0b010)) == []


def test_the_one_that_does_not_hear_takes_over_if_nobody_acts() -> None:
    hand = Hand(3)
    hand.give(2, Unheard(0b010))
    outputs: list[Any] = hand.give(2, TimerFired("view.round"))
    assert any(isinstance(output, SendControl) and isinstance(output.unit, Flush) for output in outputs)
    hand.passes(Flush, 2, 0)
    hand.passes(Report, 0, 2)
    assert hand.members[2].coordinator.broken == {(1, 2)}
    assert hand.find(Propose, 2, 0) is None, "1 has its time"


def test_a_suspicion_names_members_only() -> None:
    view = Hand(3).view
    assert problem_of(Suspicion(0, 1, 0, "", 0b100), view) is None
    for unheard in (-1, 0b1000):
        assert problem_of(Suspicion(0, 1, 0, "", unheard), view) is not None


# --- the failure detector ---


def ticks(detector: FailureDetector, count: int, *, heard: int, vouched: int = 0) -> list[int]:
    """What each tick says of members that are not heard; `vouched`: others hear these."""
    found, now = [], detector.ticked_at or 0
    for _ in range(count):
        detector.active = heard
        for place in members(vouched):
            detector.vouch(place, 0, detector.ticks)
        now += detector.config.tick
        found.append(detector.tick(now).unheard)
    return found


def test_a_member_that_others_hear_and_we_do_not_is_told_after_some_timeouts() -> None:
    config = DetectorConfig(failure_timeout=24 * SECOND)
    detector = FailureDetector(0, 4, config)
    quiet, vouched = (STALL_TIMEOUTS - 1) * TICKS_PER_TIMEOUT, mask_of([2])
    assert not any(ticks(detector, quiet, heard=0b1010, vouched=vouched))
    told = ticks(detector, 2 * TICKS_PER_TIMEOUT, heard=0b1010, vouched=vouched)
    assert [mask for mask in told if mask] == [0b0100, 0b0100], "once in each timeout"
    assert not detector.suspected
    assert not any(ticks(detector, 2 * TICKS_PER_TIMEOUT, heard=0b1110)), "it is heard again"


def test_a_member_that_nobody_hears_is_suspected_and_not_unheard() -> None:
    detector = FailureDetector(0, 4, DetectorConfig(failure_timeout=24 * SECOND))
    assert not any(ticks(detector, 6 * TICKS_PER_TIMEOUT, heard=0b1010))
    assert detector.suspected == 0b0100
