"""An event loop in virtual time: asyncio's own, with another clock, a heap of its own, and virtual sockets."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from heapq import heappop, heappush
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.live_harness.sockets import VirtualSocket
    from tests.live_harness.world import Process

_SECOND = 1_000_000_000
_RESOLUTION = 1e-9


class Handle:
    """What is to be called. Like `asyncio.Handle`, but it copies no context, since live code uses none."""

    __slots__ = ("_args", "_callback", "_context", "_when")

    def __init__(
        self, when: float, callback: Callable[..., Any], args: tuple[Any, ...], context: Context | None
    ) -> None:
        self._when, self._args, self._context = when, args, context
        self._callback: Callable[..., Any] | None = callback

    def when(self) -> float:
        """In seconds of virtual time."""
        return self._when

    def cancel(self) -> None:
        """It is not called."""
        self._callback, self._args = None, ()

    def cancelled(self) -> bool:
        """Whether it will not be called."""
        return self._callback is None

    def run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Calls it, if it was not cancelled."""
        callback = self._callback
        if callback is None:
            return
        try:
            if self._context is None:
                callback(*self._args)
            else:
                self._context.run(callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            loop.call_exception_handler({"message": f"Exception in callback {self!r}", "exception": error})

    def __repr__(self) -> str:
        name = getattr(self._callback, "__qualname__", repr(self._callback))
        return f"{name}({', '.join(map(repr, self._args))})"


class VirtualLoop(asyncio.BaseEventLoop):
    """Of one process. `turn` is one turn of it, and `due` tells when it needs the next one.

    A turn does what asyncio's does, in the same order: what was ready, sockets that can be read, timers that are due.
    It is written out because asyncio's also waits, watches itself and counts, which took a fifth of a run.
    """

    # Of asyncio's own loop, which its type stubs do not show.
    _ready: "deque[Handle]"
    _thread_id: int | None

    def __init__(self, process: "Process") -> None:
        super().__init__()
        self._process, self._world = process, process.world
        self._readers: dict[int, tuple[VirtualSocket, Handle]] = {}
        self._timers: list[tuple[float, int, Handle]] = []
        self._count = 0
        self.set_exception_handler(self._note)

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._world.now / _SECOND

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Handle:
        """In the next turn."""
        handle = Handle(0.0, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Handle:
        """The same: there is one thread. It may be another process whose turn it is."""
        self._process.wake(self._world.now)
        return self.call_soon(callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Handle:
        """In a turn at that time; of two at one time, the one that was set first is first."""
        handle = Handle(when, callback, args, context)
        self._count += 1
        heappush(self._timers, (when, self._count, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Handle:
        """After so many seconds."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def turn(self) -> None:
        """What is ready."""
        ready, timers = self._ready, self._timers
        for place, handle in self._readers.values():
            if place.is_readable():
                ready.append(handle)
        end = self._world.now / _SECOND + _RESOLUTION
        while timers and timers[0][0] < end:
            ready.append(heappop(timers)[2])
        self._thread_id = get_ident()
        try:
            for _ in range(len(ready)):
                ready.popleft().run(self)
        finally:
            self._thread_id = None

    def due(self) -> int | None:
        """When something is ready, in nanoseconds; None: only a datagram can wake it."""
        if self._ready:
            return 0
        for place, _ in self._readers.values():
            if place.is_readable():
                return 0
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        return int(timers[0][0] * _SECOND) + 1 if timers else None

    def left(self) -> list[str]:
        """What is still to be called."""
        timers = [timer for _, _, timer in sorted(self._timers)]
        handles = [*self._ready, *timers, *(handle for _, handle in self._readers.values())]
        return [repr(handle) for handle in handles if not handle.cancelled()]

    def forget(self) -> None:
        """Nothing that waits ever happens."""
        self._readers.clear()

    def unwind(self) -> None:
        """Cancels all tasks, until none is left that needs no more than some turns to end."""
        self.set_exception_handler(lambda *_: None)
        for _ in range(20):
            tasks = asyncio.all_tasks(self)
            for task in tasks:
                task.cancel()
            self._timers.clear()
            if not tasks and not self._ready:
                break
            self.turn()

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._process.errors.append(f"{context['message']}: {error!r}" if error else context["message"])

    # --- sockets ---

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Calls back in each turn in which the socket has something to read."""
        place = self._process.world.network.sockets[fd]
        self._readers[fd] = place, Handle(0.0, callback, args, None)

    def remove_reader(self, fd: Any) -> bool:
        """Does not any more."""
        found = self._readers.pop(fd, None)
        if found is not None:
            found[1].cancel()
        return found is not None
