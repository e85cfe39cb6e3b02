"""Several senders on one line with one queue, in virtual time: links, and one that fills the queue as TCP does."""

import heapq
from collections.abc import Callable, Sequence
from typing import Protocol

from ordercast.live.transport.link_receiver import ACKNOWLEDGE_AFTER, LinkReceiver
from ordercast.live.transport.link_sender import LinkSender
from ordercast.live.transport.path_model import ACK_DELAY, PathModel
from ordercast.live.transport.pieces import one_piece

SEGMENT = 1352
_HEADERS = 28  # of IP and UDP


class Flow(Protocol):
    """A sender with its receiver. It always has something to send."""

    received: int

    def start(self) -> None: ...

    def due_at(self) -> float | None: ...

    def tick(self) -> None: ...


class SharedLine:
    """A bottleneck of this many bytes a second, with a queue that holds what it sends in so many seconds."""

    def __init__(self, rate: float, delay: float, queue: float) -> None:
        self.rate, self.delay, self.queue, self.now = rate, delay, queue, 100.0
        self.flows: list[Flow] = []
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._count, self._busy_until = 0, 0.0

    def at(self, when: float, what: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, what))

    def put(self, size: int, arrive: Callable[[], object]) -> None:
        start = max(self.now, self._busy_until)
        if start - self.now <= self.queue:
            self._busy_until = start + size / self.rate
            self.at(self._busy_until + self.delay, arrive)

    def begin(self, flow: Flow, after: float) -> None:
        def start() -> None:
            self.flows.append(flow)
            flow.start()

        self.at(self.now + after, start)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            due = [max(when, self.now) for flow in self.flows if (when := flow.due_at()) is not None]
            self.now = min([end, *due, *(event[0] for event in self._events[:1])])
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            for flow in self.flows:
                when = flow.due_at()
                if when is not None and when <= self.now:
                    flow.tick()
            self.now += 1e-7


class LinkFlow:
    """A link."""

    def __init__(self, line: SharedLine) -> None:
        self.line, self.received = line, 0
        self.path = PathModel(SEGMENT, 0.02)
        self.sender = LinkSender(7, SEGMENT, self.path, self._write)
        self.receiver = LinkReceiver()

    def _write(self, parts: list[bytes | memoryview]) -> None:
        for heading, piece in zip(parts[::2], parts[1::2], strict=True):
            packet = bytes(heading) + bytes(piece)
            self.line.put(len(packet) + _HEADERS, lambda packet=packet: self._take(packet))  # type: ignore[misc]

    def _take(self, packet: bytes) -> None:
        for (_, _, number, datagram, index, count), piece in one_piece(memoryview(packet)):
            self.received += sum(map(len, self.receiver.take(number, datagram, index, count, piece, self.line.now)))
        if self.receiver.is_urgent or self.receiver.unacknowledged >= ACKNOWLEDGE_AFTER:
            self._acknowledge()
        else:
            self.line.at(self.line.now + ACK_DELAY, self._acknowledge)

    def _acknowledge(self) -> None:
        if self.receiver.unacknowledged:
            ranges, delay, waits_for = self.receiver.acknowledgment(self.line.now)
            pairs = list(zip(ranges[::2], ranges[1::2], strict=True))
            self.line.at(self.line.now + self.line.delay, lambda: self._acknowledged(pairs, delay / 1e6, waits_for))

    def _acknowledged(self, pairs: Sequence[tuple[int, int]], delay: float, waits_for: int) -> None:
        self.sender.acknowledged(pairs, delay, self.line.now, waits_for, closed=False)
        self.start()

    def start(self) -> None:
        while self.sender.unsent < 100_000:
            self.sender.send(bytes(24_000))
        self.sender.transmit(self.line.now)

    def due_at(self) -> float | None:
        return self.sender.due_at()

    def tick(self) -> None:
        self.sender.tick(self.line.now)
        self.start()


class FillingFlow:
    """Doubles its window in each round until something is lost, then takes 0.7 of it and grows like CUBIC."""

    def __init__(self, line: SharedLine) -> None:
        self.line, self.received = line, 0
        self._window, self._grows_fast = 10.0, True
        self._before, self._since = 10.0, 0.0
        self._next, self._highest, self._recovered = 0, -1, -1
        self._under_way: dict[int, None] = {}

    def start(self) -> None:
        while len(self._under_way) < self._window:
            number, self._next = self._next, self._next + 1
            self._under_way[number] = None
            self.line.put(
                1500,
                lambda number=number: self.line.at(  # type: ignore[misc]
                    self.line.now + self.line.delay, lambda: self._acknowledged(number)
                ),
            )

    def _acknowledged(self, number: int) -> None:
        if number not in self._under_way:
            return
        del self._under_way[number]
        self.received += 1448
        self._highest = max(self._highest, number)
        lost = [each for each in self._under_way if each < self._highest - 3]
        for each in lost:
            del self._under_way[each]
        if lost and lost[-1] > self._recovered:
            self._recovered, self._since, self._grows_fast = self._next, self.line.now, False
            self._before, self._window = self._window, max(2.0, 0.7 * self._window)
        elif self._grows_fast:
            self._window += 1
        else:
            plateau = (self._before * 0.3 / 0.4) ** (1 / 3)
            wanted = 0.4 * (self.line.now - self._since + 0.02 - plateau) ** 3 + self._before
            self._window += max(0.01, wanted - self._window) / self._window
        self.start()

    def due_at(self) -> float | None:
        return None

    def tick(self) -> None:
        pass
