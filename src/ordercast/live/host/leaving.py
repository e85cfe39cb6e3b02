"""How a member leaves: it says so when all its own messages have arrived, or at once."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from ordercast.live.host.batching import Outbox
from ordercast.live.host.host import Host
from ordercast.live.host.parameters import Parameters
from ordercast.model.config import SECOND
from ordercast.model.errors import GroupClosed


class LeavingOwner(Protocol):
    """The member that leaves."""

    name: str
    outbox: Outbox
    parameters: Parameters
    host: Host | None
    left: "asyncio.Future[None]"

    @property
    def size(self) -> int:
        """How many members the current view has."""


class Leaving:
    """How far a member has got that leaves."""

    def __init__(self, owner: LeavingOwner, end_alone: Callable[[str, int], None]) -> None:
        """`end_alone`: the group is over for this member only."""
        self._owner, self._end_alone, self._loop = owner, end_alone, asyncio.get_running_loop()
        self.begun = False
        """The application leaves; own messages may not have arrived everywhere."""
        self.said = False
        """The others are told."""

    def begin(self) -> None:
        """Nothing more is sent from now on."""
        self.begun = True
        self._watch()

    def by(self, seconds: float) -> None:
        """Leaves after so many seconds, whatever has arrived then."""
        self._loop.call_later(seconds, self._undrained)

    def say_if_sent(self, host: Host) -> None:
        """Tells the others, if all of our messages are in every cut and they were not told."""
        if self.begun and not self.said and host.is_drained():
            self.say(host, drain=True)

    def say(self, host: Host, *, drain: bool) -> None:
        """Tells the others; without `drain` what is not sent yet is given up."""
        self.said = True
        if not drain:
            owner = self._owner
            owner.outbox.give_up(GroupClosed(f"{owner.name} has left the group before the message was sent"))
        host.leave(drain=drain)

    def _undrained(self) -> None:
        owner = self._owner
        if not owner.left.done() and owner.host is not None:
            self.say(owner.host, drain=False)

    def _watch(self) -> None:
        self._loop.call_later(self._owner.parameters.failure_timeout / SECOND, self._end_if_too_few)

    def _end_if_too_few(self) -> None:
        """If without this member too few are left for a view: nobody can agree that it has left."""
        owner = self._owner
        if owner.left.done():
            return
        least = owner.parameters.least_members
        if self.said and owner.size <= least and least > 1:
            self._end_alone(f"{owner.name} ended alone: fewer than {least} members are left (quorum: static)", 0)
        else:
            self._watch()
