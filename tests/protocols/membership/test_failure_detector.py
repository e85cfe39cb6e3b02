"""The failure detector in a network with loss, and its rules one by one."""

import random
from heapq import heappop, heappush

import pytest

from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.errors import ConfigError
from ordercast.model.nodes import members
from ordercast.protocols.membership.failure_detector import (
    DetectorConfig,
    Duties,
    FailureDetector,
    watched_by,
    watchers_of,
)

CONFIG = DetectorConfig(failure_timeout=3 * SECOND)
LATENCY = MILLISECOND
NEVER = 1 << 62


class IdleGroup:
    """Members that have nothing to send, on a network that loses datagrams with one probability."""

    def __init__(self, nodes: int, loss: float, seed: int, *, probing: bool = True) -> None:
        self.random, self.loss, self.probing = random.Random(seed), loss, probing
        self.detectors = [FailureDetector(place, nodes, CONFIG) for place in range(nodes)]
        self.crashed_at = [NEVER] * nodes
        self.deaf: set[tuple[int, int]] = set()  # (from, to): links that lose everything
        self.suspicions: list[tuple[int, int, int]] = []  # time, who, whom
        self.datagrams = self.now = 0
        self._number = 0
        self._queue: list[tuple[int, int, int, tuple[object, ...]]] = []
        for place in range(nodes):
            self._schedule(self.random.randrange(CONFIG.tick), place, ("tick",))

    def run(self, until: int) -> None:
        while self._queue and self._queue[0][0] < until:
            self.now, _, place, what = heappop(self._queue)
            if self.now < self.crashed_at[place]:
                self._happens(place, *what)
        self.now = until

    def _happens(self, place: int, kind: object, *rest: object) -> None:
        detector = self.detectors[place]
        if kind == "tick":
            self._schedule(self.now + CONFIG.tick, place, ("tick",))
            self._carry_out(place, detector.tick(self.now))
            return
        sender, number, member, ago = rest
        assert isinstance(sender, int)
        assert isinstance(member, int)
        assert isinstance(number, int)
        assert isinstance(ago, int)
        detector.active |= 1 << sender
        if kind == "question":
            self._send(place, sender, "heartbeat")
        elif kind == "probe":
            self._send(place, sender, "seen", number, member, detector.last_heard(member))
        elif kind == "seen":
            detector.vouch(member, ago, number)

    def _carry_out(self, place: int, duties: Duties) -> None:
        for other in members(duties.heartbeats):
            self._send(place, other, "heartbeat")
        for other in members(duties.questions):
            self._send(place, other, "question")
        if self.probing:
            for watcher, member in duties.probes:
                self._send(place, watcher, "probe", self.detectors[place].ticks, member)
        self.suspicions += [(self.now, place, member) for member in members(duties.suspected)]

    def _send(self, place: int, to: int, kind: str, number: int = 0, member: int = 0, ago: int = 0) -> None:
        self.datagrams += 1
        if self.random.random() >= self.loss and (place, to) not in self.deaf:
            self._schedule(self.now + LATENCY, to, (kind, place, number, member, ago))

    def _schedule(self, time: int, place: int, what: tuple[object, ...]) -> None:
        self._number += 1
        heappush(self._queue, (time, self._number, place, what))


@pytest.mark.parametrize("nodes", range(1, 65))
def test_everybody_is_watched_by_three_others_and_watches_as_many(nodes: int) -> None:
    for place in range(nodes):
        watchers = watchers_of(place, nodes)
        assert not watchers >> place & 1
        assert watchers.bit_count() == min(3, nodes - 1) == watched_by(place, nodes).bit_count()
        assert all(watched_by(other, nodes) >> place & 1 for other in members(watchers))


@pytest.mark.parametrize(("nodes", "loss"), [(2, 0.3), (5, 0.0), (5, 0.3), (16, 0.1), (16, 0.3), (64, 0.3)])
def test_nobody_is_suspected_in_a_network_with_loss(nodes: int, loss: float) -> None:
    group = IdleGroup(nodes, loss, seed=nodes)
    group.run(6000 * SECOND // max(nodes, 50))
    assert group.suspicions == []


def test_an_idle_group_sends_three_heartbeats_for_each_member_and_interval() -> None:
    group = IdleGroup(64, 0.0, seed=1)
    group.run(60 * SECOND)
    assert group.datagrams / 60 == pytest.approx(3 * 64 * 4, rel=0.02)  # four intervals a second


def test_with_a_third_lost_an_idle_group_of_64_stays_close_to_a_thousand_datagrams_a_second() -> None:
    """What is lost is asked for: 3n/interval for heartbeats, and a question and an answer for about a tenth of them."""
    group = IdleGroup(64, 0.3, seed=2)
    group.run(60 * SECOND)
    assert 768 < group.datagrams / 60 < 1200


@pytest.mark.parametrize("loss", [0.0, 0.3])
@pytest.mark.parametrize("nodes", [2, 3, 5, 16, 64])
def test_a_crash_is_detected_within_the_failure_timeout(nodes: int, loss: float) -> None:
    """Counted from the crash; a tick may be due one interval later, and the last datagram was on its way."""
    group = IdleGroup(nodes, loss, seed=nodes)
    crashed = nodes // 2
    group.crashed_at[crashed] = 10 * SECOND
    group.run(20 * SECOND)
    assert {whom for _, _, whom in group.suspicions} == {crashed}
    first = min(time for time, _, _ in group.suspicions)
    assert first <= 13 * SECOND + CONFIG.tick + LATENCY


def test_of_those_that_crash_together_all_are_suspected_that_a_living_member_watches() -> None:
    """Of the rest the flush of the view tells, for which one suspicion is enough; they are never all unwatched."""
    group = IdleGroup(16, 0.1, seed=3)
    crashed = {0, 1, 2, 4, 5, 9, 15}
    for place in crashed:
        group.crashed_at[place] = 5 * SECOND
    group.run(12 * SECOND)
    unwatched = {place for place in crashed if set(members(watchers_of(place, 16))) <= crashed}
    assert unwatched == {0}
    assert {whom for _, _, whom in group.suspicions} == crashed - unwatched


def test_a_member_that_one_watcher_does_not_hear_is_not_suspected() -> None:
    """Without the other watchers' word it would be: the rule is what keeps it in the group."""
    for probing, expected in [(True, set()), (False, {(4, 3)})]:
        group = IdleGroup(16, 0.0, seed=4, probing=probing)
        group.deaf.add((3, 4))
        group.run(30 * SECOND)
        assert {(who, whom) for _, who, whom in group.suspicions} == expected


def test_a_member_that_hears_nobody_waits_twice_as_long() -> None:
    group = IdleGroup(16, 0.0, seed=5)
    group.run(10 * SECOND)
    group.deaf |= {(other, 7) for other in range(16)}
    group.run(10 * SECOND + 5 * SECOND)
    assert [who for _, who, _ in group.suspicions if who == 7] == []
    group.run(10 * SECOND + 7 * SECOND)
    assert {whom for _, who, whom in group.suspicions if who == 7} == set(members(watched_by(7, 16)))


def test_a_process_that_was_suspended_gives_the_others_time_to_be_heard() -> None:
    detector = FailureDetector(0, 3, CONFIG)
    for tick in range(4):
        detector.active = 0b110
        detector.tick(tick * CONFIG.tick)
    woken = 3 * CONFIG.tick + 60 * SECOND
    found = []
    for tick in range(13):  # half of the failure timeout has twelve ticks
        found.append(detector.tick(woken + tick * CONFIG.tick).suspected)
        detector.active = 0b010  # the other never comes back
    assert found == [0] * 12 + [0b100]


def test_a_member_that_is_always_late_detects_failures_too() -> None:
    """Each of its ticks comes more than a heartbeat late; it grants the time for that once, and not every time."""
    detector = FailureDetector(0, 3, CONFIG)
    now = 0
    while not detector.suspected:
        detector.active = 0b010
        now += 2 * CONFIG.heartbeat
        detector.tick(now)
        assert now <= 2 * CONFIG.failure_timeout
    assert detector.suspected == 0b100


def test_who_is_heard_again_is_not_suspected_any_more_and_can_be_suspected_again() -> None:
    detector = FailureDetector(0, 2, CONFIG)
    at = 0
    for expected in (0b10, 0b10):
        newly = 0
        for _ in range(40):
            at += CONFIG.tick
            newly |= detector.tick(at).suspected
        assert newly == expected == detector.suspected
        detector.active = 0b10
        at += CONFIG.tick
        assert detector.tick(at).suspected == 0
        assert detector.suspected == 0


def test_what_is_sent_to_a_watcher_replaces_the_heartbeat() -> None:
    detector = FailureDetector(0, 5, CONFIG)
    assert detector.watchers == 0b01110
    assert detector.tick(0).heartbeats == 0
    assert detector.tick(CONFIG.tick).heartbeats == 0b01110
    detector.sent = 0b00110
    assert detector.tick(2 * CONFIG.tick).heartbeats == 0
    assert detector.tick(3 * CONFIG.tick).heartbeats == 0b01000


def test_an_answer_that_was_long_on_its_way_vouches_for_less() -> None:
    detector = FailureDetector(0, 5, CONFIG)
    for tick in range(21):
        detector.active = 0b01100  # of the members 2, 3 and 4, which it watches, 4 is silent
        duties = detector.tick(tick * CONFIG.tick)
    assert duties.probes == ((1, 4), (2, 4))  # 4 is watched by 0, 1 and 2
    detector.vouch(4, 0, detector.ticks - 8)  # a third of the timeout ago
    fresh = FailureDetector(0, 5, CONFIG)
    fresh.restore(detector.snapshot())
    fresh.vouch(4, 0, detector.ticks)
    suspected = {}
    for name, each in (("late", detector), ("fresh", fresh)):
        found = 0
        for tick in range(21, 26):
            each.active = 0b01100
            found |= each.tick(tick * CONFIG.tick).suspected
        suspected[name] = found
    assert suspected == {"late": 0b10000, "fresh": 0}


@pytest.mark.parametrize(("member", "ago", "tick"), [(0, 0, 0), (5, 0, 0), (-1, 0, 0), (4, -1, 0), (4, 0, 99)])
def test_an_impossible_answer_changes_nothing(member: int, ago: int, tick: int) -> None:
    detector = FailureDetector(0, 5, CONFIG)
    before = detector.snapshot()
    detector.vouch(member, ago, tick)
    assert detector.snapshot() == before


def test_a_failure_timeout_without_room_for_heartbeats_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 24 ns"):
        DetectorConfig(failure_timeout=23)


@pytest.mark.soak
@pytest.mark.parametrize(("nodes", "loss"), [(5, 0.3), (16, 0.3), (64, 0.1), (64, 0.3)])
def test_nobody_is_suspected_in_an_hour(nodes: int, loss: float) -> None:
    group = IdleGroup(nodes, loss, seed=nodes)
    group.run(3600 * SECOND)
    assert group.suspicions == []


def test_a_member_is_asked_when_more_than_one_heartbeat_of_it_is_missing() -> None:
    """It sends one every second tick, and its ticks and ours may be half an interval apart."""
    detector = FailureDetector(0, 2, CONFIG)
    assert [detector.tick(at * CONFIG.tick).questions for at in range(4)] == [0, 0, 0, 0b10]


def test_the_first_place_may_be_vouched_for() -> None:
    detector = FailureDetector(1, 3, CONFIG)
    detector.tick(0)
    detector.vouch(0, 5, 1)
    assert detector.vouched[0] == 5


def test_a_timer_that_is_late_by_one_heartbeat_is_no_suspension() -> None:
    for late, suspended in ((CONFIG.heartbeat, False), (CONFIG.heartbeat + 1, True)):
        detector = FailureDetector(0, 3, CONFIG)
        detector.tick(0)
        detector.tick(CONFIG.tick + late)
        assert (detector.suspended_before == 0) is suspended


def test_a_link_is_broken_if_another_one_has_heard_the_member_within_a_third_of_the_timeout() -> None:
    for ago, broken in ((CONFIG.failure_timeout // 3, 0b010), (CONFIG.failure_timeout // 3 + 1, 0)):
        detector = FailureDetector(0, 3, CONFIG)
        detector.silent[1] = 4 * CONFIG.failure_timeout
        detector.vouched[1] = ago
        assert detector._unheard() == broken
