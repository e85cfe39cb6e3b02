"""A group as its members see it: send to some or to all, and receive everything in the chosen order."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterable
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, SupportsIndex

from ordercast.live.application_exceptions import end_block
from ordercast.live.events import Blocked, Event, Excluded, Message, Receipt, Unblocked, View
from ordercast.live.host.batching import PENDING_LIMIT, TO_ALL
from ordercast.live.host.member import Member
from ordercast.live.host.member_stats import stats_of
from ordercast.live.settings import require_seconds
from ordercast.live.stats import Stats
from ordercast.live.sync_group import SyncGroup
from ordercast.model.errors import GroupAborted, GroupClosed, LocalProtocolError
from ordercast.wire.keys import GroupKeys, keys_from_file

MAX_PRIORITY = 255
_LOWEST = 0  # compared by identity: False is another object, and is refused
_SHOWN_LENGTH = 80  # of what is not a name


class Group:
    """An open group. `ordercast.join` makes one; it is used inside one event loop.

    As a context manager it is left at the end of the block, as by `leave`: the block ends when all messages of this
    member have arrived, and raises `GroupAborted` if the group was aborted; the others continue. If the block is left
    by an exception, this member leaves at once: its last messages may be lost.
    """

    def __init__(self, name: str, member: Member, *, selective: bool, prioritised: bool) -> None:
        """`selective`: messages may go to a subset of the members; `prioritised`: messages may have priorities."""
        self._name = name
        self._member, self._outbox, self._scheduler = member, member.outbox, member.scheduler
        self._inbox, self._max_message_size = member.inbox, member.max_message_size
        self._ending = member.ending
        self._selective = selective
        self._max_priority = MAX_PRIORITY if prioritised else 0
        self._sync: SyncGroup | None = None
        self._unread: list[Message] = []  # of the packet that is being read; the next message last
        names = member.membership.members
        opened = View(number=0, position=0, members=names, joined=names, why="the group opened")
        self._view = member.views.joined_view or opened

    def __repr__(self) -> str:
        return f"<Group {self.name!r}: {self.me} of {', '.join(self.members)}>"

    def __del__(self) -> None:
        if not self._member.left.done():
            warning = f"group {self.name!r} was not closed: messages sent by {self.me} may be lost"
            warnings.warn(warning, ResourceWarning, stacklevel=2, source=self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await end_block(error, self.close if self._ending.is_closing else self.leave, self._leave_at_once)

    async def _leave_at_once(self) -> None:
        if not self._member.left.done():
            self._ending.leave(None, drain=False)
            await self._is_over()

    @property
    def name(self) -> str:
        """The name of the group."""
        return self._name

    @property
    def me(self) -> str:
        """The name of this member."""
        return self._member.name

    @property
    def view(self) -> View:
        """The last view that was handed out; at first the one that the group opened with, or that was joined."""
        return self._view

    @property
    def blocked(self) -> bool:
        """Too few members can be reached to continue: nothing is delivered, until they can be reached again."""
        return self._member.reachability.is_blocked

    @property
    def members(self) -> tuple[str, ...]:
        """The members of `view`: as of the last message or event that was handed out, not as of now.

        So applications that read the same events see the same members; `stats` has the current ones.
        """
        return self._view.members

    @property
    def sync(self) -> SyncGroup:
        """The same group for other threads than that of the event loop."""
        if self._sync is None:
            self._sync = SyncGroup(self, self._member.left.get_loop())
        return self._sync

    @property
    def starts_at(self) -> int:
        """The position of the first message that the application is handed, if it goes on with its log; else 0."""
        return self._member.state.starts_at

    def stats(self) -> Stats:
        """Counters and sizes of this member; also after the end."""
        return stats_of(self._member, self.name)

    # --- sending ---

    async def send(
        self,
        payload: bytes | bytearray | memoryview,
        *,
        to: Iterable[str] | None = None,
        priority: int = 0,
        until: Literal["accepted", "stable", "known_stable", "durable"] | None = None,
    ) -> Receipt:
        """Sends a message to some members, or to all including this one. Waits while too much is unsent.

        `to`: names of members (orders "partial" and "total"). `priority`: 0 to 255 (order "priority"). `until`: waits
        until the message has got so far; see `Receipt`. If the call is cancelled while it waits to send, nothing is
        sent; if it is cancelled while it waits for `until`, the message is sent.
        """
        if until is None:  # the way of nearly all messages
            if self._outbox.pending_bytes > PENDING_LIMIT:
                await self._outbox.wait_for_room()
            return self.send_nowait(payload, to=to, priority=priority)
        if until not in _UNTIL:
            raise LocalProtocolError(f"until must be 'accepted', 'stable', 'known_stable' or 'durable', not {until!r}")
        await self._outbox.wait_for_room()
        receipt = self.send_nowait(payload, to=to, priority=priority)
        await _UNTIL[until](receipt)
        return receipt

    def send_nowait(
        self, payload: bytes | bytearray | memoryview, *, to: Iterable[str] | None = None, priority: int = 0
    ) -> Receipt:
        """Sends without waiting: what cannot be sent yet is kept, however much that is. See `pending_bytes`."""
        if self._ending.why is not None:
            raise self._ending.why.with_traceback(None)  # one error for all calls: it must not collect their tracebacks
        if type(payload) is not bytes:
            payload = _bytes_of(payload)
        if len(payload) > self._max_message_size:
            raise LocalProtocolError(
                f"a message has at most {self.max_message_size} bytes (max_message_size), not {len(payload)}"
            )
        if priority is not _LOWEST:
            priority = self._priority(priority)
        receipt = self._outbox.add(payload, TO_ALL if to is None else self._destinations(to), priority)
        if not self._scheduler.scheduled:
            self._scheduler.message_added()
        return receipt

    def _priority(self, asked: object) -> int:
        priority = _whole_number(asked)
        if not 0 <= priority <= self._max_priority:
            if not self._max_priority:
                raise LocalProtocolError("this order has no priorities; use order='priority'")
            raise LocalProtocolError(f"a priority is 0 to {self._max_priority}, not {priority}")
        return priority

    @property
    def max_message_size(self) -> int:
        """The maximum size of a message, in bytes."""
        return self._max_message_size

    @property
    def pending_bytes(self) -> int:
        """Bytes that were sent by the application and not yet accepted by the protocol."""
        return self._outbox.pending_bytes

    def _destinations(self, names: object) -> int:
        if isinstance(names, str):
            raise LocalProtocolError(f"`to` must be a set of names, such as {{{_shortened(names)}}}, not one name")
        if not isinstance(names, Iterable):
            raise LocalProtocolError(f"`to` must be a set of names, not {type(names).__name__}")
        mask = 0
        membership = self._member.membership
        now = membership.present  # members that went may still be in the view that was handed out
        for name in names:
            node = membership.nodes.get(name) if isinstance(name, str) else None
            if node is None or not (now >> node & 1 or name in self._view.members):
                raise LocalProtocolError(f"{_shortened(name)} is not a member; members are: {', '.join(self.members)}")
            mask |= 1 << node
        if not mask:
            raise LocalProtocolError("a message needs at least one destination")
        if now & ~mask == 0:
            return TO_ALL
        if self._member.log is not None:
            raise LocalProtocolError(
                "the group has a log, which has one position for each message, the same at all members: messages go to "
                "all members; leave out `to`, or join without log="
            )
        if not self._selective:
            raise LocalProtocolError("in this order every message goes to all members; use order='partial' or 'total'")
        return mask

    # --- receiving ---

    def __aiter__(self) -> Self:
        """All messages until the group is closed; raises `GroupAborted` if it is aborted. See `events` for views."""
        return self

    async def __anext__(self) -> Message:
        try:
            return await self.receive()
        except GroupClosed:
            raise StopAsyncIteration from None

    async def receive(self) -> Message:
        """The next message; raises `GroupClosed` after the last one, `GroupAborted` if the group was aborted."""
        while not self._unread:
            await self._next_packet_or_event()
        return self._unread.pop()

    async def receive_batch(self) -> list[Message]:
        """The next messages of one sender, as many as share a packet: the fastest way to receive very many."""
        while not self._unread:
            await self._next_packet_or_event()
        unread, self._unread = self._unread, []
        unread.reverse()
        return unread

    async def batches(self) -> AsyncIterator[list[Message]]:
        """All messages until the group is closed, in lists of those that share a packet."""
        while True:
            try:
                batch = await self.receive_batch()
            except GroupClosed:
                return
            yield batch

    async def events(self) -> AsyncIterator[Message | View | Excluded | Blocked | Unblocked]:
        """All messages and all changes of membership until the group is closed, in the order of the group.

        For a member that joined a running group the first event is the view that it joined with; the view that a group
        opened with is not among them: it is `view` before the first event. Besides messages and views there are
        `Excluded`, if the others continue without this member, and `Blocked` and `Unblocked`.
        """
        while True:
            try:
                event = await self._next_packet_or_event()
            except GroupClosed:
                return
            yield self._unread.pop() if event is None else event

    async def event_batches(self) -> AsyncIterator[list[Message] | View | Excluded | Blocked | Unblocked]:
        """The same as `events`, but messages come in lists of those that share a packet."""
        while True:
            try:
                event = await self._next_packet_or_event()
            except GroupClosed:
                return
            if event is None:
                unread, self._unread = self._unread, []
                unread.reverse()
                yield unread
            else:
                yield event

    async def _next_packet_or_event(self) -> Event | None:
        """The event that comes next; None: messages come next, and are in `_unread`.

        Nothing is taken out of the inbox while messages are unread, so that several readers share one order.
        """
        inbox = self._inbox
        while not self._unread:
            found = inbox.take()
            if found is None:
                self._member.read_all()
                await inbox.wait()
            elif isinstance(found, list):
                found.reverse()
                self._unread = found
                return None
            else:
                if isinstance(found, View):
                    self._view = found
                    self._member.state.handed_out(found.number)
                return found
        return None

    # --- keys ---

    def rotate_keys(self, key: GroupKeys | Path | str) -> None:
        """Encrypts with the first of these keys, or of this file, from now on; decrypts with any of them.

        To change keys without interruption: first add the new key behind the old one at all members, then put it
        first, then remove the old one.
        """
        keys = key if isinstance(key, GroupKeys) else keys_from_file(Path(key))
        self._member.rotate_keys(keys)

    # --- ending ---

    async def close(self, timeout: float | None = None) -> None:
        """Sends nothing more, waits until all members have closed and have received everything, then leaves.

        `timeout`: seconds after which the group is aborted if the others have not closed. Raises `GroupAborted` if the
        group was aborted, by this member or by another. What was delivered can still be read afterwards, or meanwhile:
        the group is aborted if the others send more than 256 MiB that this member does not read. A second call waits
        for the same end; its timeout, if it has one, replaces that of the first. A call that is cancelled leaves the
        group closing.
        """
        require_seconds(timeout=timeout)
        self._ending.close(timeout)
        await self._is_over()
        if isinstance(self._ending.why, GroupAborted):
            raise self._ending.why.with_traceback(None)

    async def leave(self, timeout: float | None = None) -> None:
        """Sends nothing more, and leaves when all own messages have arrived. The others continue without this member.

        `timeout`: seconds after which it leaves whatever has arrived; receipts of the rest raise `GroupClosed`. What
        was delivered can still be read afterwards. A member that waits in `close` for others may leave instead. Raises
        `GroupAborted` if the group was aborted meanwhile, if so few members can be reached that nobody could agree that
        this one has left, or if its messages wait for an application that does not read (`slow_reader_timeout`).
        """
        require_seconds(timeout=timeout)
        if self._ending.why is None or self._ending.is_closing:
            self._ending.leave(timeout)
        await self._is_over()
        if isinstance(self._ending.why, GroupAborted):
            raise self._ending.why.with_traceback(None)

    async def abort(self, why: str) -> None:
        """Aborts the group for all members; `GroupAborted.why` has the name of this member and this text."""
        await self._abort(f"{self.me} aborted the group" + (f": {why}" if why else ""))

    async def _abort(self, why: str) -> None:
        self._ending.abort(why)
        await self._is_over()

    async def _is_over(self) -> None:
        await asyncio.shield(self._member.left)
        await self._member.recorded()


_UNTIL = {
    "accepted": Receipt.accepted,
    "stable": Receipt.stable,
    "known_stable": Receipt.known_stable,
    "durable": Receipt.durable,
}


def _shortened(name: object) -> str:
    """For a sentence: what is given as a name may be a whole line of input."""
    text = repr(name)
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"


def _whole_number(priority: object) -> int:
    """Accepts what is an integer, such as an IntEnum, but not a bool."""
    if isinstance(priority, bool) or not isinstance(priority, SupportsIndex):
        raise LocalProtocolError(f"a priority must be a whole number, not {priority!r}")
    return index(priority)


def _bytes_of(payload: object) -> bytes:
    """Accepts what holds bytes, but neither numbers nor text."""
    try:
        return bytes(memoryview(payload))  # type: ignore[arg-type] # a TypeError tells
    except TypeError:
        hint = "encode the text: text.encode()" if isinstance(payload, str) else f"not {type(payload).__name__}"
        raise LocalProtocolError(f"a message must be bytes; {hint}") from None
