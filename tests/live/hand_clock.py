"""An event loop and a clock that a test moves by hand: what is due happens then, and nobody waits."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ordercast.model.config import SECOND


class Handle:
    """A call that is due later."""

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.cancelled = at, call, False

    def cancel(self) -> None:
        self.cancelled = True


class Clock:
    """An event loop, as far as flow control needs one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[Handle] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> Handle:
        self.due.append(Handle(self.now + delay, call))
        return self.due[-1]

    def call_soon(self, call: Callable[[], None]) -> Handle:
        return self.call_later(0, call)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within, it is the loop that runs, and the clock of the machine."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "get_running_loop", lambda: self)
            patch.setattr(time, "monotonic_ns", lambda: round(self.now * SECOND))
            yield

    def waiting(self) -> list[Handle]:
        """What is due and was not cancelled."""
        return [handle for handle in self.due if not handle.cancelled]

    def advance(self, seconds: float) -> None:
        until = self.now + seconds
        while self.due and (first := min(self.due, key=lambda handle: handle.at)).at <= until:
            self.due.remove(first)
            self.now = first.at
            if not first.cancelled:
                first.call()
        self.now = until
