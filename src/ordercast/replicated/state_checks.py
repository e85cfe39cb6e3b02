"""Comparisons of the states of all members, as one of them asks for them and answers them."""

import asyncio

from ordercast.model.errors import ConfigError, Diverged
from ordercast.replicated.checks import Checks
from ordercast.replicated.frame_sender import FrameSender
from ordercast.replicated.frames import Check, Digests, encode
from ordercast.replicated.upkeep import Upkeep


class _ViewChanged(Exception):  # noqa: N818 - nothing went wrong
    """A comparison of states is begun anew: other members have to answer now."""


class StateChecks:
    """Of one member. Used inside one event loop."""

    def __init__(self, sender: FrameSender, upkeep: Upkeep) -> None:
        self._sender, self._upkeep, self._checks = sender, upkeep, Checks()
        self._waiting: dict[int, asyncio.Future[Diverged | None]] = {}
        self._last = 0

    async def check(self) -> None:
        """See `Member.check`."""
        while True:
            self._sender.require_open()
            self._last += 1
            number = self._last
            future = self._waiting[number] = asyncio.get_running_loop().create_future()
            self._sender.send_frame(encode(Check(number)), None, 0)
            try:
                diverged = await future
            except _ViewChanged:
                continue
            finally:
                self._waiting.pop(number, None)
            if diverged is not None:
                raise diverged
            return

    def requested(self, checker: str, number: int, priority: int) -> None:
        """A check, at its place in the order: this member tells its state."""
        self._checks.begin(checker, number)
        future = self._future_of(checker, number)
        if future is not None:
            try:
                self._upkeep.require_loadable()
            except ConfigError as error:
                future.set_exception(error)
        self._sender.try_to_send(encode(Digests(checker, number, self._upkeep.digests())), None, priority)

    def compared(self, sender: str, sent: Digests) -> None:
        """The state of a member; with the last one it is known who differs. Raises `Diverged` if this member does."""
        verdict = self._checks.add(sender, sent, self._sender.members)
        if verdict is None:
            return
        future = self._future_of(verdict.checker, verdict.number)
        if future is not None:
            future.set_result(verdict.diverged)
        self._upkeep.compared(verdict.diverged)
        if verdict.diverged is not None and self._sender.me in verdict.diverged.members:
            raise verdict.diverged

    def view_changed(self) -> None:
        """What is under way is begun anew."""
        self._checks.view_changed()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(_ViewChanged)

    def end(self, error: Exception) -> None:
        """Nothing is compared any more."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()

    def _future_of(self, checker: str, number: int) -> "asyncio.Future[Diverged | None] | None":
        """Of one that waits here; who waited may have been cancelled just now."""
        future = self._waiting.get(number) if checker == self._sender.me else None
        return None if future is None or future.done() else future
