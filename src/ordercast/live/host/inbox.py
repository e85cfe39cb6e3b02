"""What was delivered and waits for the application: whole packets, opened only when somebody looks."""

import asyncio
from collections import deque

from ordercast.live.host.batching import Reassembly
from ordercast.model.units import Packet

Batch = tuple[int, int, list[bytes]]
"""Messages of one sender, with their priority: the sender's place among the members, the priority, the payloads."""


class Inbox:
    """A queue with an end: when the group is over, what is left is read, and then the reason is raised or told."""

    def __init__(self, largest: int) -> None:
        self._pieces = Reassembly(largest)
        self._packets: deque[Packet] = deque()
        self._waiting: list[asyncio.Future[None]] = []
        self._end: BaseException | None = None
        self.bytes = 0
        """What waits for the application."""

    @property
    def too_large(self) -> int:
        """Messages that were larger than any may be."""
        return self._pieces.too_large

    def put(self, packet: Packet) -> None:
        """A packet was delivered."""
        self._packets.append(packet)
        self.bytes += len(packet.payload)
        if self._waiting:
            self._wake()

    def end(self, reason: BaseException) -> None:
        """Nothing more will come."""
        self._end = reason
        self._wake()

    async def next(self) -> Batch:
        """The messages of the next packet that has, or completes, any."""
        while True:
            while self._packets:
                packet = self._packets.popleft()
                self.bytes -= len(packet.payload)
                messages = self._pieces.messages(packet)
                if messages:
                    return packet.source, packet.priority, messages
            if self._end is not None:
                raise self._end.with_traceback(None)  # it must not remember every call that it ended
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            finally:
                if future in self._waiting:  # it was cancelled: who asks again and again must not be remembered
                    self._waiting.remove(future)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
