"""What was delivered and waits for the application: packets, taken apart only when the application reads, and views."""

import asyncio
from collections import deque
from itertools import repeat

from ordercast.live.events import Message, Origin, View
from ordercast.live.host.batching import Reassembly, messages_in
from ordercast.model.units import Packet


class Inbox:
    """A queue with an end: when the group is over, what is left is read, and then the reason is raised."""

    def __init__(self, names: tuple[str, ...], max_message_size: int) -> None:
        self._names = names
        self._pieces = Reassembly(max_message_size)
        self._queue: deque[Packet | View] = deque()
        self._position = self._view = 0  # of the next message to be read
        self._destinations: dict[int, tuple[str, ...]] = {}  # names by mask, of those that occurred
        self._waiting: list[asyncio.Future[None]] = []
        self._end: BaseException | None = None
        self.bytes = 0
        """What waits for the application."""

    @property
    def too_large(self) -> int:
        """Messages that exceeded the maximum size, and were dropped."""
        return self._pieces.too_large

    def put(self, packet: Packet) -> None:
        """A packet was delivered."""
        self._queue.append(packet)
        self.bytes += len(packet.payload)
        if self._waiting:
            self._wake()

    def put_view(self, view: View) -> None:
        """The membership changed, between the packets before and after."""
        self._queue.append(view)
        self._wake()

    def end(self, reason: BaseException) -> None:
        """Nothing more will come."""
        self._end = reason
        self._wake()

    async def next(self) -> list[Message] | View:
        """The next view, or the messages of the next packet that has, or completes, any."""
        while True:
            while self._queue:
                found = self._queue.popleft()
                if isinstance(found, View):
                    self._view = found.number
                    return found
                self.bytes -= len(found.payload)
                messages = self._messages(found)
                if messages:
                    return messages
            if self._end is not None:
                raise self._end.with_traceback(None)  # one error for all calls: it must not collect their tracebacks
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            finally:
                if future in self._waiting:  # it was cancelled
                    self._waiting.remove(future)

    def _messages(self, packet: Packet) -> list[Message]:
        payloads = self._pieces.messages(packet)
        position = self._position
        self._position += messages_in(packet)  # one that is too large counts: all members drop it
        origin = Origin(packet.priority, self._names_of(packet.destinations), position, self._view)
        return list(map(Message, repeat(self._names[packet.source]), payloads, range(len(payloads)), repeat(origin)))

    def _names_of(self, destinations: int) -> tuple[str, ...]:
        names = self._destinations.get(destinations)
        if names is None:
            names = tuple(name for place, name in enumerate(self._names) if destinations >> place & 1)
            if len(self._destinations) < _CACHED_DESTINATIONS:
                self._destinations[destinations] = names
        return names

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


_CACHED_DESTINATIONS = 1024  # sets of destinations: most groups use few
