"""Datagrams that overtake each other: what waits, for how long, and what is late. Time is handed in."""

import asyncio
from random import Random
from time import monotonic_ns

import pytest

from ordercast.live.transport.endpoint import MAX_POSTPONED
from ordercast.live.transport.reorder_buffer import (
    MAX_HELD,
    MAX_HELD_BYTES,
    ReleaseTimer,
    ReorderBuffer,
    Stream,
)
from ordercast.model.config import MILLISECOND
from ordercast.wire.datagram import Datagram

LONGEST = 8 * MILLISECOND


def said(counter: int, size: int = 10) -> Datagram:
    return Datagram(0, 1, 7, counter, bytes(size))


class Hearer:
    """One stream, and all that it handed over."""

    def __init__(self, longest: int = LONGEST) -> None:
        self.stream = Stream(longest)
        self.heard: list[int] = []
        self.late: list[int] = []

    def take(self, now: int, *counters: int, size: int = 10) -> None:
        for counter in counters:
            found = self.stream.take(said(counter, size), now)
            if found is None:
                self.late.append(counter)
            else:
                self.heard += [each.counter for each in found]

    def wake(self, now: int) -> None:
        self.heard += [each.counter for each in self.stream.release(now)]

    def learn(self, lateness: int) -> None:
        """Makes it know that the network reorders."""
        self.take(0, 0, 2)
        self.take(lateness, 1)
        assert (self.heard, self.late) == ([0, 2], [1])
        self.heard, self.late = [], []


def test_a_stream_begins_anywhere_and_goes_on_in_order() -> None:
    hearer = Hearer()
    hearer.take(0, 41, 42, 43, 40, 43)
    assert (hearer.heard, hearer.late) == ([41, 42, 43], [40, 43])


def test_where_nothing_was_ever_late_nothing_waits() -> None:
    """A loss is seen when the next one comes."""
    hearer = Hearer()
    hearer.take(0, 0, 2, 3, 7, 8)
    assert hearer.heard == [0, 2, 3, 7, 8]
    assert hearer.stream.releases_at() is None


def test_the_next_ones_wait_for_as_long_as_one_was_late_and_a_quarter_more() -> None:
    hearer = Hearer()
    hearer.learn(4 * MILLISECOND)
    hearer.take(100 * MILLISECOND, 4, 5)
    assert not hearer.heard
    assert hearer.stream.releases_at() == 105 * MILLISECOND
    hearer.take(104 * MILLISECOND, 3)
    assert hearer.heard == [3, 4, 5]
    assert not hearer.late
    assert hearer.stream.releases_at() is None


def test_who_waited_enough_is_handed_over_with_all_before_it_and_right_behind_it() -> None:
    hearer = Hearer()
    hearer.learn(4 * MILLISECOND)
    hearer.take(100 * MILLISECOND, 5)
    hearer.take(101 * MILLISECOND, 4)  # 3 is missing
    hearer.take(103 * MILLISECOND, 6, 8)  # 7 is missing
    hearer.wake(105 * MILLISECOND - 1)
    assert not hearer.heard
    hearer.wake(105 * MILLISECOND)
    assert hearer.heard == [4, 5, 6], "7 has its own time"
    hearer.take(106 * MILLISECOND, 3, 7)
    assert (hearer.heard, hearer.late) == ([4, 5, 6, 7, 8], [3])


def test_two_that_have_waited_enough_are_handed_over_at_once_whatever_lies_between() -> None:
    hearer = Hearer()
    hearer.learn(4 * MILLISECOND)
    hearer.take(100 * MILLISECOND, 7, 4)
    hearer.wake(105 * MILLISECOND)
    assert hearer.heard == [4, 7]


def test_what_came_in_time_but_only_just_makes_the_next_wait_longer() -> None:
    hearer = Hearer()
    hearer.learn(2 * MILLISECOND)
    hearer.take(100 * MILLISECOND, 4)
    hearer.take(102 * MILLISECOND + 400_000, 3)
    assert hearer.heard == [3, 4]
    assert hearer.stream.hold == 3 * MILLISECOND


def test_nobody_waits_longer_than_the_longest_nor_for_those_that_are_later_than_that() -> None:
    hearer = Hearer()
    hearer.learn(LONGEST - 1)
    assert hearer.stream.hold == LONGEST
    hearer = Hearer()
    hearer.learn(LONGEST + 1)
    assert hearer.stream.hold == 0


def test_a_longest_of_nothing_is_as_if_there_were_no_waiting() -> None:
    hearer = Hearer(longest=0)
    hearer.learn(1)
    hearer.take(10, 5, 4, 6)
    assert (hearer.heard, hearer.late) == ([5, 6], [4])


def test_waiting_in_vain_makes_the_next_wait_shorter_until_there_is_none() -> None:
    hearer = Hearer()
    hearer.learn(4 * MILLISECOND)
    counter, now, holds = 4, 0, []
    while hearer.stream.hold:
        holds.append(hearer.stream.hold)
        now += 100 * MILLISECOND
        hearer.take(now, counter)
        hearer.wake(now + hearer.stream.hold)
        counter += 2
    assert holds == sorted(set(holds), reverse=True)
    assert 10 < len(holds) < 50, "neither forgotten at once nor kept for ever"
    assert not hearer.late


@pytest.mark.parametrize(
    ("count", "size"), [(MAX_HELD + 1, 1), (5, MAX_HELD_BYTES // 5 + 1)], ids=["datagrams", "bytes"]
)
def test_what_waits_is_bounded(count: int, size: int) -> None:
    hearer = Hearer()
    hearer.learn(4 * MILLISECOND)
    hearer.take(100 * MILLISECOND, *range(4, 3 + count), size=size)
    assert not hearer.heard
    hearer.take(100 * MILLISECOND, 3 + count, size=size)
    assert hearer.heard == list(range(4, 4 + count))
    hearer.take(100 * MILLISECOND, 4 + count)
    assert hearer.heard[-1] == 4 + count, "it goes on as if nothing had been"
    hearer.take(100 * MILLISECOND, 6 + count, size=size)
    assert hearer.heard[-1] == 4 + count, "bytes are counted as they go, too"


def test_what_comes_again_while_it_waits_is_counted_once() -> None:
    """Else somebody who says it often enough would end all waiting for good."""
    hearer = Hearer()
    hearer.learn(4 * MILLISECOND)
    for _ in range(5):
        hearer.take(100 * MILLISECOND, 4, size=MAX_HELD_BYTES // 3)
    assert (hearer.heard, hearer.late) == ([], [4] * 4)
    hearer.take(100 * MILLISECOND, 3)
    assert hearer.heard == [3, 4]


@pytest.mark.parametrize("seed", range(50))
def test_any_network_gives_what_came_in_order_within_the_longest_wait(seed: int) -> None:
    """All that comes is handed over once, or is late; numbers rise; nobody waits longer than is allowed."""
    chance = Random(seed)
    loss, jitter = chance.choice((0.0, 0.2)), chance.choice((0, 1, 5, 20)) * MILLISECOND
    sent = [(number, number * MILLISECOND + chance.randint(0, jitter)) for number in range(400)]
    arriving = sorted((time, number) for number, time in sent if chance.random() >= loss)
    hearer, came = Hearer(), dict[int, int]()
    for time, number in arriving:
        while (at := hearer.stream.releases_at()) is not None and at <= time:
            before = len(hearer.heard)
            hearer.wake(at)
            assert all(at - came[each] <= LONGEST for each in hearer.heard[before:])
        came[number] = time
        before = len(hearer.heard)
        hearer.take(time, number)
        assert all(time - came[each] <= LONGEST for each in hearer.heard[before:])
    hearer.wake(arriving[-1][0] + LONGEST)
    assert sorted(hearer.heard + hearer.late) == sorted(came)
    assert hearer.heard == sorted(hearer.heard)
    if jitter <= MILLISECOND:
        assert not hearer.late, "nothing was overtaken"
    elif not loss and jitter == 5 * MILLISECOND:
        assert len(hearer.late) < 20, "those from which it learned"


def test_a_stream_that_ends_gives_what_it_holds() -> None:
    hearer = Hearer()
    hearer.learn(4 * MILLISECOND)
    hearer.take(0, 9, 6)
    assert [each.counter for each in hearer.stream.finish()] == [6, 9]
    assert hearer.stream.releases_at() is None


# --- many streams, and a timer ---


class Buffer:
    """A reorder buffer with its timer, as its users have it."""

    def __init__(self) -> None:
        self.buffer, self.happened = ReorderBuffer(), list[str]()
        self.unread = 0
        self.timer = ReleaseTimer(self.buffer, self._release, self._read)

    def take(self, stream: Stream, counter: int) -> bool:
        ready = self.buffer.take(stream, said(counter), monotonic_ns())
        self.timer.update()
        self.happened += [str(each.counter) for each in ready or ()]
        return ready is not None

    def _read(self) -> bool:
        self.unread -= 1
        return self.unread < 0

    def _release(self, drained: bool) -> None:
        self.happened += [
            "timer" if drained else "flood",
            *(str(each.counter) for each in self.buffer.release(monotonic_ns())),
        ]


def test_a_buffer_says_when_it_has_something_to_release() -> None:
    async def test() -> None:
        buffer, stream = Buffer(), Stream(5 * MILLISECOND)
        for counter in (0, 2, 1):
            assert buffer.take(stream, counter) == (counter != 1)
        assert buffer.happened == ["0", "2"]
        assert stream.hold > 0, "it was late, if hardly"
        stream.hold = 2 * MILLISECOND
        assert buffer.take(stream, 5)
        assert buffer.take(stream, 4)
        assert not buffer.take(stream, 1), "late"
        assert buffer.happened == ["0", "2"]
        await asyncio.sleep(0.05)
        assert buffer.happened == ["0", "2", "timer", "4", "5"]
        assert buffer.take(stream, 6)
        await asyncio.sleep(0.01)
        assert buffer.happened[-2:] == ["5", "6"], "the timer is not set for what is not held"

    asyncio.run(test())


@pytest.mark.parametrize(("turns", "found"), [(5, "timer"), (MAX_POSTPONED, "timer"), (MAX_POSTPONED + 1, "flood")])
def test_what_has_arrived_is_read_before_anything_is_released(turns: int, found: str) -> None:
    async def test() -> None:
        buffer, stream = Buffer(), Stream(5 * MILLISECOND)
        buffer.take(stream, 0)
        stream.hold = MILLISECOND
        buffer.take(stream, 2)
        buffer.unread = turns
        while len(buffer.happened) < 2:
            await asyncio.sleep(0.001)
        assert buffer.happened == ["0", found, "2"]
        assert buffer.unread == (-1 if found == "timer" else 0)

    asyncio.run(asyncio.wait_for(test(), 10))


def test_the_timer_is_set_for_the_first_of_all_streams_and_as_often_as_needed() -> None:
    async def test() -> None:
        buffer, streams = Buffer(), [Stream(900 * MILLISECOND), Stream(900 * MILLISECOND)]
        for stream, hold in zip(streams, (300, 1), strict=True):
            buffer.take(stream, 0)
            stream.hold = hold * MILLISECOND
        buffer.take(streams[0], 2)
        buffer.take(streams[0], 1)
        assert buffer.happened == ["0", "0", "1", "2"], "2 waits for nothing any more"
        began = monotonic_ns()
        buffer.take(streams[0], 10)
        buffer.take(streams[1], 20)
        while "20" not in buffer.happened:
            await asyncio.sleep(0.001)
        assert monotonic_ns() - began < 250 * MILLISECOND, (
            "what came later is held less, and need not wait for the other"
        )
        while "10" not in buffer.happened:
            await asyncio.sleep(0.01)
        assert monotonic_ns() - began >= 300 * MILLISECOND
        assert [each for each in buffer.happened[4:] if each != "timer"] == ["20", "10"]

    asyncio.run(asyncio.wait_for(test(), 10))


def test_a_buffer_that_is_cleared_releases_nothing() -> None:
    async def test() -> None:
        buffer = Buffer()
        for _ in range(2):
            stream = Stream(5 * MILLISECOND)
            buffer.take(stream, 0)
            stream.hold = MILLISECOND
            buffer.take(stream, 2)
        assert buffer.buffer.releases_at() is not None
        buffer.buffer.clear()
        buffer.timer.cancel()
        assert buffer.buffer.releases_at() is None
        await asyncio.sleep(0.02)
        assert buffer.happened == ["0", "0"]

    asyncio.run(test())


def test_a_stream_that_is_finished_is_not_waited_for() -> None:
    buffer, stream = ReorderBuffer(), Stream(5 * MILLISECOND)
    buffer.take(stream, said(0), 0)
    stream.hold = MILLISECOND
    assert buffer.take(stream, said(2), 0) == []
    assert buffer.releases_at() == MILLISECOND
    assert [each.counter for each in buffer.finish(stream)] == [2]
    assert buffer.releases_at() is None
