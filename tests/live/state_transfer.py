"""States for tests, and a donor and a joiner without a group."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

from ordercast.live.state_transfer.connection import Request
from ordercast.live.state_transfer.donor import Donor
from ordercast.live.state_transfer.joiner import Loaded, Source, StateLoader
from ordercast.live.transport.addresses import Address
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.wire.keys import GroupKeys
from tests.live.ports import HERE, free_port

KEYS = GroupKeys({1: b"k" * 32})
OTHER_KEYS = GroupKeys({1: b"o" * 32})
MEMBERS = tuple(Incarnation(name, number, "x") for name, number in (("A", 10), ("B", 11), ("D", 12), ("E", 13)))
VIEW = GroupView(3, MEMBERS, (0, 1, 4, 5), b"the tag!", 6)
D, E = MEMBERS[2:]
FAILURE_TIMEOUT = 0.4


class Bytes:
    """A state of bytes."""

    def __init__(self, value: bytes = b"") -> None:
        self.value = value
        self.saves = self.loads = 0

    def save(self) -> Any:
        self.saves += 1
        return self.value

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        self.loads += 1
        found = bytearray()
        async for part in parts:
            found += part
        self.value = bytes(found)


def new_donor(state: Any, *, keys: GroupKeys | None = KEYS, **options: Any) -> tuple[Donor, Address]:
    address = Address(HERE, free_port(socket.SOCK_STREAM))
    times = {"failure_timeout": FAILURE_TIMEOUT, "state_timeout": 25.0}
    given = {**times, "is_busy": lambda: False, "name": "A", **options}
    return Donor(state, address, "orders", keys=lambda: keys, **given), address


def offering(state: Any, **options: Any) -> tuple[Donor, Address]:
    """A donor whose application is at the place of the view."""
    donor, address = new_donor(state, **options)
    donor.offer(VIEW, [D])
    donor.save(VIEW.number)
    return donor, address


async def load(
    state: Any, *addresses: Address, keys: GroupKeys | None = KEYS, me: Incarnation = D, **options: Any
) -> Loaded:
    is_gone: Callable[[], bool] = options.pop("is_gone", lambda: False)
    donors = [Source(name, node, each, is_gone) for node, (name, each) in enumerate(zip("AB", addresses, strict=False))]
    request = Request(VIEW.number, options.pop("tag", VIEW.tag), me.name, me.number)
    given = {"failure_timeout": FAILURE_TIMEOUT, "state_timeout": 25.0, **options}
    return await StateLoader(state, request, donors, group="orders", keys=keys, **given).load()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.005)
