"""From messages to packets and back: many small ones in one packet, a large one in many.

What the application sends to the same nodes with the same priority shares a packet, as long as there is room. A packet
is closed when it is full, or when a turn of the event loop has passed in which nothing was added to it: there is no
timer, and who sends one message now and then does not wait. A message larger than a packet goes in pieces, each in a
packet of its own; it is whole when its last piece is delivered, which is its place in the order.

In front of a packet's messages stands one byte: whether it holds whole messages, or a piece, or the last piece.
"""

from asyncio import Future
from collections import deque
from itertools import accumulate, pairwise

from ordercast.live.events import Receipt
from ordercast.model.machine import Level, Submit
from ordercast.model.units import Packet

WHOLE, PIECE, LAST_PIECE = b"\0", b"\1", b"\2"
LENGTH_COST = 3  # at most, of a message's length on the wire


class OutgoingBatch:
    """What will be, or is, one packet of ours; and what is known of it."""

    __slots__ = (
        "_waiting",
        "destinations",
        "level",
        "lost",
        "mark",
        "messages",
        "parts",
        "priority",
        "receipt",
        "size",
    )

    def __init__(self, payload: bytes, destinations: int, priority: int, mark: bytes = WHOLE) -> None:
        self.destinations, self.priority, self.mark = destinations, priority, mark
        self.parts = [payload]
        self.messages = 0
        """That it brings or completes; known when it is given to the protocol."""
        self.size = len(payload) + LENGTH_COST
        self.receipt = Receipt(self)
        self.level = 0
        self.lost: BaseException | None = None
        """Why no more will be known of it."""
        self._waiting: list[tuple[int, Future[None]]] = []

    def submission(self) -> Submit:
        """For the protocol; what it holds is let go of."""
        self.messages = self.count()
        parts, self.parts = self.parts, []
        lengths = tuple(map(len, parts))
        return Submit(self.destinations, lengths, self.mark + b"".join(parts), self.priority)

    def count(self) -> int:
        """Messages that it brings or completes, as long as it waits."""
        return len(self.parts) if self.mark == WHOLE else int(self.mark == LAST_PIECE)

    def rise(self, level: int) -> None:
        """More is known of it."""
        self.level = level
        if self._waiting:
            for wanted, future in self._waiting:
                if wanted <= level and not future.done():
                    future.set_result(None)
            self._waiting = [pair for pair in self._waiting if pair[0] > level]

    def give_up(self, why: BaseException) -> None:
        """No more will be known of it."""
        self.lost = why
        for _, future in self._waiting:
            if not future.done():
                future.set_exception(why)
                future.exception()  # who does not wait any more need not be told
        self._waiting = []

    def when(self, level: Level, future: "Future[None]") -> "Future[None]":
        """The future, which comes true when so much is known."""
        if self.level >= level:
            future.set_result(None)
        elif self.lost is not None:
            future.set_exception(self.lost)
        else:
            self._waiting.append((level, future))
        return future


class Outbox:
    """What the application has sent and the protocol has not taken yet: the highest priority first."""

    def __init__(self, room: int) -> None:
        """`room`: bytes of messages, with their lengths, that a packet takes."""
        self.room = room
        self._queues: dict[int, deque[OutgoingBatch]] = {}  # by priority
        self._open: OutgoingBatch | None = None  # the last of its queue; takes more as long as it is not taken itself
        self.growing = False
        """The application is still adding to it."""
        self.waiting = 0
        """Bytes."""

    def add(self, payload: bytes, destinations: int, priority: int) -> Receipt:
        """Puts a message into a parcel. Those that share one share its receipt: it costs nothing by message."""
        size = len(payload) + LENGTH_COST
        parcel = self._open
        if (
            parcel is not None
            and parcel.size + size <= self.room
            and parcel.destinations == destinations
            and parcel.priority == priority
        ):
            parcel.parts.append(payload)
            parcel.size += size
            self.waiting += size
            return parcel.receipt
        if size <= self.room:
            self._open = self._append(OutgoingBatch(payload, destinations, priority))
            return self._open.receipt
        self._open = None
        piece = self.room - LENGTH_COST
        for start in range(0, len(payload) - piece, piece):
            self._append(OutgoingBatch(payload[start : start + piece], destinations, priority, PIECE))
        last = (len(payload) - 1) // piece * piece
        return self._append(OutgoingBatch(payload[last:], destinations, priority, LAST_PIECE)).receipt

    def _append(self, parcel: OutgoingBatch) -> OutgoingBatch:
        self.waiting += parcel.size
        self._queue(parcel.priority).append(parcel)
        return parcel

    def _queue(self, priority: int) -> deque[OutgoingBatch]:
        queue = self._queues.get(priority)
        if queue is None:
            queue = self._queues[priority] = deque()
        return queue

    def last(self) -> tuple[OutgoingBatch | None, int]:
        """The parcel that takes more, and how large it is: another one than before if anything was added."""
        return self._open, self._open.size if self._open is not None else 0

    def take(self) -> OutgoingBatch | None:
        """The next parcel for the protocol, if there is one; of a box that grows, only one that takes no more."""
        if not self._queues:
            return None
        priority = max(self._queues) if len(self._queues) > 1 else next(iter(self._queues))
        queue = self._queues[priority]
        if self.growing and queue[0] is self._open:
            return None
        parcel = queue.popleft()
        if not queue:
            del self._queues[priority]
        if parcel is self._open:
            self._open = None
        self.waiting -= parcel.size
        return parcel

    def __bool__(self) -> bool:
        return bool(self._queues)

    def messages(self) -> int:
        """Messages that wait."""
        return sum(parcel.count() for queue in self._queues.values() for parcel in queue)

    def give_up(self, why: BaseException) -> None:
        """Nothing of it will be sent."""
        for queue in self._queues.values():
            for parcel in queue:
                parcel.give_up(why)
        self._queues.clear()
        self._open, self.waiting = None, 0


def messages_in(packet: Packet) -> int:
    """Messages that a packet brings, or completes."""
    mark = packet.payload[:1]
    return len(packet.lengths) if mark == WHOLE else int(mark == LAST_PIECE)


class Reassembly:
    """What has come of messages that come in pieces."""

    def __init__(self, largest: int) -> None:
        """`largest`: bytes of a message; a larger one is dropped, by every member alike."""
        self._largest = largest
        self._held: dict[tuple[int, int], list[bytes]] = {}  # by source and priority
        self._sizes: dict[tuple[int, int], int] = {}
        self.too_large = 0

    def messages(self, packet: Packet) -> list[bytes]:
        """The messages that a packet brings, or completes."""
        payload, lengths = packet.payload, packet.lengths
        mark = payload[:1]
        if mark == WHOLE:
            if len(lengths) == 1:
                return [payload[1 : 1 + lengths[0]]]
            return [payload[start:stop] for start, stop in pairwise(accumulate(lengths, initial=1))]
        if mark not in {PIECE, LAST_PIECE}:
            return []
        name = (packet.source, packet.priority)
        held = self._held.setdefault(name, [])
        size = self._sizes[name] = self._sizes.get(name, 0) + len(payload) - 1
        if size <= self._largest:
            held.append(payload[1:])
        else:
            held.clear()
        if mark == PIECE:
            return []
        del self._held[name], self._sizes[name]
        if size > self._largest:
            self.too_large += 1
            return []
        return [b"".join(held)]
