"""What the oldest member does for all: it tells the time, and has states compared."""

import asyncio
import logging
from time import monotonic, time
from typing import Protocol

from ordercast.model.errors import Diverged, OrdercastError
from ordercast.replicated.replica import Replica

_log = logging.getLogger("ordercast.replicated")
_TICK = 0.1  # seconds: how late time may pass in a group without commands
_SHARE = 100  # a comparison takes at most one part in so many of the time


class Upkept(Protocol):
    """The member."""

    me: str

    @property
    def members(self) -> tuple[str, ...]:
        """The oldest first."""

    async def check(self) -> None:
        """Compares the states of all members."""

    def let_time_pass(self, now: float) -> None:
        """Tells all members."""


class Upkeep:
    """The clock of the group, at one member; only the oldest one's is used."""

    def __init__(self, replica: Replica, check_interval: float) -> None:
        self._replica, self._interval = replica, check_interval
        self._took = 0.0

    def digests(self) -> dict[str, bytes]:
        """Of all objects that are held here."""
        begun = monotonic()
        found = {name: hosted.digest() for name, hosted in self._replica.hosted.items() if hosted.held}
        self._took = monotonic() - begun
        return found

    def compared(self, diverged: Diverged | None) -> None:
        """A comparison is complete."""
        if diverged is not None:
            _log.error("%s", diverged)

    async def run(self, member: Upkept) -> None:
        """Until it is cancelled."""
        checked = monotonic()
        while True:
            await asyncio.sleep(_TICK)
            try:
                self._let_time_pass(member)
                if member.members[0] == member.me and self._is_due(monotonic() - checked):
                    checked = monotonic()
                    await member.check()
            except OrdercastError as error:
                _log.debug("no comparison: %s", error)

    def _is_due(self, since: float) -> bool:
        return bool(self._interval) and since >= max(self._interval, _SHARE * self._took)

    def _let_time_pass(self, member: Upkept) -> None:
        """The oldest holder of an object tells all."""
        now = time()
        for hosted in self._replica.hosted.values():
            oldest = next((name for name in member.members if hosted.on is None or name in hosted.on), None)
            if hosted.held and oldest == member.me:
                deadline = hosted.target.deadline()
                if deadline is not None and deadline <= now:
                    member.let_time_pass(now)
                    return
