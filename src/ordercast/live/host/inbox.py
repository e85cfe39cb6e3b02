"""What was delivered and waits for the application: packets, opened only when the application reads, and views."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ordercast.live.events import Blocked, Event, Excluded, Message, Origin, Unblocked, View
from ordercast.live.host.message_fragments import WHOLE, MessageReassembler, Partial, messages_in
from ordercast.model.nodes import chosen
from ordercast.model.units import Packet

if TYPE_CHECKING:
    from ordercast.live.host.durable.feed import LogFeed

_CACHED_DESTINATIONS = 1024  # sets of destinations: most groups use few
_MAX_INDEX = 128  # of a message among those of an origin: Python has small integers ready, larger ones it makes


INBOX_LIMIT = 8 << 20
"""Bytes that may wait for an application that does not read, before senders are asked to wait."""
HARD_LIMIT = 256 << 20
"""Bytes that may wait if members do not: more is dropped, and sent again."""
HOLD_LIMIT = 256 << 20
"""The same while the application waits for a state, and cannot read."""

Notice = Excluded | Blocked | Unblocked
"""What is told at once, whatever is delivered before and after it."""


class _NewView(NamedTuple):
    """A view, and where its members were in the view before."""

    view: View
    places: Mapping[int, int]
    partials: list[Partial]
    """What others have given to this member, which joined with the view."""


class Inbox:
    """A queue with an end: when the group is over, what is left can be read, and then the reason is raised."""

    def __init__(self, names: tuple[str, ...], max_message_size: int) -> None:
        """`names`: of the members of the first view, in their places."""
        self._names = names  # in the view that is being read
        self.reassembler = MessageReassembler(max_message_size)
        self._queue: deque[Packet | _NewView | Notice | list[Message]] = deque()
        self._ready = self._queue  # what the application may read: another one while new arrivals are held
        self._position = self._view = 0  # of the next message to be read
        self._destinations: dict[int, tuple[str, ...]] = {}  # names by mask, of those that occurred
        self._origin, self._mask = Origin(), 0  # of the last message that was read; 0: in no view yet
        self._arrived, self._waiting = asyncio.Event(), 0  # and how many wait for it
        self._read_up = asyncio.Event()  # the application was handed all that came before what is held
        self._end: BaseException | None = None
        self._awaited: int | None = None  # the view from which on nothing is handed out: partial messages are missing
        self.bytes = 0
        """Bytes of payloads that wait for the application."""
        self.limit = INBOX_LIMIT
        """If so many wait, no more should be sent."""
        self.on_full: Callable[[], None] = lambda: None
        self.on_room: Callable[[], None] = lambda: None
        """Are called when so many wait, and when half of them do, after that."""
        self._full = False
        self._places, self._counts = names, [0] * len(names)  # in the last view: messages that were put here, by place
        self._totals = dict.fromkeys(names, 0)  # in the views before, by sender
        self._before_held: dict[str, int] = {}  # all of them, when new arrivals began to be held
        self._first_position = 0  # of the last view
        self._resume = 0  # of the next message, while new arrivals are held
        self._replays, self._replayed = False, asyncio.Event()  # older messages come from the log; they were read
        self.log: LogFeed | None = None
        """Is given the same packets and views, if this member has a log."""

    @property
    def delivered(self) -> dict[str, int]:
        """Messages that were put here, by sender."""
        found = dict(self._totals)
        for name, count in zip(self._places, self._counts, strict=True):
            found[name] = found.get(name, 0) + count
        return found

    @property
    def position(self) -> int:
        """The position of the next message that is put here."""
        return self._first_position + sum(self._counts)

    @property
    def resume_at(self) -> int:
        """The position of the next message that the application is to be handed, after all that waits for it."""
        return self._resume if self.is_held else self.position

    def begin_at(self, position: int, view: int) -> None:
        """The first message has this position, in the view of this number: the group goes on with a log."""
        self._position = self._first_position = position
        self._view, self._mask = view, 0

    @property
    def too_large(self) -> int:
        """Messages that exceeded the maximum size, and were dropped."""
        return self.reassembler.too_large

    def put(self, packet: Packet) -> None:
        """Adds a packet that was delivered."""
        self._queue.append(packet)
        payload = packet.payload
        self.bytes += len(payload)
        self._counts[packet.source] += len(packet.lengths) if payload[:1] == WHOLE else messages_in(packet)
        if self._waiting:
            self._arrived.set()
        if self.log is not None:
            self.log.put(packet)
        if self.bytes > self.limit and not self._full:
            self._full = True
            self.on_full()

    def put_view(self, view: View, places: Mapping[int, int]) -> None:
        """Adds a change of membership, at its place among the packets: those that follow have places of this view.

        `places`: those of the members that go on, by their places in the view before.
        """
        self._totals = self.delivered
        self._places, self._counts, self._first_position = view.members, [0] * len(view.members), view.position
        self._queue.append(_NewView(view, places, []))
        self._arrived.set()
        if self.log is not None:
            self.log.put_view(view, places)

    def partial_messages(self) -> list[Partial]:
        """Messages to all members of which only the first fragments were put here yet; as they are now."""
        reassembler, size = self.reassembler.copy(), len(self._names)
        for each in self._all():
            if isinstance(each, _NewView):
                reassembler.move(each.places)
                reassembler.load(each.partials)
                size = len(each.view.members)
            elif isinstance(each, Packet) and each.payload[:1] != WHOLE:
                reassembler.messages(each, (1 << size) - 1)
        return [partial for partial in reassembler.partials.values() if partial.to_all]

    def await_partials(self, number: int) -> None:
        """Nothing from the view of this number on is handed out, until `load_partials`."""
        self._awaited = number
        if self.log is not None:
            self.log.await_partials()

    def load_partials(self, partials: list[Partial]) -> None:
        """Goes on with the view that is waited at, and with what others have of messages that began before it."""
        if self.log is not None:
            self.log.load_partials(partials)
        for each in self._all():
            if isinstance(each, _NewView) and self._waits_at(each) and not each.partials:
                each.partials.extend(partials)
        self._awaited = None
        self._arrived.set()

    def put_notice(self, notice: Notice) -> None:
        """Adds what has no place among the packets."""
        self._queue.append(notice)
        self._arrived.set()

    def _all(self) -> Iterator[Packet | _NewView | Notice | list[Message]]:
        """All that waits, in its order."""
        return chain(self._ready, self._queue) if self.is_held else iter(self._queue)

    @property
    def is_held(self) -> bool:
        """What arrives waits for a state."""
        return self._queue is not self._ready

    def hold_for_state(self) -> None:
        """What arrives from now on is not read before `release`: it follows a state that is not loaded yet."""
        self._resume = self.resume_at
        self.drop_held()
        self._queue, self._before_held, self.limit = deque(), self.delivered, HOLD_LIMIT
        if self._ready:
            self._read_up.clear()
        else:
            self._read_up.set()

    async def read_up(self) -> None:
        """Returns when the application was handed all that came before what is held.

        One that returns loads a state then: it must not be handed what the state contains after it.
        """
        await self._read_up.wait()

    def replay_from(self, position: int) -> None:
        """While arrivals are held: what the application is handed next comes from the log, from this position on."""
        self._resume, self._replays = position, True

    async def put_replayed(self, messages: list[Message]) -> None:
        """Older messages, before all that is held; returns when they were read."""
        self._ready.append(messages)
        self._resume += len(messages)
        self._replayed.clear()
        self._arrived.set()
        await self._replayed.wait()

    def release(self) -> None:
        """The state is loaded: what follows it may be read."""
        self._replays = False
        self._ready.extend(self._queue)
        self._queue, self.limit = self._ready, INBOX_LIMIT
        self._arrived.set()
        if self.bytes > self.limit and not self._full:
            self._full = True
            self.on_full()

    def drop_held(self) -> None:
        """What waits for a state is never read; nothing is held any more."""
        if self.is_held:
            self.bytes -= sum(len(each.payload) for each in self._queue if isinstance(each, Packet))
            self._queue, self._totals, self._awaited = self._ready, self._before_held, None
            self._counts, self.limit = [0] * len(self._counts), INBOX_LIMIT
            self._note_room()

    def end(self, reason: BaseException) -> None:
        """Nothing more will come; `reason` is raised when everything was read. What waits for a state is never read."""
        if not self._replays:
            self.drop_held()
        self._end, self._awaited = reason, None
        self._arrived.set()

    def take(self) -> list[Message] | Event | None:
        """The next event, or the messages of the next packet that has, or completes, any; None: nothing waits."""
        ready = self._ready
        while ready:
            if self._awaited is not None and self._waits_at(ready[0]):
                return None
            found = ready.popleft()
            if not isinstance(found, Packet):
                if isinstance(found, list):
                    return found
                if not isinstance(found, _NewView):
                    if not ready and self.is_held:
                        self._read_up.set()  # this is `Excluded`, which comes last
                    return found
                self._enter(found)
                return found.view
            self.bytes -= len(found.payload)
            if self._full:
                self._note_room()
            messages = self._messages(found)
            if messages:
                return messages
        self._replayed.set()
        return None

    def _note_room(self) -> None:
        if self._full and self.bytes <= self.limit // 2:
            self._full = False
            self.on_room()

    def _waits_at(self, found: "Packet | _NewView | Notice | list[Message]") -> bool:
        return isinstance(found, _NewView) and found.view.number == self._awaited

    def _enter(self, entered: "_NewView") -> None:
        """What follows is of this view. A message that began before goes on, if its sender does."""
        view = entered.view
        self.reassembler.move(entered.places)
        self.reassembler.load(entered.partials)
        self._view, self._names, self._destinations, self._mask = view.number, view.members, {}, 0
        self._position = view.position

    async def wait(self) -> None:
        """Waits for the next arrival, after `take` has found nothing; raises the reason if there is an end.

        Several readers may wait: the first that runs takes what has arrived, so each must call `take` again.
        """
        if self._end is not None and self._awaited is None and not self._replays:
            raise self._end.with_traceback(None)  # one error for all calls: it must not collect their tracebacks
        self._arrived.clear()
        self._waiting += 1
        try:
            await self._arrived.wait()
        finally:
            self._waiting -= 1

    def _messages(self, packet: Packet) -> list[Message]:
        origin, index = self._origin, self._position - self._origin.first_position
        if index > _MAX_INDEX or packet.destinations != self._mask or packet.priority != origin.priority:
            origin, index = self._new_origin(packet), 0
        sender, payload, lengths = self._names[packet.source], packet.payload, packet.lengths
        if payload[:1] != WHOLE:
            self._position += messages_in(packet)  # one that is too large counts: all members drop it
            everybody = (1 << len(self._names)) - 1
            return [Message(sender, each, index, origin) for each in self.reassembler.messages(packet, everybody)]
        self._position += len(lengths)
        if len(lengths) == 1:
            return [Message(sender, payload[1 : 1 + lengths[0]], index, origin)]
        found, start = [], 1
        for length in lengths:  # this loop is faster than a comprehension over pairs of offsets
            stop = start + length
            found.append(Message(sender, payload[start:stop], index, origin))
            start = stop
            index += 1
        return found

    def _new_origin(self, packet: Packet) -> Origin:
        self._mask = packet.destinations
        names = self._destinations.get(self._mask)
        if names is None:
            names = chosen(self._names, self._mask)
            if len(self._destinations) < _CACHED_DESTINATIONS:
                self._destinations[self._mask] = names
        self._origin = Origin(packet.priority, names, self._position, self._view)
        return self._origin
