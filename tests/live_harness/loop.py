"""An event loop in virtual time: asyncio's own, with another clock and a selector of virtual sockets."""

import asyncio
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.live_harness.sockets import VirtualSocket
    from tests.live_harness.world import Process

_SECOND = 1_000_000_000


class _Selector:
    """Never waits: the world calls a loop when it has something to do."""

    def __init__(self, readers: "dict[int, tuple[VirtualSocket, asyncio.Handle]]") -> None:
        self._readers = readers

    def select(self, _: float | None) -> "list[asyncio.Handle]":
        """Those whose sockets have something to read."""
        return [handle for place, handle in self._readers.values() if place.is_readable()]


class VirtualLoop(asyncio.BaseEventLoop):
    """Of one process. `turn` is one turn of it, and `due` tells when it needs the next one."""

    # Of asyncio's own loop, which its type stubs do not show.
    _ready: "deque[asyncio.Handle]"
    _scheduled: "list[asyncio.TimerHandle]"
    _thread_id: int | None

    def __init__(self, process: "Process") -> None:
        super().__init__()
        self._process = process
        self._clock_resolution = 1e-9
        self._readers: dict[int, tuple[VirtualSocket, asyncio.Handle]] = {}
        self._selector = _Selector(self._readers)
        self.set_exception_handler(self._note)

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._process.world.now / _SECOND

    def turn(self) -> None:
        """What is ready."""
        self._thread_id = get_ident()
        try:
            self._run_once()  # type: ignore[attr-defined]
        finally:
            self._thread_id = None

    def due(self) -> int | None:
        """When something is ready, in nanoseconds; None: only a datagram can wake it."""
        if self._ready or any(place.is_readable() for place, _ in self._readers.values()):
            return 0
        if self._scheduled:
            return int(self._scheduled[0].when() * _SECOND) + 1
        return None

    def left(self) -> list[str]:
        """What is still to be called."""
        handles = [*self._ready, *self._scheduled, *(handle for _, handle in self._readers.values())]
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
            self._scheduled.clear()
            if not tasks and not self._ready:
                break
            self.turn()

    def _process_events(self, event_list: "list[asyncio.Handle]") -> None:
        self._ready.extend(event_list)

    def _write_to_self(self) -> None:
        self._process.wake(self._process.world.now)

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._process.errors.append(f"{context['message']}: {error!r}" if error else context["message"])

    # --- sockets ---

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Calls back in each turn in which the socket has something to read."""
        place = self._process.world.network.sockets[fd]
        self._readers[fd] = place, asyncio.Handle(callback, args, self, None)

    def remove_reader(self, fd: Any) -> bool:
        """Does not any more."""
        found = self._readers.pop(fd, None)
        if found is not None:
            found[1].cancel()
        return found is not None
