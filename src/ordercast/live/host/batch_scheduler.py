"""When what the application has sent is given to the protocol: at once, or when a batch is complete.

The batches are those of `batching`.
"""

import asyncio
import time

from ordercast.live.host.batching import Outbox
from ordercast.live.host.busy_polling import POLL_SECONDS, BusyPolling
from ordercast.live.host.host import Host
from ordercast.live.transport.transport import Transport

_MAX_TURNS = 32  # of the event loop that a batch waits for more


class BatchScheduler:
    """Gives what is in the outbox to a host. Used inside one event loop."""

    def __init__(self, host: Host, outbox: Outbox, transport: Transport, busy_polling: BusyPolling) -> None:
        self._host, self._outbox, self._transport, self._busy_polling = host, outbox, transport, busy_polling
        self._loop = asyncio.get_running_loop()
        self.scheduled = False
        """The outbox is looked at again soon: nobody needs to ask for it."""
        self._turns, self._last = 0, outbox.last()
        self._polls = False
        self._single_since: float | None = None  # when what is in flight was sent, if it is a single message

    def use(self, host: Host) -> None:
        """From now on what is sent is given to this one."""
        self._host = host

    def message_added(self) -> None:
        """If nothing of ours is in flight the message is sent at once; what follows, when the batch is complete."""
        if self.scheduled:
            return
        host = self._host
        if host.is_idle():
            since = time.perf_counter()
            host.pump()
            if not host.is_idle():
                self._single_since, self._polls = since, self._busy_polling.begins()
        self._schedule()

    def _schedule(self) -> None:
        """In the next turn of the event loop, or later if the application adds more."""
        if not self.scheduled:
            self.scheduled = self._outbox.growing = True
            self._turns, self._last = 0, self._outbox.last()
            self._loop.call_soon(self._send_batches)

    def drained(self) -> None:
        """What had arrived was handled: a single message may have its place in the order."""
        if self._single_since is not None and self._host.is_idle():
            self._busy_polling.took(time.perf_counter() - self._single_since)
            self._single_since = None

    def _send_batches(self) -> None:
        """Full batches go; the rest when a turn has passed in which nothing was added, or many turns have."""
        last, self._last = self._last, self._outbox.last()
        if self._last != last and self._turns < _MAX_TURNS:
            self._turns += 1
            self._single_since = None
            self._loop.call_soon(self._send_batches)
        else:
            self.scheduled = self._outbox.growing = False
        self._host.pump()
        if self._polls and self._single_since is not None:
            self._transport.poll(POLL_SECONDS)
