"""Each stream of datagrams in the order in which it was sent, where the network lets some overtake others.

Every datagram of a stream has the next number. One that comes too early waits a little for those before it; then it is
handed over, and what comes still later is late, which is a loss that the protocols mend.

How little: as long as the overtaken were late here before, and a quarter more; at first not at all. So where a network
keeps the order nothing ever waits, and a loss is seen as soon as the next datagram comes. Where it does not, each wait
in vain makes the next one shorter, and whoever is later than the longest wait is not waited for.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from ordercast.model.config import MICROSECOND, SECOND
from ordercast.wire.datagram import Datagram

MAX_WAITING = 256
"""Datagrams of a stream that may wait: with more, or with more bytes, nothing is waited for any longer."""
MAX_WAITING_BYTES = 1 << 20
_REMEMBERED = 64  # numbers that were passed over, and may still show how late they are
_SHORTEST = 100 * MICROSECOND  # timers are no finer: less is nothing


class Stream:
    """One stream. It begins with whatever comes first; times are handed in, and never go back."""

    __slots__ = ("_bytes", "_longest", "_passed_over", "_waiting", "due", "hold")

    def __init__(self, longest: int) -> None:
        """`longest`: nanoseconds that a datagram may wait."""
        self.due = -1
        """The next number; -1: any."""
        self.hold = 0
        """Nanoseconds that a datagram waits now."""
        self._longest, self._bytes = longest, 0
        self._waiting: dict[int, tuple[Datagram, int]] = {}  # by number, with its time; in the order in which they came
        self._passed_over: deque[tuple[int, int, int]] = deque(maxlen=_REMEMBERED)  # first, end, when it was noticed

    def take(self, said: Datagram, now: int) -> list[Datagram] | None:
        """What can be handed over when this one has come, in order; None: it is late, or came before."""
        counter = said.counter
        if self.due < 0:
            self.due = counter
        if counter < self.due:
            self._learn_from_late(counter, now)
            return None
        if counter == self.due:
            if self._waiting:
                self._learn(now - self._first_came())
            self.due += 1
            return [said, *self._next_ones()]
        if counter in self._waiting:  # a seal may have forgotten it: see `ReplayWindows`
            return None
        self._waiting[counter] = said, now
        self._bytes += len(said.body)
        return self.release(now)

    def release(self, now: int) -> list[Datagram]:
        """What has waited enough, with all that waits before it and right behind it, in order."""
        full = len(self._waiting) > MAX_WAITING or self._bytes > MAX_WAITING_BYTES
        through = -1
        for counter, (_, came) in self._waiting.items():
            if came + self.hold > now and not full:
                break
            through = max(through, counter)
        found = []
        for counter in sorted(counter for counter in self._waiting if counter <= through):
            if counter > self.due:
                self._passed_over.append((self.due, counter, self._first_came()))
                self.hold -= self.hold // 8
                if self.hold < _SHORTEST:
                    self.hold = 0
            found.append(self._take_out(counter))
        return found + self._next_ones()

    def wakes_at(self) -> int | None:
        """When something has waited enough; None: nothing waits."""
        return self._first_came() + self.hold if self._waiting else None

    def all_that_waits(self) -> list[Datagram]:
        """In order; nothing is waited for any more."""
        return [self._take_out(counter) for counter in sorted(self._waiting)]

    def _first_came(self) -> int:
        return next(iter(self._waiting.values()))[1]

    def _take_out(self, counter: int) -> Datagram:
        said, _ = self._waiting.pop(counter)
        self._bytes -= len(said.body)
        self.due = counter + 1
        return said

    def _next_ones(self) -> list[Datagram]:
        found = []
        while self.due in self._waiting:
            found.append(self._take_out(self.due))
        return found

    def _learn_from_late(self, counter: int, now: int) -> None:
        for first, end, noticed in self._passed_over:
            if first <= counter < end:
                self._learn(now - noticed)

    def _learn(self, lateness: int) -> None:
        if lateness <= self._longest:
            self.hold = max(self.hold, min(lateness + lateness // 4, self._longest))


class ReorderBuffer:
    """Hands over the datagrams of many streams, and wakes up for those that have waited enough."""

    def __init__(
        self, hand_over: Callable[[Datagram], None], read_all: Callable[[], None], drained: Callable[[], None]
    ) -> None:
        """`read_all`: what has come already need not be waited for; `drained`: the end of what is handed over late."""
        self._hand_over, self._read_all, self._drained = hand_over, read_all, drained
        self._waiting: set[Stream] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = 0

    def take(self, stream: Stream, said: Datagram) -> bool:
        """Hands it over now or later; False: it is late, or came before."""
        if said.counter == stream.due and stream not in self._waiting:  # as most are
            stream.due += 1
            self._hand_over(said)
            return True
        found = stream.take(said, time.monotonic_ns())
        if found is None:
            return False
        self._hand_over_all(stream, found)
        self._set_timer()
        return True

    def finish(self, stream: Stream) -> None:
        """The stream is at its end."""
        self._hand_over_all(stream, stream.all_that_waits())

    def close(self) -> None:
        """Nothing is handed over any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hand_over_all(self, stream: Stream, found: list[Datagram]) -> None:
        if stream.wakes_at() is None:
            self._waiting.discard(stream)
        else:
            self._waiting.add(stream)
        for said in found:
            self._hand_over(said)

    def _set_timer(self) -> None:
        if not self._waiting:
            return
        earliest = min(at for stream in self._waiting if (at := stream.wakes_at()) is not None)
        if self._timer is not None:
            if self._wakes_at <= earliest:
                return
            self._timer.cancel()
        self._wakes_at = earliest
        wait = max(earliest - time.monotonic_ns(), 0) / SECOND
        self._timer = asyncio.get_running_loop().call_later(wait, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._read_all()
        now = time.monotonic_ns()
        for stream in list(self._waiting):
            if stream in self._waiting:  # who hears may close us
                self._hand_over_all(stream, stream.release(now))
        self._drained()
        self._set_timer()
