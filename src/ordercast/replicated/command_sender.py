"""The commands of this member: numbered and sent, sent again when that is needed, and completed with their results."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import time
from typing import Any, Protocol

from ordercast.model.errors import GroupClosed, LocalProtocolError, Undelivered
from ordercast.replicated.frames import Outcome, Together, encode
from ordercast.replicated.objects import Call, CommandId
from ordercast.replicated.pending_commands import Outgoing, Sent, in_order
from ordercast.replicated.replica import Hosted, Replica
from ordercast.replicated.results import Result, told


class Sender(Protocol):
    """The member."""

    me: str
    error: Exception | None
    prioritised: bool
    """The order has priorities."""
    send_to_all: Callable[..., object]
    """Sends a message to all members, with a priority; used while there is no error."""

    def require_open(self) -> None:
        """Raises the reason why nothing can be sent, if there is one."""

    def send_frame(self, payload: bytes, on: frozenset[str] | None, priority: int) -> None:
        """Sends a message to all, or to those of these that are members now."""


class CommandSender:
    """Used inside one event loop."""

    def __init__(self, sender: Sender, replica: Replica, session: int) -> None:
        """`session`: in which the commands are numbered."""
        self._sender, self._replica, self._session = sender, replica, session
        self._loop = asyncio.get_running_loop()
        self._outgoing: dict[tuple[str, int], Outgoing] = {}
        self._together: list[tuple[Outgoing, Sent]] | None = None
        self._last_sent = 0

    def submit(self, hosted: Hosted, name: str, values: tuple[Any, ...]) -> Call[Any]:
        """Sends a command."""
        frame, sender, together = hosted.frames[name], self._sender, self._together
        priority = frame.spec.priority if sender.prioritised and together is None else 0
        outgoing = self._outgoing.get((hosted.name, priority)) or self._opened(hosted, priority)
        sequence = outgoing.next
        payload = encode((frame.tag, sequence, sequence - len(outgoing.waiting) - 1, time(), *values))
        on = hosted.on
        if together is None:
            if on is None and sender.error is None:
                sender.send_to_all(payload, priority=priority)
            else:
                sender.send_frame(payload, on, priority)
        self._last_sent = order = self._last_sent + 1
        sent = Sent(loop=self._loop)
        sent.frame, sent.payload, sent.on, sent.order = frame, payload, on, order
        outgoing.add(sent)
        if together is not None:
            together.append((outgoing, sent))
        return sent

    def next_id(self, hosted: Hosted, name: str) -> CommandId:
        """Which command the next one with this name would be."""
        priority = hosted.frames[name].spec.priority if self._sender.prioritised else 0
        outgoing = self._outgoing.get((hosted.name, priority)) or self._opened(hosted, priority)
        return outgoing.command_id(outgoing.next)

    def _opened(self, hosted: Hosted, priority: int) -> Outgoing:
        self._sender.require_open()
        found = self._outgoing[hosted.name, priority] = Outgoing(hosted, priority, self._sender.me, self._session)
        return found

    @contextmanager
    def together(self) -> Iterator[None]:
        """See `Member.together`."""
        if self._together is not None:
            raise LocalProtocolError("together() is used within together(): one block is one message")
        parts: list[tuple[Outgoing, Sent]] = []
        self._together = parts
        try:
            yield
            self._together = None
            self._send_together(parts)
        except BaseException:
            for outgoing, sent in reversed(parts):
                outgoing.take_back(sent)
            raise
        finally:
            self._together = None

    def _send_together(self, parts: list[tuple[Outgoing, Sent]]) -> None:
        if not parts:
            return
        payload, on = encode(Together([sent.payload for _, sent in parts])), _union(sent.on for _, sent in parts)
        self._sender.send_frame(payload, on, 0)
        for _, sent in parts:
            sent.payload, sent.on, sent.order = payload, on, parts[0][1].order

    # --- what becomes of them ---

    def settle(self, hosted: Hosted, priority: int, sequence: int, result: Result) -> None:
        """A command was applied here."""
        outgoing = self._outgoing.get((hosted.name, priority))
        if outgoing is not None:
            outgoing.settle(sequence, result)

    def outcome(self, outcome: Outcome) -> None:
        """A command was applied by others, to an object that is not held here."""
        outgoing = self._outgoing.get((outcome.object_name, outcome.priority))
        place = -1 if outgoing is None else outcome.sequence - outgoing.first
        if outgoing is not None and 0 <= place < len(outgoing.waiting):
            frame = outgoing.waiting[place].frame
            outgoing.settle(outcome.sequence, told(outcome.error, outcome.value, frame.result))

    def returned(self) -> None:
        """The state is that of another member: it tells which commands were applied; the rest is sent again."""
        for outgoing in self._outgoing.values():
            hosted = outgoing.hosted
            if hosted.held:
                stream = self._replica.stream(hosted, self._sender.me, outgoing.priority)
                assert stream is not None, "it has said hello"
                while outgoing.waiting and outgoing.first <= stream.last:
                    sequence, frame = outgoing.first, outgoing.waiting[0].frame
                    outgoing.settle(sequence, hosted.result_of(stream, sequence, frame))
        self._send_again(self._outgoing.values())

    def holders_changed(self) -> None:
        """Other members hold objects now: what was sent to those of before may not have been applied."""
        self._send_again([each for each in self._outgoing.values() if each.hosted.on is not None])

    def _send_again(self, all_outgoing: Iterable[Outgoing]) -> None:
        for sent, priority in in_order(all_outgoing):
            try:
                self._sender.send_frame(sent.payload, sent.on, priority)
            except Undelivered as error:  # all that held the object are gone
                if not sent.done():
                    sent.set_exception(error)
            except GroupClosed:
                return  # this member leaves

    def end(self, why: Exception) -> None:
        """Nothing is known of those that wait."""
        for outgoing in self._outgoing.values():
            outgoing.end(why)


def _union(all_holders: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Who holds one of several objects; None: all members, also those that join."""
    found: frozenset[str] = frozenset()
    for holders in all_holders:
        if holders is None:
            return None
        found |= holders
    return found
