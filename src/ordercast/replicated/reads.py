"""Linearizable reads: each waits for a place in the order that was asked for after it, and many share one."""

import asyncio
from collections.abc import Callable

from ordercast.replicated.frames import Mark


class Marks:
    """The places that reads of one set of objects wait for."""

    def __init__(self, send: Callable[[Mark], None], new_number: Callable[[], int]) -> None:
        """`send`: to all members that hold what is read."""
        self._send, self._new_number = send, new_number
        self._sent: asyncio.Future[None] | None = None
        self._number = 0
        self._next: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Returns when a mark that was sent after this call is delivered here.

        One mark is under way at a time. It is sent at the end of this turn of the event loop, or when the one before
        has arrived, and serves all who have asked until then.
        """
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            if self._sent is None:
                loop.call_soon(self._send_next)
        await asyncio.shield(self._next)

    def _send_next(self) -> None:
        if self._sent is not None or self._next is None:
            return
        self._sent, self._next = self._next, None
        self._number = self._new_number()
        self._send_again()

    def _send_again(self) -> None:
        try:
            self._send(Mark(self._number))
        except Exception as error:
            self.end(error)

    def delivered(self, number: int, *, by_all: bool) -> None:
        """An own mark has its place here; `by_all`: at all that hold the objects, else it is sent again."""
        if number != self._number or self._sent is None:
            return
        if by_all:
            _finish(self._sent, None)
            self._sent = None
            self._send_next()
        else:
            self._send_again()

    def returned(self) -> None:
        """The member was excluded, and is back: its mark may be lost."""
        if self._sent is not None:
            self._send_again()

    def end(self, why: Exception) -> None:
        """No mark arrives any more."""
        for future in (self._sent, self._next):
            if future is not None:
                _finish(future, why)
        self._sent = self._next = None


def _finish(future: "asyncio.Future[None]", error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # marks it as retrieved: its readers may have gone
