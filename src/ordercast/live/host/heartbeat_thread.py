"""Heartbeats while something blocks the event loop, from a thread: a member that computes for some seconds is alive.

Others could not tell a blocked loop from a dead process by looking harder: it says nothing. What waits in its socket
shows it afterwards that it should suspect nobody, another matter (`failure_detector`). So somebody must speak
for it, and only a thread of the process dies and is suspended when the process is. It says nothing while the loop runs.

For how long is bounded: a loop that never comes back must not hold up the group for ever.
"""

import time
from collections.abc import Callable
from threading import Event, Thread

_LATE = 1.5  # heartbeats since the last tick, after which the thread speaks: there are two ticks in each


class HeartbeatThread:
    """Of one member, in one view. It begins with the first `ticked` and ends with `stop`."""

    def __init__(self, heartbeat: float, limit: float) -> None:
        """`heartbeat`: seconds between two; `limit`: seconds for which the loop may be blocked."""
        self._heartbeat, self._limit = heartbeat, limit
        self._last: tuple[float, Callable[[], None]] = (0.0, lambda: None)
        self._stopped = Event()
        self._thread: Thread | None = None

    def ticked(self, send: Callable[[], None]) -> None:
        """The loop runs. `send` sends heartbeats, as they are due from now on, and may be called by the thread."""
        self._last = time.monotonic(), send
        if self._limit > 0 and (self._thread is None or not self._thread.is_alive()) and not self._stopped.is_set():
            self._thread = Thread(target=self._run, name="ordercast heartbeats", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """It says nothing any more."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._heartbeat):
            ticked_at, send = self._last
            silent = time.monotonic() - ticked_at
            if silent > self._limit:
                return  # the next tick, if there is one, begins anew
            if silent > _LATE * self._heartbeat:
                send()
