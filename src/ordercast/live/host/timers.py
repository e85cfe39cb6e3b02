"""Named timers of a machine, on the event loop: a second one of the same name replaces the first."""

import asyncio
from collections.abc import Callable

from ordercast.model.config import SECOND
from ordercast.model.machine import CancelTimer, SetTimer


def _nothing() -> None:
    pass


class Timers:
    """Set and cancelled by name. Made inside a running event loop.

    What has arrived by the time a timer is due may cancel or replace it. So when one is due, `before` is called first
    (it reads what has arrived), then `fire`, if the timer is still the same, then `after` in any case.
    """

    def __init__(
        self,
        fire: Callable[[str], None],
        *,
        before: Callable[[], None] = _nothing,
        after: Callable[[], None] = _nothing,
    ) -> None:
        self._fire, self._before, self._after = fire, before, after
        self._loop = asyncio.get_running_loop()
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def set(self, timer: SetTimer) -> None:
        """Carries out this output of a machine."""
        name = timer.name
        handle = self._handles.get(name)
        if handle is not None:
            handle.cancel()
        self._handles[name] = self._loop.call_later(timer.after / SECOND, self._due, name)

    def cancel(self, timer: CancelTimer) -> None:
        """Carries out this output of a machine."""
        handle = self._handles.pop(timer.name, None)
        if handle is not None:
            handle.cancel()

    def cancel_all(self) -> None:
        """Forgets all timers."""
        for handle in self._handles.values():
            handle.cancel()
        self._handles.clear()

    def _due(self, name: str) -> None:
        handle = self._handles[name]
        self._before()
        if self._handles.get(name) is handle:
            del self._handles[name]
            self._fire(name)
        self._after()
