"""Who is told how far the own disk is, when, and whom this member asks.

A telling takes processor time at both ends, so those that do not wait are told now and then only, for what they show.
Who begins to wait asks, and is told for a while: at once if the disk has all that was delivered here, else at most
every `PACE` seconds. Who still waits asks again: what it was told, or its question, may be lost.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from ordercast.live.durability import Durability
from ordercast.live.transport.transport import Transport
from ordercast.model.nodes import members
from ordercast.wire.control import DurablePosition

PACE = 0.002
"""Seconds between two tellings of one that has asked, while more is on its way to the disk."""
TOLD = 1.0
"""Seconds for which one that has asked is told."""
UNASKED = 0.5
"""Seconds between two tellings of those that have not asked."""


class OwnDisk(Protocol):
    """The log of this member."""

    @property
    def durable(self) -> int:
        """Everything below this position is on the own disk."""
        ...

    @property
    def next(self) -> int:
        """The position after the last message in it, on the disk or about to be."""
        ...

    @property
    def transport(self) -> Transport | None:
        """None: this member says nothing, not yet or not any more."""
        ...

    @property
    def counts(self) -> bool:
        """What is on the own disk is of the group's log, and stays there."""
        ...


class Tellings:
    """Used inside one event loop, but for `is_awaited`."""

    def __init__(self, disk: OwnDisk, durability: Durability) -> None:
        self._disk, self._durability = disk, durability
        self._loop = asyncio.get_running_loop()
        self._nodes: Sequence[int] = ()
        self._place = 0
        self._concerned = 0  # places whose messages became durable here since they were told
        self._told_at = -PACE
        self._timer: asyncio.TimerHandle | None = None
        self._asked: dict[int, float] = {}  # those that have asked, by node: until when they are told
        self._asked_until = 0.0  # the last of these
        self._waiting = 0  # calls that wait for own messages
        self._asked_at, self._unasked_at = -TOLD, 0.0
        self._end = 0  # of own messages that were delivered when others were last told unasked

    @property
    def is_awaited(self) -> bool:
        """Somebody waits for the own disk, here or elsewhere. Any thread may ask."""
        return self._waiting > 0 or self._asked_until > self._loop.time()

    def enter_view(self, nodes: Sequence[int], place: int) -> None:
        """A view: all are told at once, since some may have been in none before."""
        self._nodes, self._place = nodes, place
        self._concerned = (1 << len(nodes)) - 1
        self._tell(self._concerned)
        if self._waiting:
            self._ask(None)

    def delivered(self, place: int) -> None:
        """Something of this place was delivered here."""
        self._concerned |= 1 << place

    def awaited_by(self, future: "asyncio.Future[None]") -> None:
        """Somebody begins to wait for an own message."""
        self._waiting += 1
        future.add_done_callback(self._no_more)
        if self._loop.time() - self._asked_at > TOLD / 2:
            self._ask(None)

    def _no_more(self, _: object) -> None:
        self._waiting -= 1

    def moved(self) -> None:
        """More is on the own disk: those that have asked are told, now or soon."""
        asking = self._places_that_asked() & self._concerned
        if not asking:
            return
        wait = self._told_at + PACE - self._loop.time()
        if wait <= 0 or self._disk.durable >= self._disk.next:
            self._tell(asking)
        elif self._timer is None:
            self._timer = self._loop.call_later(wait, self._is_time)

    def _is_time(self) -> None:
        self._tell(self._places_that_asked() & self._concerned)

    def receive(self, place: int, node: int, message: DurablePosition) -> None:
        """What a member of the view has on its disk, and perhaps a question for the own position."""
        self._durability.told(node, message.position)
        if message.asks:
            self._asked[node] = self._asked_until = self._loop.time() + TOLD
            transport = self._disk.transport
            if transport is not None and self._disk.counts:
                transport.send_control(DurablePosition(self._disk.durable), place)

    def tick(self) -> None:
        """Now and then."""
        now = self._loop.time()
        self._asked = {node: until for node, until in self._asked.items() if until > now}
        if self._waiting:
            if now - self._asked_at > TOLD / 2:  # who waits for long, or one after the other, asks again
                self._ask(None)
            else:
                self._ask_those_that_lack(self._durability.end)
        if now - self._unasked_at >= UNASKED:
            if not self._waiting:  # what was delivered so long ago was told, or that was lost
                self._ask_those_that_lack(self._end)
            self._unasked_at, self._end = now, self._durability.end
            self._tell(self._concerned)

    def _ask_those_that_lack(self, end: int) -> None:
        lacking = self._durability.lacking(end)
        for place, node in enumerate(self._nodes):
            if node in lacking and place != self._place:
                self._ask(place)

    def _ask(self, place: int | None) -> None:
        """`place`: None for all the others."""
        transport = self._disk.transport
        if transport is not None and len(self._nodes) > 1:
            self._asked_at = self._loop.time()
            own = self._disk.durable if self._disk.counts else 0
            transport.send_control(DurablePosition(own, asks=True), place)

    def _places_that_asked(self) -> int:
        now, asked = self._loop.time(), self._asked
        if self._asked_until <= now:
            return 0
        return sum(1 << place for place, node in enumerate(self._nodes) if asked.get(node, 0.0) > now)

    def _tell(self, places: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        places &= ~(1 << self._place)
        if self._disk.durable >= self._disk.next:  # else more of theirs may be about to be durable
            self._concerned &= ~places
        transport = self._disk.transport
        if not places or transport is None or not self._disk.counts:
            return
        self._told_at = self._loop.time()
        for place in members(places):
            transport.send_control(DurablePosition(self._disk.durable), place)
