"""Linearizable reads: each waits for a place in the order that was asked for after it, and many share one."""

import asyncio
from collections.abc import Callable

from ordercast.model.errors import LocalProtocolError
from ordercast.replicated.frame_sender import FrameSender
from ordercast.replicated.frames import Mark, encode
from ordercast.replicated.replica import Hosted


class Reads:
    """The reads of one member, of any object that it holds. Used inside one event loop."""

    def __init__(self, sender: FrameSender) -> None:
        self._sender = sender
        self._marks: dict[frozenset[str] | None, Marks] = {}
        self._last = 0

    async def fresh(self, hosted: Hosted) -> None:
        """Returns when everything is applied here that was completed anywhere before the call."""
        sender = self._sender
        sender.require_open()
        if not hosted.held:
            raise LocalProtocolError(
                f"{sender.me} does not hold {hosted.name!r}: ask one of {', '.join(sorted(hosted.on or ()))}"
            )
        marks = self._marks.get(hosted.on)
        if marks is None:
            marks = self._marks[hosted.on] = Marks(lambda mark: self._send(mark, hosted.on), self._new_number)
        await marks.wait()

    def delivered(self, number: int, reaches: Callable[[frozenset[str]], bool]) -> None:
        """An own mark has its place here; `reaches`: whether it went to all members that hold an object."""
        for on, marks in self._marks.items():
            marks.delivered(number, by_all=on is None or reaches(on))

    def holders_changed(self) -> None:
        """Other members hold objects now."""
        for on, marks in self._marks.items():
            if on is not None:
                marks.returned()

    def returned(self) -> None:
        """The member was excluded, and is back."""
        for marks in self._marks.values():
            marks.returned()

    def end(self, why: Exception) -> None:
        """No mark arrives any more."""
        for marks in self._marks.values():
            marks.end(why)

    def _send(self, mark: Mark, on: frozenset[str] | None) -> None:
        self._sender.send_frame(encode(mark), on, self._sender.first_priority)

    def _new_number(self) -> int:
        self._last += 1
        return self._last


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
