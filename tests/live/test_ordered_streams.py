"""Streams in their order, with the timer that releases what was held long enough; by a clock of the test."""

from collections import Counter
from collections.abc import Callable

import pytest

from ordercast.live.transport.endpoint import MAX_POSTPONED
from ordercast.live.transport.reorder_buffer import (
    MAX_HELD,
    MAX_HELD_BYTES,
    OrderedStreams,
    ReorderBuffer,
    Stream,
)
from ordercast.model.config import MILLISECOND
from ordercast.wire.datagram import Datagram
from tests.live.hand_clock import Clock

HOLD = 4 * MILLISECOND


def said(counter: int, size: int = 10) -> Datagram:
    return Datagram(0, 1, 7, counter, bytes(size))


class Receiver:
    """What a member does with streams."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.happened: list[str] = []
        self.dropped: Counter[str] = Counter()
        self.unread = 0
        """How often there is more to read."""
        self.streams = OrderedStreams(
            lambda datagram: self.happened.append(str(datagram.counter)),
            self.read,
            self.dropped,
            lambda drained: self.happened.append(f"released {drained}"),
            lambda datagram: self.hold(datagram.counter),
        )
        self.ends_at = -1

    def hold(self, counter: int) -> None:
        self.happened.append(f"({counter})")
        if counter == self.ends_at:
            self.streams.close()

    def read(self) -> bool:
        self.unread -= 1
        return self.unread < 0

    def stream(self, *counters: int, hold: int = HOLD) -> Stream:
        found = Stream(1000 * MILLISECOND)
        self.take(found, 0)
        found.hold = hold
        self.take(found, *counters)
        return found

    def take(self, stream: Stream, *counters: int) -> None:
        for counter in counters:
            self.streams.take(stream, said(counter))


def by_clock(test: Callable[[Clock], None]) -> Callable[[], None]:
    """Gives a test a clock, which is that of the machine meanwhile."""

    def run() -> None:
        clock = Clock()
        with clock.running():
            test(clock)

    run.__name__ = test.__name__
    return run


@by_clock
def test_what_comes_in_order_is_processed_at_once_and_sets_no_timer(clock: Clock) -> None:
    one = Receiver(clock)
    one.stream(1, 2)
    assert one.happened == ["(0)", "1", "2"], "the first one says where the stream begins"
    assert clock.due == []


@by_clock
def test_what_is_ahead_is_held_until_the_gap_is_closed(clock: Clock) -> None:
    one = Receiver(clock)
    stream = one.stream(2, 3)
    assert one.happened == ["(0)"]
    one.take(stream, 1)
    assert one.happened == ["(0)", "(1)", "(2)", "(3)"]
    one.take(stream, 4)
    assert one.happened[-1] == "4"
    one.take(stream, 4)
    assert one.dropped == {"late": 1}


@by_clock
def test_what_is_held_is_released_when_its_time_is_over_and_not_before(clock: Clock) -> None:
    one = Receiver(clock)
    one.stream(2)
    [handle] = clock.waiting()
    assert handle.at == pytest.approx(0.004)
    clock.advance(0.0039)
    assert one.happened == ["(0)"]
    clock.advance(0.0002)
    assert one.happened == ["(0)", "(2)", "released True"]
    assert clock.waiting() == []


@by_clock
def test_one_timer_serves_all_streams_the_earliest_first(clock: Clock) -> None:
    one = Receiver(clock)
    late = one.stream(2, hold=8 * MILLISECOND)
    one.take(late, 4)
    assert len(clock.waiting()) == 1, "what comes later is not due earlier"
    first = clock.waiting()[0]
    clock.advance(0.001)
    one.take(late, 6)
    assert clock.waiting() == [first]
    one.stream(12, hold=2 * MILLISECOND)
    [handle] = clock.waiting()
    assert handle.at == pytest.approx(0.003)
    clock.advance(0.0021)
    assert one.happened[-2:] == ["(12)", "released True"]
    assert [handle.at for handle in clock.waiting()] == [pytest.approx(0.008)]


@by_clock
def test_a_release_waits_for_what_has_arrived_and_not_for_ever(clock: Clock) -> None:
    one = Receiver(clock)
    one.unread = 2
    one.stream(2)
    clock.advance(1)
    assert one.happened == ["(0)", "(2)", "released True"]
    assert one.unread == -1, "it was asked three times"
    one.unread = 1000
    one.stream(2)
    clock.advance(1)
    assert one.happened[-2:] == ["(2)", "released False"]
    assert one.unread == 1000 - MAX_POSTPONED - 1
    one.stream(2)
    clock.advance(1)
    assert one.unread == 1000 - 2 * (MAX_POSTPONED + 1), "each release may be postponed as often"


@by_clock
def test_a_stream_at_its_end_gives_what_it_holds_and_is_not_waited_for(clock: Clock) -> None:
    one = Receiver(clock)
    stream = one.stream(2, 5)
    one.streams.finish(stream)
    assert one.happened == ["(0)", "(2)", "(5)"]
    assert one.streams.buffer.releases_at() is None
    clock.advance(1)
    assert one.happened == ["(0)", "(2)", "(5)", "released True"]
    assert clock.waiting() == []


@by_clock
def test_when_all_is_closed_nothing_is_processed_any_more(clock: Clock) -> None:
    one = Receiver(clock)
    one.stream(2)
    one.streams.close()
    assert clock.waiting() == []
    assert one.streams.timer.handle is None
    clock.advance(1)
    assert one.happened == ["(0)"]
    assert one.streams.buffer.release(10**12) == []


@by_clock
def test_what_is_processed_may_be_the_end_of_all(clock: Clock) -> None:
    one = Receiver(clock)
    stream = one.stream(2, 3, 4)
    one.ends_at = 3
    one.take(stream, 1)
    assert one.happened == ["(0)", "(1)", "(2)", "(3)"]


@by_clock
def test_without_another_way_what_was_held_is_processed_like_the_rest(clock: Clock) -> None:
    heard: list[int] = []
    released: list[bool] = []
    dropped: Counter[str] = Counter()
    streams = OrderedStreams(lambda datagram: heard.append(datagram.counter), lambda: True, dropped, released.append)
    stream = Stream(HOLD)
    for counter in (5, 6, 8, 7):
        streams.take(stream, said(counter))
    assert heard == [5, 6, 8], "where nothing was ever late nothing waits"
    assert dropped == {"late": 1}
    assert clock.waiting() == []


# --- bounds of one stream ---


def test_so_many_datagrams_and_bytes_are_held_and_no_more() -> None:
    for size, most in ((1, MAX_HELD), (MAX_HELD_BYTES // 4, 4)):
        stream = Stream(HOLD)
        stream.take(said(0), 0)
        stream.hold = HOLD
        for counter in range(2, 2 + most):
            assert stream.take(said(counter, size), 0) == []
        found = stream.take(said(2 + most, 1), 0)
        assert found is not None
        assert len(found) == most + 1, "all of them are released"
        assert (stream.held, stream.held_bytes) == ({}, 0)


def test_a_wait_that_is_as_fine_as_timers_are_is_kept_and_a_finer_one_is_none() -> None:
    for hold, left in ((114_285, 100_000), (114_284, 0)):
        stream = Stream(1000 * MILLISECOND)
        stream.take(said(0), 0)
        stream.hold = hold
        stream.take(said(2), 0)
        assert len(stream.release(hold)) == 1
        assert stream.hold == left


def test_a_stream_at_its_end_is_forgotten() -> None:
    buffer, stream = ReorderBuffer(), Stream(HOLD)
    buffer.take(stream, said(0), 0)
    stream.hold = HOLD
    buffer.take(stream, said(2), 0)
    assert buffer.holding == {stream}
    assert [datagram.counter for datagram in buffer.finish(stream)] == [2]
    assert buffer.holding == set()


def test_what_comes_before_the_beginning_of_a_stream_or_again_does_not_show_how_late_others_are() -> None:
    stream = Stream(1000 * MILLISECOND)
    stream.take(said(41), 0)
    assert stream.take(said(40), 5 * MILLISECOND) is None
    stream.take(said(43), 0)
    assert stream.take(said(43), 5 * MILLISECOND) is None, "a duplicate of what came behind a gap"
    assert stream.hold == 0
    assert stream.take(said(42), 8 * MILLISECOND) is None
    assert stream.hold == 10 * MILLISECOND, "a quarter more than it was late"


def test_what_is_as_late_as_may_be_waited_for_is_waited_for() -> None:
    for lateness, hold in ((HOLD, HOLD), (HOLD + 1, 0)):
        stream = Stream(HOLD)
        stream.take(said(0), 0)
        stream.take(said(2), 0)
        stream.take(said(1), lateness)
        assert stream.hold == hold


def test_a_stream_that_holds_nothing_any_more_is_forgotten() -> None:
    buffer, stream = ReorderBuffer(), Stream(HOLD)
    buffer.take(stream, said(0), 0)
    stream.hold = HOLD
    buffer.take(stream, said(2), 0)
    assert [datagram.counter for datagram in buffer.release(HOLD)] == [2]
    assert buffer.holding == set()
