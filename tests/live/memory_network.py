"""Members in one event loop whose datagrams go through memory.

A group opens within milliseconds, and any datagram can be put in as if it had come from the network.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

import ordercast.live.open_group
from ordercast.live.group import Group
from ordercast.live.host.heartbeat_thread import HeartbeatThread
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.fragmentation import DatagramReassembler
from ordercast.model.errors import GroupClosed
from tests.live.groups import join, member_of

PLACES: dict[Address, "MemoryEndpoint"] = {}
SENT: deque[bytes] = deque(maxlen=2000)
"""What members said last, to make nonsense of."""


class MemoryEndpoint:
    """What `Endpoint` does, with a queue for a socket."""

    has_multicast = False

    def __init__(self, own: Address, others: Sequence[Address], **_: object) -> None:
        self._own, self._others = own, others
        self._queue: deque[bytes] = deque()
        self._receive: Callable[[memoryview], None] = lambda _: None
        self._drained: Callable[[], None] = lambda: None
        self._waiting = False
        self.assembler = DatagramReassembler()
        self.datagrams_in = self.datagrams_out = self.bytes_in = self.bytes_out = 0
        self.not_sent: Counter[str] = Counter()
        self.not_received: Counter[str] = Counter()
        self.receive_buffer = 1 << 20
        self.packet_size, self.links = 0, None  # as on one machine
        PLACES[own] = self

    @property
    def incomplete(self) -> int:
        return self.assembler.given_up

    def reach(self, others: Sequence[Address]) -> None:
        """Others receive what is sent to all."""
        self._others = others

    def knows(self, addresses: Sequence[Address]) -> None:
        """Who put something in is not known here: all are strangers."""

    def start(self, receive: Callable[[memoryview], None], drained: Callable[[], None], _: Callable[[], None]) -> None:
        self._receive, self._drained = receive, drained

    def close(self) -> None:
        PLACES.pop(self._own, None)
        self._queue.clear()

    def put(self, datagram: bytes) -> None:
        """Comes from the network."""
        self._queue.append(datagram)
        if not self._waiting:
            self._waiting = True
            asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        self._waiting = False
        self.read()
        self._drained()

    def read(self) -> bool:
        while self._queue:
            datagram = self._queue.popleft()
            if datagram:
                for part in self.assembler.take(memoryview(datagram), len(datagram), "somebody"):
                    self.datagrams_in += 1
                    self._receive(memoryview(part))
        return True

    def send_to_all(self, datagram: bytes) -> None:
        for address in self._others:
            self.send(datagram, address)

    def send(self, datagram: bytes, address: Address) -> None:
        SENT.append(datagram)
        if address in PLACES:
            PLACES[address].put(datagram)


def use_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on groups need no sockets."""
    PLACES.clear()
    monkeypatch.setattr(ordercast.live.open_group, "Endpoint", MemoryEndpoint)
    monkeypatch.setattr(ordercast.live.open_group, "open_socket", lambda address: address)
    monkeypatch.setattr(ordercast.live.open_group, "contacts_of", lambda _: [])  # those of other processes
    monkeypatch.setattr(HeartbeatThread, "ticked", lambda *_: None)  # memory is that of one thread


@asynccontextmanager
async def group_in_memory(*names: str, **options: Any) -> AsyncIterator[list[Group]]:
    """An open group; in the end nobody closes or says anything: it is just gone."""
    SENT.clear()
    options = {"insecure": True, **options}
    groups = list(await asyncio.gather(*(join("memory", name=name, members=names, **options) for name in names)))
    try:
        yield groups
    finally:
        for group in groups:
            member_of(group).ending.end(GroupClosed("the test is over"))
            member_of(group).ending.disconnect()


async def settle(turns: int = 20) -> None:
    """Until what was said is heard, and what follows from it."""
    for _ in range(turns):
        await asyncio.sleep(0)
