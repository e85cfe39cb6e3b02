"""Request and reply: members are asked, and answer at a place of the order."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from ordercast.model.errors import GroupError, LocalProtocolError, Undelivered
from ordercast.replicated.frames import Answer, Request
from ordercast.replicated.results import text_of

Gather = Literal["first", "majority", "all"]
Answering = Callable[[bytes, str], bytes | Awaitable[bytes]]
"""The application's answer to a request: its payload, and the member that asks."""
_log = logging.getLogger("ordercast.replicated")


class Answers(msgspec.Struct, frozen=True):
    """The answers to a call."""

    answers: Mapping[str, bytes]
    """By member, in the order in which they came."""
    failed: Mapping[str, str]
    """Members that could not answer, and the exceptions that they raised, as text."""
    gone: Mapping[str, str]
    """Members that left the group, or failed, before they answered, and why."""
    waited_for: tuple[str, ...]
    """Members that had not answered yet, and were not needed."""


class Sender(Protocol):
    """The member."""

    me: str

    def send(self, frame: Request | Answer, to: Iterable[str] | None) -> None:
        """Sends a message; `to`: if the order has destinations, these."""


class _OpenCall:
    """A call that has not got all its answers."""

    def __init__(self, gather: Gather, asked: tuple[str, ...]) -> None:
        self.gather, self.asked = gather, asked
        self.bound = False
        """It is known who is asked."""
        self.answers: dict[str, bytes] = {}
        self.failed: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self.done: asyncio.Future[Answers] = asyncio.get_running_loop().create_future()

    @property
    def open(self) -> tuple[str, ...]:
        silent = {*self.answers, *self.failed, *self.gone}
        return tuple(name for name in self.asked if name not in silent)

    def look(self) -> None:
        """Completes it, if it has what it needs, or can never have it."""
        if self.done.done() or not self.bound:
            return
        needed = {"first": 1, "majority": len(self.asked) // 2 + 1, "all": 0}[self.gather]
        if len(self.answers) >= needed and (needed or not self.open):
            self.done.set_result(Answers(self.answers, self.failed, self.gone, self.open))
        elif needed and len(self.answers) + len(self.open) < needed:
            lost = ", ".join(f"{name} ({why})" for name, why in {**self.gone, **self.failed}.items())
            self.done.set_exception(Undelivered(f"{self.gather} of {', '.join(self.asked)} cannot answer: {lost}"))


def _bytes(payload: object) -> bytes:
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise TypeError(f"`answer` returned {type(payload).__name__}, not bytes")
    return bytes(payload)


class Calls:
    """The calls of one member, and its answers to others."""

    def __init__(self, sender: Sender, answering: Answering | None) -> None:
        self._sender, self._answering = sender, answering
        self._open: dict[int, _OpenCall] = {}
        self._number = 0
        self._working: set[asyncio.Task[None]] = set()

    async def call(
        self,
        payload: bytes | bytearray | memoryview,
        to: tuple[str, ...] | None,
        gather: Gather,
        timeout: float | None,
        members: Sequence[str],
    ) -> Answers:
        """Asks, and waits for the answers. `members`: of now."""
        if gather not in {"first", "majority", "all"}:
            raise LocalProtocolError(f"gather must be 'first', 'majority' or 'all', not {gather!r}")
        if not isinstance(payload, bytes | bytearray | memoryview):
            raise LocalProtocolError(f"the payload of a call is bytes, not {type(payload).__name__}")
        if to is not None and not to:
            raise LocalProtocolError("`to` has nobody: name at least one member, or omit it to ask all")
        self._number += 1
        number = self._number
        call = self._open[number] = _OpenCall(gather, to or ())
        call.bound = to is not None
        call.gone = {name: "no member" for name in to or () if name not in members}
        try:
            if to is None or len(call.gone) < len(to):
                self._sender.send(Request(number, bytes(payload)), to)
            call.look()
            async with asyncio.timeout(timeout):
                return await call.done
        except TimeoutError:
            have = ", ".join(call.answers) or "nobody"
            raise TimeoutError(
                f"{', '.join(call.open) or 'the group'} did not answer within {timeout:g} s; {have} did"
            ) from None
        finally:
            del self._open[number]

    def requested(self, sender: str, request: Request, members: tuple[str, ...]) -> None:
        """A request, at its place: of this member, or one to be answered."""
        if sender == self._sender.me and (call := self._open.get(request.number)) is not None and not call.bound:
            call.asked, call.bound = members, True
        task = asyncio.get_running_loop().create_task(self._answer(sender, request))
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _answer(self, caller: str, request: Request) -> None:
        payload, error = b"", ""
        try:
            if self._answering is None:
                error = "it was joined without `answer`"
            else:
                found = self._answering(request.payload, caller)
                payload = _bytes(await found if inspect.isawaitable(found) else found)
        except Exception as raised:
            error = text_of(raised)
        try:
            self._send(Answer(caller, request.number, payload, error))
        except (GroupError, LocalProtocolError) as raised:  # the caller is gone, or this member
            _log.debug("an answer to %s was not sent: %s", caller, raised)

    def _send(self, answer: Answer) -> None:
        try:
            self._sender.send(answer, (answer.caller,))
        except LocalProtocolError as raised:  # it is too long, or the caller is gone
            if answer.error:
                raise
            self._send(Answer(answer.caller, answer.number, b"", text_of(raised)))

    def answered(self, sender: str, answer: Answer) -> None:
        """An answer, at its place."""
        call = self._open.get(answer.number)
        if answer.caller == self._sender.me and call is not None:
            if answer.error:
                call.failed[sender] = answer.error
            else:
                call.answers[sender] = answer.payload
            call.look()

    def members_left(self, left: Mapping[str, str]) -> None:
        """Nobody waits for the answer of one that is gone."""
        for call in self._open.values():
            call.gone |= {name: why for name, why in left.items() if name in call.open}
            call.look()

    def end(self, why: Exception) -> None:
        """No answer arrives any more: the group is over, or this member was away, and does not know what it missed."""
        for call in self._open.values():
            if not call.done.done():
                call.done.set_exception(why)

    def stop(self) -> None:
        """Answers that are being made are not sent."""
        for task in self._working:
            task.cancel()
