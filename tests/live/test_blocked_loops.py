"""A member whose event loop is blocked for some seconds stays a member; one whose process has ended does not."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import ordercast
from ordercast import SyncGroup
from ordercast.live.host.failure_detection import FailureDetection
from ordercast.live.host.heartbeat_thread import HeartbeatThread
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.wire.control import Stage
from ordercast.wire.keys import GroupKeys
from ordercast.wire.seal import seal_for
from tests.live.groups import ORDERS, new_name, run

FAILURE_TIMEOUT, BLOCKED = 0.5, 1.8


@contextmanager
def three(order: str, **settings: Any) -> Iterator[list[SyncGroup]]:
    """Three members, each with a loop of its own, which can be blocked alone."""
    name, found = new_name(), {}
    shared = ordercast.Settings(order=order, failure_timeout=FAILURE_TIMEOUT, **settings)

    def join(member: str) -> None:
        joining = ordercast.join(name, members=["A", "B", "C"], name=member, settings=shared, timeout=30)
        found[member] = joining.sync()

    threads = [threading.Thread(target=join, args=(member,)) for member in "ABC"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ExitStack() as stack:
        yield [stack.enter_context(found[member]) for member in "ABC"]


def block(group: SyncGroup, seconds: float) -> None:
    """As a callback does that computes."""
    group._loop.call_soon_threadsafe(time.sleep, seconds)


@pytest.mark.parametrize("order", [*(pytest.param(order, marks=pytest.mark.soak) for order in ORDERS[:3]), "sequenced"])
@pytest.mark.parametrize("place", [0, pytest.param(2, marks=pytest.mark.soak)], ids=["the sequencer or relay", "C"])
def test_who_is_blocked_for_several_failure_timeouts_stays_in(order: str, place: int) -> None:
    with three(order) as groups:
        block(groups[place], BLOCKED)
        groups[1].send(b"meanwhile", timeout=30)
        for group in groups:
            assert group.receive(timeout=30).payload == b"meanwhile"
        groups[place].send(b"it is back", timeout=30)
        for group in groups:
            assert group.receive(timeout=30).payload == b"it is back"
            assert group.stats().view == 0
            assert group.members == ("A", "B", "C")


@pytest.mark.parametrize("limit", [0, pytest.param(0.6, marks=pytest.mark.soak)])
def test_who_is_blocked_for_longer_than_allowed_is_excluded(limit: float) -> None:
    with three("sequenced", pause_timeout=limit) as groups:
        block(groups[2], limit + 6 * FAILURE_TIMEOUT)
        until = time.monotonic() + limit + 5 * FAILURE_TIMEOUT
        while groups[0].stats().members != ("A", "B") and time.monotonic() < until:
            time.sleep(0.05)
        assert groups[0].stats().members == ("A", "B")
        until = time.monotonic() + 20
        while any(len(group.stats().members) < 3 for group in groups) and time.monotonic() < until:
            time.sleep(0.05)
        assert groups[2].stats().members == ("A", "B", "C"), "it returns by itself"


class Sent:
    """What a thread sent, and by which thread."""

    def __init__(self) -> None:
        self.by: list[threading.Thread] = []

    def __call__(self) -> None:
        self.by.append(threading.current_thread())


def test_the_thread_speaks_only_while_the_loop_does_not() -> None:
    sent = Sent()
    beats = HeartbeatThread(0.02, limit=0.3)
    for _ in range(20):
        beats.ticked(sent)
        time.sleep(0.005)
    while_it_ran = len(sent.by)
    time.sleep(0.25)
    while_it_was_blocked = len(sent.by)
    time.sleep(0.3)
    at_the_limit = len(sent.by)
    time.sleep(0.2)
    assert while_it_ran <= 2, "but for pauses of this machine"
    assert while_it_was_blocked >= 4
    assert len(sent.by) == at_the_limit, "it does not speak for one that never comes back"
    assert threading.current_thread() not in sent.by
    assert not [each for each in sent.by if each.is_alive()]
    beats.ticked(sent)
    time.sleep(0.15)
    assert len(sent.by) > at_the_limit, "but for one that does"
    beats.stop()
    time.sleep(0.05)
    ended = len(sent.by)
    time.sleep(0.1)
    assert len(sent.by) == ended


def test_without_a_limit_there_is_no_thread() -> None:
    before = threading.active_count()
    HeartbeatThread(0.01, limit=0).ticked(lambda: None)
    assert threading.active_count() == before


@pytest.mark.parametrize("keys", [None, GroupKeys({7: b"a" * 32, 3: b"b" * 32})], ids=["plain", "encrypted"])
def test_what_a_thread_seals_is_opened_as_what_the_member_seals(keys: GroupKeys | None) -> None:
    own, other = seal_for("g", keys), seal_for("g", keys)
    opened = [other.open(seal.seal(0, 1, 77, counter, b"x", 2)) for counter, seal in enumerate([own, own.apart(), own])]
    assert [(each.body, each.counter) for each in opened] == [(b"x", 0), (b"x", 1), (b"x", 2)]  # type: ignore[union-attr]


def test_a_member_that_was_excluded_and_returned_has_a_thread_again() -> None:
    """It watches nobody meanwhile: the thread ends, and another begins with the view that takes it in."""

    class Lines:
        read = staticmethod(lambda: True)

        def heartbeats(self, *_: Any) -> Sent:
            return sent

    async def test() -> None:
        detection = FailureDetection(
            Lines(),  # type: ignore[arg-type]
            200 * MILLISECOND,
            5 * SECOND,
            stage=lambda: Stage.OPEN,
            suspect=lambda _: None,
            unheard=lambda _: None,
            drained=lambda: None,
            paused=lambda: None,
        )
        for _ in range(2):
            sent.by.clear()
            detection.enter_view(0, 2)
            until = time.monotonic() + 5
            while not sent.by and time.monotonic() < until:
                time.sleep(0.01)  # the loop is blocked
            detection.stop()
            assert sent.by

    sent = Sent()
    run(test)
