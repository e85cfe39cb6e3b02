"""What the oldest member does for all: it tells the time, and has states compared."""

import asyncio
import logging
from time import monotonic, time
from typing import Protocol

from ordercast.model.errors import ConfigError, Diverged, OrdercastError
from ordercast.replicated.replica import Hosted, Replica

_log = logging.getLogger("ordercast.replicated")
_TICK = 0.1  # seconds: how late time may pass in a group without commands
_SHARE = 100  # a comparison takes at most one part in so many of the time


class Upkept(Protocol):
    """The member."""

    @property
    def me(self) -> str:
        """Its name."""

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
        self._took = self._tried = 0.0
        self._told: set[tuple[str, str]] = set()

    def digests(self) -> dict[str, bytes]:
        """Of all objects that are held here."""
        begun = monotonic()
        found = {name: hosted.digest() for name, hosted in self._replica.hosted.items() if hosted.held}
        self._took = monotonic() - begun
        return found

    def require_loadable(self) -> None:
        """Raises an error if a member that joins could not be given the state of an object."""
        begun = monotonic()
        for hosted in self._replica.hosted.values():
            for name in hosted.no_fields():
                if (hosted.name, name) not in self._told:
                    self._told.add((hosted.name, name))
                    _log.warning(
                        "%s.%s was set, and is no field of its class: members that join do not get it. Annotate it in "
                        "the class, or begin its name with an underscore",
                        type(hosted.target).__name__,
                        name,
                    )
            why = hosted.unloadable() if hosted.held else None
            if why is not None:
                raise ConfigError(
                    f"the state of {hosted.name or type(hosted.target).__name__!r} could not be given to a member that "
                    f"joins: {why}; a command has put it there: let it refuse such values, or change the field's type"
                )
        self._tried = monotonic() - begun

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
            except ConfigError as error:
                _log.error("%s", error)
            except OrdercastError as error:
                _log.debug("no comparison: %s", error)

    def _is_due(self, since: float) -> bool:
        return bool(self._interval) and since >= max(self._interval, _SHARE * (self._took + self._tried))

    def _let_time_pass(self, member: Upkept) -> None:
        """The oldest holder of an object tells all."""
        now = time()
        for hosted in self._replica.hosted.values():
            oldest = next((name for name in member.members if hosted.on is None or name in hosted.on), None)
            if hosted.held and oldest == member.me and self._is_past(hosted, now):
                member.let_time_pass(now)
                return

    def _is_past(self, hosted: Hosted, now: float) -> bool:
        try:
            deadline = hosted.target.deadline()
            is_past = deadline is not None and deadline <= now
        except Exception:
            if (hosted.name, "deadline") not in self._told:  # it is called ten times a second
                self._told.add((hosted.name, "deadline"))
                _log.exception("deadline() of %r raised an exception: its tick() is not called", hosted.name)
            return False
        return is_past
