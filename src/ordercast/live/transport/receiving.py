"""The way into one member: datagrams become units and control messages.

open → filter (view, destination) → reorder → unpack → decode → check → receiver

Whatever arrives from the network is understood, or dropped and counted by reason; nothing of it raises anything here.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence

from ordercast.live.transport.beside_relay import POSITION
from ordercast.live.transport.gathering import COMPRESSED, GATHERED, decompressed, separated
from ordercast.live.transport.receiver import Receiver
from ordercast.live.transport.relay import ORIGIN, ORIGIN_SIZE, RelayClient
from ordercast.live.transport.reorder_buffer import OrderedStreams, Stream
from ordercast.live.transport.routing_table import PreviousView, RoutingTable
from ordercast.live.transport.unit_addresses import has_addresses, is_address
from ordercast.model.units import DataUnit, Unit
from ordercast.protocols.membership.units import CONTROL_UNITS, ControlUnit
from ordercast.protocols.membership.view import GroupView
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import IN_SESSION, LinkAcknowledgment
from ordercast.wire.datagram import (
    BESIDE_RELAY,
    ECHO,
    FROM_RELAY,
    HANDSHAKE,
    HEADER,
    RELAY,
    TO_ALL,
    TO_RELAY,
    UNKNOWN,
    UNORDERED,
    Datagram,
    Rejection,
    unpack_records,
)
from ordercast.wire.inspection import Inspect
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal
from ordercast.wire.unit_validation import is_valid, is_valid_in_view, is_valid_outside


class Receiving:
    """Receives for one member."""

    def __init__(self, read: Callable[[], bool], table: RoutingTable, seal: Seal, codec: Codec) -> None:
        """`read`: receives what has arrived meanwhile."""
        self._table, self._seal, self._codec = table, seal, codec
        self._receiver: Receiver
        self._for_us = (TO_ALL, table.me + 1)
        self._keeps_order = False
        self.streams: list[Stream] = []
        """Of what members send to us, by member."""
        self._looped_back: deque[tuple[int, bytes | memoryview]] = deque()  # by our own relay: origin, records
        self._looping_back = False
        self.answer_discovery: Callable[[bytes], None] | None = None
        """Who answers those that look for a group by multicast."""
        self.has_data = False
        """Data came since somebody made this False."""
        self.dropped: Counter[str] = Counter()
        """Datagrams and records that were dropped, by reason."""
        self._in_order = OrderedStreams(
            self._process, read, self.dropped, self._released, process_held=self._process_held
        )

    def start(self, receiver: Receiver) -> None:
        """What arrives is handed to this one."""
        self._receiver = receiver

    def enter_view(self, max_hold: int, *, keeps_order: bool) -> None:
        """The table is of the next view. `keeps_order`: each member's datagrams are put into their order."""
        self._for_us = (TO_ALL, self._table.me + 1)
        self._keeps_order = keeps_order
        self.streams = [Stream(max_hold) for _ in range(self._table.nodes)]

    def forget_looped_back(self) -> None:
        """What our own relay passed on in the view before is lost."""
        self._looped_back.clear()

    def close(self) -> None:
        """Holds nothing any more."""
        self._in_order.close()

    def receive_early(self, datagrams: Sequence[bytes]) -> None:
        """Handles what arrived before this member was in its first view: the others were in it already, and sent."""
        for datagram in datagrams:
            self.receive(datagram)
        if datagrams:
            self._receiver.drained()

    def receive(self, data: bytes | memoryview) -> None:
        """Handles one datagram."""
        table = self._table
        if len(data) >= HEADER.size and int.from_bytes(data[4:6]) in table.own_senders and table.is_own(data):
            return
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self.dropped[datagram] += 1
        elif datagram.flags & FROM_RELAY:
            self._receive_relayed(datagram)
        elif datagram.flags & HANDSHAKE:
            self._receive_handshake(datagram)
        elif datagram.tag != table.session and not self._is_opened_by(datagram):
            pass
        elif datagram.to not in self._for_us:
            self.dropped["not_addressed"] += 1
        elif datagram.sender >= table.nodes:
            self._receive_unordered(datagram)
        elif self._keeps_order:
            self._in_order.take(self.streams[datagram.sender], datagram)
        else:
            self._process(datagram)

    def _receive_unordered(self, datagram: Datagram) -> None:
        table = self._table
        place = datagram.sender ^ UNORDERED
        if table.links is not None and table.links.stranger is not None:
            table.links.is_seen_as_stranger(place)
        if place < table.nodes and datagram.flags & BESIDE_RELAY:
            self._receive_beside(place, datagram.body)
        elif place < table.nodes and not datagram.flags & TO_RELAY:
            self._unpack(place, datagram.body, in_session=True)
        elif place < table.nodes and table.gathers and table.own_relay is not None:
            records = table.own_relay.take(datagram)
            if records is None:
                self.dropped[Rejection.TRUNCATED] += 1
            else:
                self._unpack(place, records, in_session=True)
        else:
            self.dropped["non_member"] += 1

    def _receive_beside(self, place: int, body: bytes) -> None:
        """A status that is handled when we have come as far in the relay's order as who sent it."""
        table = self._table
        relay = table.relay
        if len(body) < POSITION.size:
            self.dropped[Rejection.TRUNCATED] += 1
            return
        incarnation, position = POSITION.unpack_from(body)
        if not table.beside:
            self.dropped["non_member"] += 1
        elif relay is None:  # we pass on ourselves: what we have passed on until now was before it
            self.receive_looped_back()
            self._unpack(place, memoryview(body)[POSITION.size :], in_session=True)
        elif not incarnation or (incarnation == relay.incarnation and position <= relay.position):
            self._unpack(place, memoryview(body)[POSITION.size :], in_session=True)
        elif incarnation < relay.incarnation:
            self.dropped["late"] += 1
        else:
            relay.early.add(incarnation, position, (place, body[POSITION.size :]))

    def _is_opened_by(self, datagram: Datagram) -> bool:
        """Whether what has another tag than the current view's made us open the session that it belongs to."""
        table = self._table
        previous = table.previous
        if previous is not None and datagram.tag == previous.tag:
            self._receive_from_previous(datagram, previous)
            return False
        place = datagram.sender & ~UNORDERED
        if table.session is None and place < table.nodes:
            self._receiver.session_received(place, datagram.tag)
        opened = datagram.tag == table.session
        if not opened:
            self.dropped["session"] += 1
        return opened

    def _receive_from_previous(self, datagram: Datagram, previous: PreviousView) -> None:
        """Only membership units count; who sends units of the order has not heard of the current view."""
        place = datagram.sender & ~UNORDERED
        if place >= len(previous.addresses):
            self.dropped["non_member"] += 1
        elif datagram.to not in {TO_ALL, previous.me + 1}:
            self.dropped["not_addressed"] += 1
        elif datagram.flags & (TO_RELAY | BESIDE_RELAY):
            self._receiver.other_view_received(place)
        else:
            records = unpack_records(datagram.body)
            if isinstance(records, Rejection):
                self.dropped[records] += 1
                return
            for record in records:
                try:
                    message = self._codec.decode(record)
                except Malformed:
                    self.dropped["malformed"] += 1
                    continue
                if isinstance(message, CONTROL_UNITS):
                    self._check_membership(message, place, previous.view)  # type: ignore[arg-type]
                elif isinstance(message, Unit):
                    self._receiver.other_view_received(place)
                else:
                    self.dropped["session"] += 1

    def _check_membership(self, unit: ControlUnit, place: int, view: GroupView) -> None:
        if unit.source == place and unit.view == view.number and is_valid_in_view(unit, view) and has_addresses(unit):
            self._receiver.membership_received(unit)
        else:
            self.dropped["invalid"] += 1

    def _receive_handshake(self, datagram: Datagram) -> None:
        if datagram.sender < len(self._table.founders):
            self._unpack(datagram.sender, datagram.body, in_session=False)
        elif datagram.sender == UNKNOWN and self._receive_outside(datagram.body):
            pass
        elif datagram.sender == UNKNOWN and self.answer_discovery is not None:
            self.answer_discovery(datagram.body)
        else:
            self.dropped["non_member"] += 1

    def _receive_outside(self, body: bytes) -> bool:
        """True if it is a unit from one outside."""
        records = unpack_records(body)
        if isinstance(records, Rejection) or len(records) != 1:
            return False
        try:
            message = self._codec.decode(records[0])
        except Malformed:
            return False
        if isinstance(message, Inspect) and is_address(message.address):
            self._receiver.inspect_received(message)
            return True
        if not isinstance(message, Outside):
            return False
        if is_valid_outside(message.unit) and is_address(message.address) and has_addresses(message.unit):
            self._receiver.outside_received(message.unit, message.address)
        else:
            self.dropped["invalid"] += 1
        return True

    def _receive_relayed(self, datagram: Datagram) -> None:
        table = self._table
        relay, previous = table.relay, table.previous
        if datagram.sender != RELAY and datagram.sender != ECHO:  # noqa: PLR1714 (the quicker)
            self.dropped["non_member"] += 1
            return
        if datagram.sender == ECHO and datagram.to != table.me + 1:
            self.dropped["not_addressed"] += 1
            return
        if len(datagram.body) < ORIGIN_SIZE:
            self.dropped[Rejection.TRUNCATED] += 1
            return
        origin, tag = ORIGIN.unpack_from(datagram.body)
        if tag != table.session and previous is not None and tag == previous.tag and (not relay or relay.is_member):
            self._receive_relayed_before(origin)  # by the relay of that view, which may be another
        elif relay is None and table.session is not None:
            self.dropped["non_member"] += 1
        elif relay is None or (tag != table.session and (previous is None or tag != previous.tag)):
            self.dropped["session"] += 1  # its incarnation must not count: its clock may be ahead
        elif datagram.tag < relay.incarnation:
            self.dropped["late"] += 1
        else:
            if datagram.tag > relay.incarnation:
                former = relay.restarted(datagram.tag)
                self._in_order.finish(former)
            self._in_order.take(relay.stream, datagram)

    def _released(self, drained: bool) -> None:  # noqa: FBT001 (a callback)
        """What was held is processed, after what had arrived."""
        if drained:
            self._receiver.drained()
        else:
            self._receiver.paused()

    def _process_held(self, datagram: Datagram) -> None:
        """The same for one that was held: the view may be another one now."""
        if datagram.flags & FROM_RELAY or datagram.tag == self._table.session:
            self._process(datagram)
        else:
            self.dropped["session"] += 1

    def _process(self, datagram: Datagram) -> None:
        """Handles a datagram that is in its order."""
        table = self._table
        if datagram.flags & FROM_RELAY:
            origin, tag = ORIGIN.unpack_from(datagram.body)
            if tag != table.session:
                self._receive_relayed_before(origin)
                return
            body = memoryview(datagram.body)[ORIGIN_SIZE:]
            if origin == GATHERED:
                self._unpack_gathered(body, has_echo=datagram.sender == ECHO)
            elif origin == COMPRESSED:
                self._unpack_gathered(decompressed(body))
            else:
                self._unpack_relayed(origin, body)
            if table.beside and table.relay is not None:
                self._passed(table.relay, datagram)
        elif not datagram.flags & TO_RELAY:
            self._unpack(datagram.sender, datagram.body, in_session=True)
            if table.gathers and table.own_relay is not None:
                table.acknowledged_by_data(datagram.sender)
        elif table.own_relay is None:
            self.dropped["non_member"] += 1
        else:  # we are the relay: it goes to everybody, us included
            records = table.own_relay.take(datagram)
            if records is None:
                self.dropped[Rejection.TRUNCATED] += 1
            else:
                self._looped_back.append((datagram.sender, records))
                self.receive_looped_back()

    def _passed(self, relay: RelayClient, datagram: Datagram) -> None:
        """A datagram of the relay is handled: so are now the statuses that waited for it."""
        if datagram.tag == relay.incarnation:
            relay.position = datagram.counter + 1
            if relay.early:
                for place, records in relay.early.take(relay.incarnation, relay.position):
                    self._unpack(place, records, in_session=True)

    def _receive_relayed_before(self, origin: int) -> None:
        """Who sends in the view before has not heard of the current one; what was gathered shows nothing of it."""
        if origin in {GATHERED, COMPRESSED}:
            return
        if self._table.previous is not None and origin < len(self._table.previous.addresses):
            self._receiver.other_view_received(origin)
        else:
            self.dropped["session"] += 1

    def loop_back(self, origin: int, records: bytes | memoryview) -> None:
        """Our own relay passed this on: it is received with the next of `receive_looped_back`."""
        self._looped_back.append((origin, records))

    def receive_looped_back(self) -> bool:
        """In the order in which it was passed on, whatever follows from it; False if there was nothing."""
        if self._looping_back or not self._looped_back:
            return False
        self._looping_back = True
        try:
            while self._looped_back:
                self._unpack_relayed(*self._looped_back.popleft())
        finally:
            self._looping_back = False
        return True

    def _unpack_gathered(self, body: memoryview | None, *, has_echo: bool = False) -> None:
        """`has_echo`: the last part stands for what we have sent ourselves."""
        parts = None if body is None else separated(body)
        if parts is None:
            self.dropped[Rejection.MALFORMED] += 1
            return
        echo = parts.pop() if has_echo and parts else None
        for origin, records in parts:
            self._unpack_relayed(origin, records)
        relay = self._table.relay
        if echo is not None and relay is not None:
            own = relay.echoed(echo[1]) if echo[0] == self._table.me else None
            if own is None:
                self.dropped["unknown_echo"] += 1
            else:
                self._unpack_relayed(echo[0], own, is_echo=True)

    def _unpack_relayed(self, origin: int, records: bytes | memoryview, *, is_echo: bool = False) -> None:
        table = self._table
        if table.relay is not None and (origin == table.me or origin == RELAY):  # noqa: PLR1714 (the quicker)
            table.relay.answered()
            if not is_echo and table.relay.on_the_way:
                table.relay.on_the_way.came_back(records)
        if origin < table.nodes:
            if not (table.gathers and origin == table.me):  # a protocol without a channel knows what it sent
                self._unpack(origin, records, in_session=True)
        elif origin != RELAY:  # which only announces itself
            self.dropped["non_member"] += 1

    def _unpack(self, member: int, body: bytes | memoryview, *, in_session: bool) -> None:
        table = self._table
        records = unpack_records(body)
        if isinstance(records, Rejection):
            self.dropped[records] += 1
            return
        for record in records:
            try:
                message = self._codec.decode(record)
            except Malformed:
                self.dropped["malformed"] += 1
                continue
            if not isinstance(message, Unit):
                if type(message) is LinkAcknowledgment:
                    if table.links is not None and in_session:
                        table.links.acknowledged(member, message)
                elif isinstance(message, IN_SESSION) == in_session:
                    self._receiver.control_received(member, message)
                else:
                    self.dropped["session"] += 1
            elif in_session and message.source == member and is_valid(message, table.nodes):
                if isinstance(message, DataUnit):
                    self.has_data = True
                self._receiver.unit_received(member, message)
            elif in_session and isinstance(message, CONTROL_UNITS) and table.view is not None:
                self._check_membership(message, member, table.view)  # type: ignore[arg-type]
                return  # it travels alone, and the view may be another one now
            else:
                self.dropped["invalid"] += 1
