"""Links: reliable, ordered streams of datagrams to each member of a view, with congestion control.

    out:  Transport → LinkSender (pieces, paced) → socket
    in:   socket → LinkReceiver (pieces to datagrams, in order) → Transport

They are used between members that are not on one machine, and not with multicast. The protocols above repair all losses
by themselves; but each in the way of its paper, some by going back or by agreeing on an order again, and none of them
knows the path. Beneath them a lost packet costs that packet, one round trip later, whatever the order.

A link says nothing by itself but acknowledgments, which are control messages (`LinkAcknowledgment`) and authenticated
as these are. It lasts as long as the view; what is known of the path outlives it. A member that passes on what others
send, a relay or a sequencer, closes its links while more waits to be sent by it than goes out until the others have
heard that they may go on: so nothing piles up there.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.link_receiver import ACKNOWLEDGE_AFTER, LinkReceiver
from ordercast.live.transport.link_sender import LinkSender, Write
from ordercast.live.transport.path_model import ACK_DELAY, PathModel
from ordercast.live.transport.pieces import one_piece, read_pieces, read_train
from ordercast.live.transport.sockets import SocketAddress, socket_address, source_address
from ordercast.wire.control import LinkAcknowledgment

MAX_UNSENT = 1 << 18
"""Bytes that may wait to be sent to a member before this one takes nothing more from its application."""
_LEAST_UNSENT = 1 << 17  # below it goes on
_MIN_EXPECTED = 0.02  # seconds: a round trip that is not known is taken to be as long, at least

WriteTo = Callable[[list[bytes | memoryview], SocketAddress], None]


class Links:
    """Of one member. Used inside one event loop."""

    def __init__(
        self,
        segment: int,
        write: WriteTo,
        acknowledge: Callable[[int, LinkAcknowledgment], None],
        on_full: Callable[[bool], None],
    ) -> None:
        """`segment`: bytes of a packet; `on_full`: is called when too much waits to be sent, and when that is over."""
        self._segment, self._write, self._acknowledge, self._on_full = segment, write, acknowledge, on_full
        self._paths: dict[Address, PathModel] = {}
        self._stream = -1
        self._senders: dict[int, LinkSender] = {}  # by place
        self._receivers: dict[int, LinkReceiver] = {}
        self._places: dict[tuple[str, int], int] = {}  # by address, as sockets tell it
        self._seen_as: dict[int, tuple[str, int]] = {}  # by place, if that is not where we send to
        self.stranger: tuple[str, int] | None = None
        """Where the datagram that is being received comes from, if no member is known to be there."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._to_acknowledge: set[int] = set()
        self._ack_timer: asyncio.TimerHandle | None = None
        self.is_full = False
        """Too much waits to be sent."""
        self._passes_on = self._closed = False  # the latter: others must not send now
        self._repeated_before = 0

    @property
    def repeated(self) -> int:
        """Pieces that were sent again."""
        return self._repeated_before + sum(sender.repeated for sender in self._senders.values())

    def round_trip(self) -> float | None:
        """Seconds of the longest smoothed round trip to a member; None: there is none."""
        return max((path.smoothed for path in self._paths.values()), default=None)

    def enter(
        self, tag: int, addresses: Sequence[Address], me: int, *, passes_on: bool, round_trip: float = 0.0
    ) -> None:
        """From now on members are these. What waits to be sent to those of the view before is dropped.

        `passes_on`: what others send is sent again by this member; `round_trip`: seconds, as expected.
        """
        self._repeated_before = self.repeated
        self._stream, self._passes_on, self._closed = tag & 0xFFFFFFFF, passes_on, False
        self._senders, self._receivers, self._places, self._seen_as = {}, {}, {}, {}
        known, self._paths = self._paths, {}
        for place, address in enumerate(addresses):
            if place == me:
                continue
            path = known.get(address) or PathModel(self._segment, max(round_trip, _MIN_EXPECTED))
            self._paths[address] = path
            where = socket_address(address)
            self._senders[place] = LinkSender(self._stream, self._segment, path, self._writer(where))
            self._receivers[place] = LinkReceiver()
            self._places[source_address(address)] = place
        self._to_acknowledge.clear()
        self._note_room()

    def _writer(self, where: SocketAddress) -> Write:
        return lambda parts: self._write(parts, where)

    def close(self) -> None:
        """Sends nothing any more."""
        for timer in (self._timer, self._ack_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._ack_timer = None
        self._senders, self._receivers, self._places = {}, {}, {}
        self._to_acknowledge.clear()

    # --- out ---

    def send(self, datagram: bytes, place: int) -> None:
        """Sends a datagram to one member."""
        now, sender = time.monotonic(), self._senders[place]
        sender.send(datagram)
        sender.transmit(now)
        if sender.unsent > MAX_UNSENT:
            if not self.is_full:
                self.is_full = True
                self._on_full(True)  # noqa: FBT003 (a callback)
            if self._passes_on and sender.unsent > sender.enough_unsent():
                self._closed = True
        self._set_timer(sender)

    def send_to_all(self, datagram: bytes) -> None:
        """Sends a datagram to all other members."""
        for place in self._senders:
            self.send(datagram, place)

    def acknowledged(self, place: int, message: LinkAcknowledgment) -> None:
        """A member says what has arrived there."""
        sender = self._senders.get(place)
        if sender is None:
            return
        now, ranges = time.monotonic(), message.ranges
        pairs = list(zip(ranges[::2], ranges[1::2], strict=False))
        sender.acknowledged(pairs, message.delay / 1e6, now, message.waits_for, closed=message.closed)
        sender.transmit(now)
        self._note_room()
        self._set_timer(sender)

    def _set_timer(self, sender: LinkSender) -> None:
        """The timer is for the link that needs it first."""
        due = sender.due_at()
        if due is None or (self._timer is not None and self._timer_at <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        for sender in self._senders.values():
            now = time.monotonic()
            due = sender.due_at()
            if due is not None and due <= now:
                sender.tick(now)
        self._note_room()
        for sender in self._senders.values():
            self._set_timer(sender)

    def _note_room(self) -> None:
        """Less waits than before: this member, and others, may go on."""
        if not self.is_full:
            return
        senders = self._senders.values()
        if self._closed and all(sender.unsent <= max(_LEAST_UNSENT, sender.enough_unsent() // 2) for sender in senders):
            self._closed = False
            for place, receiver in self._receivers.items():
                if receiver.said_closed:
                    self._say(place, time.monotonic())
        if all(sender.unsent < _LEAST_UNSENT for sender in senders):
            self.is_full = False
            self._on_full(False)  # noqa: FBT003 (a callback)

    # --- in ---

    def heard_from(self, source: tuple[str, int]) -> None:
        """What is received next is not a piece of a link, and comes from there."""
        self.stranger = source if source not in self._places else None

    def is_seen_as_stranger(self, place: int) -> None:
        """What was received last was of this member: an address translator between us shows it at another address."""
        source = self.stranger
        if source is None or place not in self._receivers:
            return
        before = self._seen_as.get(place)
        if before is not None:
            self._places.pop(before, None)
        self._seen_as[place], self._places[source], self.stranger = source, place, None

    def take(self, data: memoryview, segment: int, source: tuple[str, int]) -> list[bytes]:
        """The datagrams that these segments complete, in their order."""
        self.stranger = None  # they come from a member, not from whoever was heard before
        place = self._places.get(source)
        if place is None:
            return []
        found: list[bytes] = []
        now, receiver = time.monotonic(), self._receivers[place]
        train = read_train(data, segment) if len(data) > segment else None
        if train is not None:
            if train[0][1] == self._stream:
                found = receiver.take_train(*train, now)
        else:
            pieces = one_piece(data) if len(data) <= segment else read_pieces(data, segment)
            for (_, stream, number, datagram, index, count), piece in pieces:
                if stream == self._stream:
                    found += receiver.take(number, datagram, index, count, piece, now)
        if receiver.unacknowledged:
            self._to_acknowledge.add(place)
        return found

    def after_reading(self) -> None:
        """What had arrived was read, or much of it: acknowledges what cannot wait."""
        if not self._to_acknowledge:
            return
        now = time.monotonic()
        for place in tuple(self._to_acknowledge):
            receiver = self._receivers[place]
            if receiver.is_urgent or receiver.unacknowledged >= ACKNOWLEDGE_AFTER or now - receiver.since >= ACK_DELAY:
                self._say(place, now)
        if self._to_acknowledge and self._ack_timer is None:
            self._ack_timer = asyncio.get_running_loop().call_later(ACK_DELAY, self._say_all)

    def _say_all(self) -> None:
        self._ack_timer = None
        for place in tuple(self._to_acknowledge):
            self._say(place, time.monotonic())

    def _say(self, place: int, now: float) -> None:
        receiver = self._receivers[place]
        self._to_acknowledge.discard(place)
        ranges, delay, waits_for = receiver.acknowledgment(now)
        receiver.said_closed = self._closed
        self._acknowledge(place, LinkAcknowledgment(ranges, delay, waits_for, receiver.said_closed))
