"""What was delivered and waits for the application: packets, opened only when the application reads, and views."""

import asyncio
from collections import deque
from itertools import repeat

from ordercast.live.events import Message, Origin, View
from ordercast.live.host.message_fragments import MessageReassembler, messages_in
from ordercast.model.units import Packet

_CACHED_DESTINATIONS = 1024  # sets of destinations: most groups use few


class Inbox:
    """A queue with an end: when the group is over, what is left can be read, and then the reason is raised."""

    def __init__(self, names: tuple[str, ...], max_message_size: int) -> None:
        self._names = names
        self.reassembler = MessageReassembler(max_message_size)
        self._queue: deque[Packet | View] = deque()
        self._position = self._view = 0  # of the next message to be read
        self._destinations: dict[int, tuple[str, ...]] = {}  # names by mask, of those that occurred
        self._arrived = asyncio.Event()
        self._end: BaseException | None = None
        self.bytes = 0
        """Bytes of payloads that wait for the application."""
        self.delivered = [0] * len(names)
        """Messages that were put here, by sender."""

    @property
    def too_large(self) -> int:
        """Messages that exceeded the maximum size, and were dropped."""
        return self.reassembler.too_large

    def put(self, packet: Packet) -> None:
        """Adds a packet that was delivered."""
        self._queue.append(packet)
        self.bytes += len(packet.payload)
        self.delivered[packet.source] += messages_in(packet)
        self._arrived.set()

    def put_view(self, view: View) -> None:
        """Adds a change of membership, at its place among the packets."""
        self._queue.append(view)
        self._arrived.set()

    def end(self, reason: BaseException) -> None:
        """Nothing more will come; `reason` is raised when everything was read."""
        self._end = reason
        self._arrived.set()

    def take(self) -> list[Message] | View | None:
        """The next view, or the messages of the next packet that has, or completes, any; None: nothing waits."""
        while self._queue:
            found = self._queue.popleft()
            if isinstance(found, View):
                self._view = found.number
                for name in found.left:
                    self.reassembler.forget(self._names.index(name))
                return found
            self.bytes -= len(found.payload)
            messages = self._messages(found)
            if messages:
                return messages
        return None

    async def wait(self) -> None:
        """Waits for the next arrival, after `take` has found nothing; raises the reason if there is an end.

        Several readers may wait: the first that runs takes what has arrived, so each must call `take` again.
        """
        if self._end is not None:
            raise self._end.with_traceback(None)  # one error for all calls: it must not collect their tracebacks
        self._arrived.clear()
        await self._arrived.wait()

    def _messages(self, packet: Packet) -> list[Message]:
        payloads, position = self.reassembler.messages(packet), self._position
        count = len(payloads)
        self._position += count or messages_in(packet)  # one that is too large counts: all members drop it
        sender, destinations = self._names[packet.source], self._destinations.get(packet.destinations)
        if destinations is None:
            destinations = self._names_of(packet.destinations)
        origin = Origin(packet.priority, destinations, position, self._view)
        if count == 1:
            return [Message(sender, payloads[0], 0, origin)]
        return list(map(Message, repeat(sender), payloads, range(count), repeat(origin)))

    def _names_of(self, destinations: int) -> tuple[str, ...]:
        names = tuple(name for place, name in enumerate(self._names) if destinations >> place & 1)
        if len(self._destinations) < _CACHED_DESTINATIONS:
            self._destinations[destinations] = names
        return names
