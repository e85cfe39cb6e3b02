"""The members that opened a group, as one that goes on knows them: those of them that are not in it may start again.

They look for the group at each other's addresses only, and would open a second one if all of them are gone from the
first. So the oldest member tells them, one after the other, that the group is running: with an answer to a question
that they have not asked. It proves nothing, since it may be a replay: whoever waits for the group asks its sender.
"""

import asyncio
from collections.abc import Callable, Sequence

from ordercast.live.transport.addresses import Address, address_of, seen_from
from ordercast.protocols.membership.units import Find, Found

INTERVAL = 1.0
"""Seconds between two of these datagrams."""
_NOBODY = "-"  # has asked


class Founders:
    """The addresses of those that opened the group. Used inside one event loop."""

    def __init__(self, own: Address, group: str, told: Callable[[Find, str], None]) -> None:
        """`told`: answers a question, to this address."""
        self._own, self._group, self._told = own, group, told
        self._timer: asyncio.TimerHandle | None = None
        self._absent: list[Address] = []
        self._count = 0
        self.addresses: tuple[Address, ...] = ()

    def know(self, addresses: Sequence[str]) -> None:
        """These opened the group."""
        self.addresses = tuple(seen_from(self._own, address_of(text)) for text in addresses)

    def has(self, address: str) -> bool:
        """Whether the group was opened with a member there."""
        return seen_from(self._own, address_of(address)) in self.addresses

    def enter_view(self, members: Sequence[Address], place: int) -> None:
        """These are the members now; the oldest one tells the others."""
        self._absent = [address for address in self.addresses if address not in members] if place == 0 else []
        if self._absent and self._timer is None:
            self._later()

    def stop(self) -> None:
        """Nobody is told any more."""
        self._absent = []
        if self._timer is not None:
            self._timer.cancel()

    def _later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tell)

    def _tell(self) -> None:
        self._timer = None
        if self._absent:
            self._count += 1
            address = self._absent[self._count % len(self._absent)]
            self._told(Find(self._group, _NOBODY, 0, self._count), str(address))
            self._later()


def is_unasked(unit: Found) -> bool:
    """Whether this was sent without a question; incarnations of processes are not 0."""
    return unit.incarnation == 0
