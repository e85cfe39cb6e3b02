"""A group as its members see it: send to some or to all, hear everything in the order that was chosen."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterable
from operator import index
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self, SupportsIndex

from ordercast.live.events import Message, Receipt, View
from ordercast.live.host.batching import PENDING_LIMIT
from ordercast.live.host.member import Member
from ordercast.live.settings import require_seconds
from ordercast.live.stats import Stats
from ordercast.model.errors import GroupAborted, GroupClosed, LocalProtocolError
from ordercast.model.nodes import everybody
from ordercast.wire.keys import GroupKeys, keys_from_file

HIGHEST_PRIORITY = 255


class Group:
    """A group that is open. `ordercast.join` makes one; it is used inside one event loop."""

    def __init__(self, name: str, member: Member, *, selective: bool, prioritised: bool) -> None:
        """`selective`: a message may go to some of the members only; `prioritised`: the urgent go first."""
        self.name = name
        self._member, self._outbox, self._scheduler = member, member.outbox, member.scheduler
        self._selective = selective
        self._view = View(number=0, position=0, members=member.names, joined=member.names, why="the group opened")
        self._highest = HIGHEST_PRIORITY if prioritised else 0
        self._names = member.names
        self._everybody = everybody(len(member.names))
        self._places = {each: place for place, each in enumerate(member.names)}
        self._unread: list[Message] = []  # of the packet that is being read; the next message last

    def __repr__(self) -> str:
        return f"<Group {self.name!r}: {self.me} of {', '.join(self.members)}>"

    def __del__(self) -> None:
        if not self._member.left.done():
            told = f"the group {self.name!r} was not closed: what {self.me} has sent may not have arrived"
            warnings.warn(told, ResourceWarning, stacklevel=2, source=self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the group when all went well; else gives it up, for nobody knows what was not sent."""
        if error is None:
            try:
                await self.close()
            except asyncio.CancelledError:  # the others must not wait for one that does not wait for them
                await self._give_up(f"{self.me} was cancelled while it closed")
                raise
        else:
            await self._give_up(f"{self.me} failed ({type(error).__name__})")

    @property
    def me(self) -> str:
        """Our own name."""
        return self._names[self._member.me]

    @property
    def members(self) -> tuple[str, ...]:
        """The names of those that take part now."""
        return self._member.stats(self.name).members

    def stats(self) -> Stats:
        """What this member has counted, and what it holds; also after the end."""
        return self._member.stats(self.name)

    # --- sending ---

    async def send(self, payload: bytes, *, to: Iterable[str] | None = None, priority: int = 0) -> Receipt:
        """Sends a message to some members, or to all and ourselves; waits while the group cannot take more.

        If it is cancelled while it waits, nothing is sent.
        """
        if self._outbox.pending_bytes > PENDING_LIMIT:
            await self._outbox.wait_for_room()
        return self.send_nowait(payload, to=to, priority=priority)

    def send_nowait(self, payload: bytes, *, to: Iterable[str] | None = None, priority: int = 0) -> Receipt:
        """The same without waiting: it grows what is kept here, however much that is. See `waiting`."""
        member = self._member
        if member.end is not None:
            raise member.end.with_traceback(None)  # one error for all calls: it must not remember each of them
        if type(payload) is not bytes:
            payload = _bytes_of(payload)
        if type(priority) is not int:
            priority = _whole_number(priority)
        if len(payload) > member.max_message_size or not 0 <= priority <= self._highest:
            self._refuse(payload, priority)
        receipt = self._outbox.add(payload, self._everybody if to is None else self._destinations(to), priority)
        if not self._scheduler.flushing:
            self._scheduler.message_added()
        return receipt

    def _refuse(self, payload: bytes, priority: int) -> NoReturn:
        if len(payload) > self._member.max_message_size:
            raise LocalProtocolError(f"a message has at most {self._member.max_message_size} bytes, not {len(payload)}")
        if not self._highest:
            raise LocalProtocolError("this order has no priorities; use order='priority'")
        raise LocalProtocolError(f"priorities are 0 to {self._highest}, not {priority}")

    @property
    def largest(self) -> int:
        """Bytes that a message may have."""
        return self._member.max_message_size

    @property
    def waiting(self) -> int:
        """Bytes that were sent and that the protocol has not taken yet."""
        return self._outbox.pending_bytes

    def _destinations(self, names: object) -> int:
        if isinstance(names, str):
            raise LocalProtocolError(f"`to` is a set of names, such as {{{names!r}}}, not one name")
        if not isinstance(names, Iterable):
            raise LocalProtocolError(f"`to` is a set of names, not {type(names).__name__}")
        mask = 0
        for name in names:
            place = self._places.get(name) if isinstance(name, str) else None
            if place is None:
                raise LocalProtocolError(f"{name!r} is no member; members are: {', '.join(self._names)}")
            mask |= 1 << place
        if not mask:
            raise LocalProtocolError("a message must go to somebody")
        if mask != self._everybody and not self._selective:
            raise LocalProtocolError("in this order every message goes to everybody; use order='partial' or 'total'")
        return mask

    # --- hearing ---

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        try:
            return await self.receive()
        except GroupClosed:
            raise StopAsyncIteration from None

    async def receive(self) -> Message:
        """The next message; raises `GroupClosed` after the last, `GroupAborted` if the group was given up."""
        if not self._unread:
            batch = await self.receive_batch()
            self._unread = [*batch[::-1], *self._unread]  # another reader may have left some meanwhile
        return self._unread.pop()

    async def receive_batch(self) -> list[Message]:
        """The next messages of one sender, as many as came together: the quickest way to hear very many."""
        if self._unread:
            unread, self._unread = self._unread[::-1], []
            return unread
        while True:
            found = await self._member.inbox.next()
            if not isinstance(found, View):
                return found
            self._view = found

    async def batches(self) -> AsyncIterator[list[Message]]:
        """All messages until the group is closed, in lists of those that came together."""
        while True:
            try:
                batch = await self.receive_batch()
            except GroupClosed:
                return
            yield batch

    # --- keys ---

    def rotate(self, key: GroupKeys | Path | str) -> None:
        """From now on seals with the first key of this file, or of these, and opens with any of them."""
        keys = key if isinstance(key, GroupKeys) else keys_from_file(Path(key))
        self._member.rotate_keys(keys)

    # --- ending ---

    async def close(self, timeout: float | None = None) -> None:
        """Sends nothing more, stays until everybody has everything and closes too, then leaves.

        With a time-out, in seconds, the group is given up if the others take longer. Raises `GroupAborted` if the group
        was given up, by us or by others. What was delivered can still be read afterwards.
        """
        require_seconds(timeout=timeout)
        self._member.close(timeout)
        await self._is_over()
        if isinstance(self._member.end, GroupAborted):
            raise self._member.end.with_traceback(None)

    async def abort(self, why: str) -> None:
        """Gives the group up, for all its members, who are told why, and by whom."""
        await self._give_up(f"{self.me} gave the group up" + (f": {why}" if why else ""))

    async def _give_up(self, why: str) -> None:
        self._member.give_up(why)
        await self._is_over()

    async def _is_over(self) -> None:
        await asyncio.shield(self._member.left)
        await self._member.recorded()


def _whole_number(priority: object) -> int:
    """Of whatever is one, but not of a truth value."""
    if isinstance(priority, bool) or not isinstance(priority, SupportsIndex):
        raise LocalProtocolError(f"a priority is a whole number, not {priority!r}")
    return index(priority)


def _bytes_of(payload: object) -> bytes:
    """Of whatever holds bytes, but not of numbers and texts."""
    try:
        return bytes(memoryview(payload))  # type: ignore[arg-type]
    except TypeError:
        told = "encode the text: text.encode()" if isinstance(payload, str) else f"not {type(payload).__name__}"
        raise LocalProtocolError(f"a message is bytes; {told}") from None
