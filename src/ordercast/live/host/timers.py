"""Named timers of a machine, on the event loop: a second one of the same name replaces the first."""

import asyncio
from collections.abc import Callable

from ordercast.live.transport.endpoint import MAX_POSTPONED
from ordercast.model.config import SECOND
from ordercast.model.machine import CancelTimer, SetTimer


def _nothing_arrives() -> bool:
    return True


def _nothing() -> None:
    pass


class Timers:
    """Set and cancelled by name. Made inside a running event loop.

    What has arrived by the time a timer is due may cancel or replace it. So when one is due, `before` is called first:
    it reads what has arrived, and returns True if nothing is left. Then comes `fire`, if the timer is still the same.
    If something is left, the timer is due again in the next turn of the event loop, `MAX_POSTPONED` times at most.
    In any case `drained` is called at the end if nothing was left, and else `paused`.
    """

    def __init__(
        self,
        fire: Callable[[str], None],
        *,
        before: Callable[[], bool] = _nothing_arrives,
        drained: Callable[[], None] = _nothing,
        paused: Callable[[], None] = _nothing,
    ) -> None:
        self._fire, self._before, self._drained, self._paused = fire, before, drained, paused
        self._loop = asyncio.get_running_loop()
        self._handles: dict[str, asyncio.Handle] = {}
        self._longest: dict[str, int] = {}  # by name, of those that hurry
        self.pace = 1.0
        """Durations are multiplied by it, except those whose names begin with `view.`."""

    def set(self, timer: SetTimer) -> None:
        """Carries out this output of a machine."""
        name = timer.name
        handle = self._handles.get(name)
        if handle is not None:
            handle.cancel()
        seconds = timer.after / SECOND
        if name in self._longest:
            seconds = min(seconds, self._longest[name] / SECOND)
        if self.pace > 1.0 and not name.startswith("view."):
            seconds *= self.pace
        self._handles[name] = self._loop.call_later(seconds, self._due, name)

    def hurry(self, name: str, longest: int) -> None:
        """A timer, if it is set, is due in the next turn of the event loop; then in so many nanoseconds at most."""
        self._longest[name] = longest
        handle = self._handles.get(name)
        if handle is not None:
            handle.cancel()
            self._handles[name] = self._loop.call_soon(self._due, name)

    def cancel(self, timer: CancelTimer) -> None:
        """Carries out this output of a machine."""
        handle = self._handles.pop(timer.name, None)
        if handle is not None:
            handle.cancel()

    def cancel_others(self, prefix: str) -> None:
        """Forgets all timers whose names do not begin so."""
        for name in [name for name in self._handles if not name.startswith(prefix)]:
            self._handles.pop(name).cancel()

    def cancel_all(self) -> None:
        """Forgets all timers."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    def _due(self, name: str, postponed: int = 0) -> None:
        handle = self._handles[name]
        drained = self._before()
        if self._handles.get(name) is handle:
            if drained or postponed >= MAX_POSTPONED:
                del self._handles[name]
                self._fire(name)
            else:
                self._handles[name] = self._loop.call_soon(self._due, name, postponed + 1)
        if drained:
            self._drained()
        else:
            self._paused()
