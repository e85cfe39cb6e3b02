"""From messages to packets and back: many small messages share a packet, a large one is sent in fragments.

Messages to the same destinations with the same priority share a packet as long as there is room. A packet is closed
when it is full, or when a turn of the event loop has passed in which nothing was added: there is no timer, and a lone
message does not wait. A message that is larger than a packet is sent in fragments, each in a packet of its own; it is
complete when its last fragment is delivered, which is its place in the order.

The first byte of a packet's payload tells which of these it holds: see `message_fragments`.
"""

import asyncio
import itertools
import sys
from asyncio import Future
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from ordercast.live.durability import DurableWaiters
from ordercast.live.events import Receipt
from ordercast.live.host.message_fragments import FIRST_FRAGMENT, FRAGMENT, LAST_FRAGMENT, WHOLE
from ordercast.model.machine import Level, Submit

TO_ALL = -1
"""As destinations of a batch: the members of the view in which it is numbered."""
LENGTH_COST = 3  # bytes at most, of a message's length on the wire
PENDING_LIMIT = 1 << 20
"""Bytes that may wait for the protocol before `send` waits (back-pressure)."""


class LargeMessage:
    """A message that is sent in fragments, each in a batch of its own."""

    __slots__ = ("_destinations", "_fragment", "_payload", "_priority")

    def __init__(self, payload: bytes, fragment: int, destinations: int, priority: int) -> None:
        """`fragment`: bytes of each, but of the last one."""
        self._payload, self._fragment, self._destinations, self._priority = payload, fragment, destinations, priority

    def batches(self, stop: int | None = None) -> "Iterator[OutgoingBatch]":
        """The fragments, the first ones or all."""
        payload, fragment = self._payload, self._fragment
        count = -(-len(payload) // fragment)
        for index in range(count if stop is None else stop):
            mark = LAST_FRAGMENT if index == count - 1 else FRAGMENT if index else FIRST_FRAGMENT
            piece = payload[index * fragment : (index + 1) * fragment]
            batch = OutgoingBatch(piece, self._destinations, self._priority, mark)
            batch.large, batch.index = self, index
            yield batch


class OutgoingBatch:
    """The messages of one packet, and how far they have got."""

    __slots__ = (
        "_waiting",
        "destinations",
        "durable",
        "in_flight",
        "index",
        "large",
        "level",
        "lost",
        "mark",
        "messages",
        "parts",
        "priority",
        "receipt",
        "sent_at",
        "size",
    )

    def __init__(self, payload: bytes, destinations: int, priority: int, mark: bytes = WHOLE) -> None:
        """`destinations`: node numbers, which are bound when the application sends; `TO_ALL`: when it is numbered."""
        self.destinations, self.priority, self.mark = destinations, priority, mark
        self.large: LargeMessage | None = None
        """The message of which it has a fragment."""
        self.index = 0
        """Of that fragment."""
        self.parts = [payload]
        self.messages = 0
        """Messages that it holds or completes; known once it was given to the protocol."""
        self.size = len(payload) + LENGTH_COST
        self.receipt = Receipt(self)
        self.level = 0
        self.in_flight = 0
        """Bytes of its packet, from when it is numbered until it has its position in the order."""
        self.sent_at = 0.0
        """When it was numbered, in seconds, if somebody wants to know how long that takes."""
        self.lost: BaseException | None = None
        """Why no higher level will be reached."""
        self.durable: DurableWaiters | None = None
        """Who waits until it is on the disks of a majority; None: there is no log."""
        self._waiting: list[tuple[int, Future[None]]] = []

    def submission(self, places: int) -> Submit:
        """The input for the protocol, to these places of the view; the payloads are released."""
        parts, self.parts = self.parts, []
        self.messages = len(parts) if self.mark == WHOLE else int(self.mark == LAST_FRAGMENT)
        lengths = tuple(map(len, parts))
        to_all = self.destinations == TO_ALL
        return Submit(places, lengths, self.mark + b"".join(parts), self.priority, 0, to_all)

    def restore(self, submit: Submit) -> None:
        """It was submitted, and nobody was given it: it can be submitted again."""
        parts, start = [], 1
        for length in submit.lengths:
            parts.append(submit.payload[start : start + length])
            start += length
        self.parts, self.in_flight = parts, 0

    def reached(self, level: int) -> None:
        """It has reached this level."""
        self.level = level
        if self._waiting:
            for wanted, future in self._waiting:
                if wanted <= level and not future.done():
                    future.set_result(None)
            self._waiting = [pair for pair in self._waiting if pair[0] > level]

    def give_up(self, why: BaseException) -> None:
        """No higher level will be reached."""
        self.lost = why
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(why)
                future.exception()  # marks it as retrieved: nobody may be waiting any more
        self._waiting = []
        if self.durable is not None:
            self.durable.not_durable(why)

    def when(self, level: Level, future: "Future[None]") -> "Future[None]":
        """The future, which is done when this level is reached, or fails when it cannot be."""
        if self.level >= level:
            future.set_result(None)
        elif self.lost is not None:
            future.set_exception(self.lost)
        else:
            self._waiting.append((level, future))
        return future

    def forget(self, future: "Future[None]") -> None:
        """Nobody waits for this future any more."""
        self._waiting = [pair for pair in self._waiting if pair[1] is not future]


_NO_BATCH = OutgoingBatch(b"", TO_ALL, 0)
_NO_BATCH.size = sys.maxsize  # nothing fits behind it


class Outbox:
    """Messages that the application has sent and the protocol has not taken yet: the highest priority first."""

    def __init__(self, room: int) -> None:
        """`room`: bytes of messages, with their lengths, that fit into a packet."""
        self.room = room
        self._queues: dict[int, deque[OutgoingBatch]] = {}  # by priority
        self._open = _NO_BATCH  # the last of its queue; takes more until it is taken itself
        self.growing = False
        """The application is still adding: a batch that is not full is not taken."""
        self.paused = False
        """Nothing is taken: this member has not got the state yet."""
        self.awaited_by: Callable[[asyncio.Future[None]], object] | None = None
        """Is told who waits for a message to be durable; None: this member has no log."""
        self.pending_bytes = 0
        self._has_room, self._released = asyncio.Event(), False

    def add(self, payload: bytes, destinations: int, priority: int) -> Receipt:
        """Adds a message to a batch. The messages of a batch share its receipt."""
        size = len(payload) + LENGTH_COST
        batch = self._open
        if batch.size + size <= self.room and batch.destinations == destinations and batch.priority == priority:
            batch.parts.append(payload)
            batch.size += size
            self.pending_bytes += size
            return batch.receipt
        if size <= self.room:
            self._open = self._append(OutgoingBatch(payload, destinations, priority))
            return self._open.receipt
        self._open = _NO_BATCH
        for batch in LargeMessage(payload, self.room - LENGTH_COST, destinations, priority).batches():
            last = self._append(batch)
        return last.receipt

    def put_back(self, batches: Sequence[OutgoingBatch]) -> None:
        """What was taken and has to be sent again comes first, in this order; large messages as a whole."""
        for priority in {*self._queues, *(batch.priority for batch in batches)}:
            queue = self._queues.setdefault(priority, deque())
            again = [batch for batch in batches if batch.priority == priority]
            whole = _with_beginnings([*again, *itertools.islice(queue, 1)])
            if queue:
                self.pending_bytes -= queue.popleft().size
            queue.extendleft(reversed(whole))
            self.pending_bytes += sum(batch.size for batch in whole)

    def _append(self, batch: OutgoingBatch) -> OutgoingBatch:
        self.pending_bytes += batch.size
        if self.awaited_by is not None:
            batch.durable = DurableWaiters(self.awaited_by)
        queue = self._queues.get(batch.priority)
        if queue is None:
            queue = self._queues[batch.priority] = deque()
        queue.append(batch)
        return batch

    def last(self) -> tuple[OutgoingBatch, int]:
        """The batch that takes more, and its size: another value than before if anything was added."""
        return self._open, self._open.size

    def take(self) -> OutgoingBatch | None:
        """The next batch for the protocol, if there is one; while the outbox grows, only one that takes no more."""
        if not self._queues or self.paused:
            return None
        priority = max(self._queues) if len(self._queues) > 1 else next(iter(self._queues))
        queue = self._queues[priority]
        if self.growing and queue[0] is self._open:
            return None
        batch = queue.popleft()
        if not queue:
            del self._queues[priority]
        if batch is self._open:
            self._open = _NO_BATCH
        self.pending_bytes -= batch.size
        if self.pending_bytes <= PENDING_LIMIT:
            self._has_room.set()
        return batch

    def __bool__(self) -> bool:
        return bool(self._queues)

    def messages(self) -> int:
        """Messages that wait."""
        return sum(_count(batch) for queue in self._queues.values() for batch in queue)

    async def wait_for_room(self) -> None:
        """Back-pressure: returns when at most `PENDING_LIMIT` bytes wait, or after `release`."""
        while self.pending_bytes > PENDING_LIMIT and not self._released:
            self._has_room.clear()
            await self._has_room.wait()

    def release(self) -> None:
        """From now on nobody waits for room: nothing can be sent any more."""
        self._released = True
        self._has_room.set()

    def give_up(self, why: BaseException) -> None:
        """Nothing of it will be sent."""
        for queue in self._queues.values():
            for batch in queue:
                batch.give_up(why)
        self._queues.clear()
        self._open, self.pending_bytes = _NO_BATCH, 0


def _with_beginnings(batches: list[OutgoingBatch]) -> list[OutgoingBatch]:
    """The same, with the first fragments of the messages that they go on with."""
    found: list[OutgoingBatch] = []
    begun: LargeMessage | None = None
    for batch in batches:
        large = batch.large
        if large is not None and large is not begun:
            found += large.batches(batch.index)
        begun = large
        found.append(batch)
    return found


def _count(batch: OutgoingBatch) -> int:
    """Messages that it holds or completes, before it is submitted."""
    return len(batch.parts) if batch.mark == WHOLE else int(batch.mark == LAST_FRAGMENT)
