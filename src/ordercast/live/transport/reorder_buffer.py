"""The reorder buffer: each stream of datagrams in the order in which it was sent, where the network reorders.

The datagrams of a stream are numbered. One that arrives early is held for a while for those before it; then it is
released, and what arrives still later is late: a loss, which the protocols repair.

For how long: as long as late ones were late before, and a quarter more; at first not at all. So where a network keeps
the order nothing is ever held, and a loss is detected as soon as the next datagram arrives. Where it does not, each
datagram that is held in vain shortens the next time, and what is later than the maximum is not waited for.

A `Stream` and a `ReorderBuffer` have no clock: times are passed in. `OrderedStreams` is what a member and a relay use:
a buffer with a timer in an event loop.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

from ordercast.live.transport.endpoint import MAX_POSTPONED
from ordercast.model.config import MICROSECOND, SECOND
from ordercast.wire.datagram import Datagram

MAX_HELD = 256
"""Datagrams of a stream that may be held: with more of them, or more bytes, all are released."""
MAX_HELD_BYTES = 1 << 20
_REMEMBERED = 64  # ranges that were skipped, and may still show how late they are
_MIN_HOLD = 100 * MICROSECOND  # timers are no finer: less counts as 0


class Stream:
    """One stream. It begins with whatever arrives first; times are passed in, and never decrease."""

    __slots__ = ("_skipped", "expected", "held", "held_bytes", "hold", "max_hold")

    def __init__(self, max_hold: int) -> None:
        """`max_hold`: nanoseconds that a datagram may be held."""
        self.expected = -1
        """The number of the next datagram; -1: any."""
        self.hold = 0
        """Nanoseconds that a datagram is held now."""
        self.held: dict[int, tuple[Datagram, int]] = {}
        """By number, with the time of arrival; in the order of arrival."""
        self.max_hold, self.held_bytes = max_hold, 0
        self._skipped: deque[tuple[int, int, int]] = deque(maxlen=_REMEMBERED)  # first, end, when it was noticed

    def take(self, datagram: Datagram, now: int) -> list[Datagram] | None:
        """What is ready when this one has arrived, in order; None: it is late, or a duplicate."""
        counter = datagram.counter
        if self.expected < 0:
            self.expected = counter
        if counter < self.expected:
            self._learn_from_late(counter, now)
            return None
        if counter == self.expected:
            if self.held:
                self._learn(now - self._first_arrival())
            self.expected += 1
            return [datagram, *self._following()]
        if counter in self.held:  # the replay window may have forgotten it: see `ReplayWindows`
            return None
        self.held[counter] = datagram, now
        self.held_bytes += len(datagram.body)
        return self.release(now)

    def release(self, now: int) -> list[Datagram]:
        """What was held long enough, with all that is held before it and right behind it, in order."""
        full = len(self.held) > MAX_HELD or self.held_bytes > MAX_HELD_BYTES
        through = -1
        for counter, (_, arrived) in self.held.items():
            if arrived + self.hold > now and not full:
                break
            through = max(through, counter)
        ready = []
        for counter in sorted(counter for counter in self.held if counter <= through):
            if counter > self.expected:
                self._skipped.append((self.expected, counter, self._first_arrival()))
                self.hold -= self.hold // 8
                if self.hold < _MIN_HOLD:
                    self.hold = 0
            ready.append(self._take_out(counter))
        return ready + self._following()

    def releases_at(self) -> int | None:
        """When something was held long enough; None: nothing is held."""
        return self._first_arrival() + self.hold if self.held else None

    def finish(self) -> list[Datagram]:
        """All that is held, in order; the stream is at its end."""
        return [self._take_out(counter) for counter in sorted(self.held)]

    def _first_arrival(self) -> int:
        return next(iter(self.held.values()))[1]

    def _take_out(self, counter: int) -> Datagram:
        datagram, _ = self.held.pop(counter)
        self.held_bytes -= len(datagram.body)
        self.expected = counter + 1
        return datagram

    def _following(self) -> list[Datagram]:
        found = []
        while self.expected in self.held:
            found.append(self._take_out(self.expected))
        return found

    def _learn_from_late(self, counter: int, now: int) -> None:
        for first, end, noticed in self._skipped:
            if first <= counter < end:
                self._learn(now - noticed)

    def _learn(self, lateness: int) -> None:
        if lateness <= self.max_hold:
            self.hold = max(self.hold, min(lateness + lateness // 4, self.max_hold))


class ReorderBuffer:
    """Many streams, and when the first of them has something to release."""

    def __init__(self) -> None:
        self.holding: set[Stream] = set()

    def take(self, stream: Stream, datagram: Datagram, now: int) -> list[Datagram] | None:
        """What is ready when this one has arrived, in order; None: it is late, or a duplicate."""
        ready = stream.take(datagram, now)
        self._update(stream)
        return ready

    def release(self, now: int) -> list[Datagram]:
        """What was held long enough, of all streams."""
        ready = []
        for stream in list(self.holding):
            ready += stream.release(now)
            self._update(stream)
        return ready

    def finish(self, stream: Stream) -> list[Datagram]:
        """All that is held of a stream that is at its end."""
        ready = stream.finish()
        self._update(stream)
        return ready

    def releases_at(self) -> int | None:
        """When something was held long enough; None: nothing is held."""
        return min((at for stream in self.holding if (at := stream.releases_at()) is not None), default=None)

    def clear(self) -> None:
        """Releases nothing any more."""
        self.holding.clear()

    def _update(self, stream: Stream) -> None:
        if stream.held:
            self.holding.add(stream)
        else:
            self.holding.discard(stream)


class ReleaseTimer:
    """Calls back when a buffer has something to release. Used inside one event loop.

    What has arrived need not be waited for: so when the time has come, `read` is called first. While it returns False,
    which means that more has arrived than it has read, the release is postponed, `MAX_POSTPONED` times at most.
    `release` is called with what `read` returned last.
    """

    def __init__(self, buffer: ReorderBuffer, release: Callable[[bool], None], read: Callable[[], bool]) -> None:
        self._buffer, self._release, self._read = buffer, release, read
        self.handle: asyncio.TimerHandle | None = None
        self._at = self._postponed = 0

    def update(self) -> None:
        """Sets the timer for what the buffer holds now, unless it comes early enough."""
        earliest = self._buffer.releases_at()
        if earliest is None:
            return
        if self.handle is not None:
            if self._at <= earliest:
                return
            self.handle.cancel()
        self._at = earliest
        wait = max(earliest - time.monotonic_ns(), 0) / SECOND
        self.handle = asyncio.get_running_loop().call_later(wait, self._due)

    def cancel(self) -> None:
        """Does not call back any more."""
        if self.handle is not None:
            self.handle.cancel()
            self.handle = None

    def _due(self) -> None:
        self.handle = None
        drained = self._read()
        if drained or self._postponed >= MAX_POSTPONED:
            self._postponed = 0
            self._release(drained)
        else:
            self._postponed += 1
        self.update()


class OrderedStreams:
    """Processes the datagrams of several streams, each in its stream's order. Used inside one event loop."""

    def __init__(
        self,
        process: Callable[[Datagram], None],
        read: Callable[[], bool],
        dropped: Counter[str],
        released: Callable[[bool], None],
        process_held: Callable[[Datagram], None] | None = None,
    ) -> None:
        """`process`: is handed each datagram when it is in its order; `dropped`: counts those that are `late`.

        `read` is called before anything is released since its time has come, `released` after it: see `ReleaseTimer`.
        `process_held`: instead of `process`, for what was held, or became ready together with other datagrams.
        """
        self._process, self._dropped, self._released = process, dropped, released
        self._process_held = process if process_held is None else process_held
        self.buffer = ReorderBuffer()
        self.timer = ReleaseTimer(self.buffer, self._release, read)
        self._closed = False

    def take(self, stream: Stream, datagram: Datagram) -> None:
        """A datagram of this stream has arrived."""
        if datagram.counter == stream.expected and not stream.held:  # as most are
            stream.expected += 1
            self._process(datagram)
            return
        ready = self.buffer.take(stream, datagram, time.monotonic_ns())
        if ready is None:
            self._dropped["late"] += 1
        else:
            self._process_all(ready)
            self.timer.update()

    def finish(self, stream: Stream) -> None:
        """A stream is at its end: processes what is held of it."""
        self._process_all(self.buffer.finish(stream))

    def close(self) -> None:
        """Processes nothing any more."""
        self._closed = True
        self.buffer.clear()
        self.timer.cancel()

    def _release(self, drained: bool) -> None:  # noqa: FBT001 (a callback)
        self._process_all(self.buffer.release(time.monotonic_ns()))
        self._released(drained)

    def _process_all(self, datagrams: list[Datagram]) -> None:
        for datagram in datagrams:
            if not self._closed:  # what was processed before may have been the end
                self._process_held(datagram)
