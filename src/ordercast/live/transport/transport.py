"""The transport of one member: units and control messages to datagrams, and back.

    out:  encode → pack → seal → route (one member, all, relay) → endpoint
    in:   endpoint → open → filter (view, destination) → reorder → unpack → decode → check → receiver

Members are places of a view: their addresses, our own place and the tag belong to it, and `enter_view` replaces them
all. Until the next call, membership units are also sent and received in the view before.

Whatever arrives from the network is understood, or dropped and counted by reason; nothing of it raises anything here.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ordercast.live.transport.addresses import Address, address_of
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.gathering import GATHERED, separated
from ordercast.live.transport.links import Links
from ordercast.live.transport.packing import ALL, BY_RELAY, Packer
from ordercast.live.transport.receiver import Receiver
from ordercast.live.transport.relay import LEAST_PATIENCE, ORIGIN, ORIGIN_SIZE, Relay, RelayClient
from ordercast.live.transport.reorder_buffer import OrderedStreams, Stream
from ordercast.live.transport.unit_addresses import has_addresses, is_address
from ordercast.model.config import SECOND
from ordercast.model.runs import Channel
from ordercast.model.units import Unit
from ordercast.protocols.membership.units import (
    CONTROL_UNITS,
    ControlUnit,
    OutsideUnit,
)
from ordercast.protocols.membership.view import GroupView
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import IN_SESSION, Control, LinkAcknowledgment, Restarting
from ordercast.wire.datagram import (
    CAN_WAIT,
    FROM_RELAY,
    HANDSHAKE,
    HEADER,
    LENGTH_SIZE,
    MAX_DATAGRAM_SIZE,
    RELAY,
    TO_ALL,
    TO_RELAY,
    UNKNOWN,
    UNORDERED,
    Datagram,
    Rejection,
    pack_records,
    unpack_records,
)
from ordercast.wire.keys import GroupKeys
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal
from ordercast.wire.unit_validation import is_valid, is_valid_in_view, is_valid_outside


class Transport:
    """Sends and receives for one member. Used inside one event loop."""

    def __init__(  # noqa: PLR0913 (what it connects)
        self,
        endpoint: Endpoint,
        addresses: list[Address],
        me: int,
        seal: Seal,
        codec: Codec,
        *,
        max_datagram_size: int,
        own: Address | None = None,
    ) -> None:
        """`addresses`: of the members that open the group together; empty for one that joins later, from `own`."""
        self._own = addresses[me] if own is None else own
        self._endpoint, self._addresses, self._me, self._seal, self._codec = endpoint, addresses, me, seal, codec
        self._nodes = len(addresses)
        endpoint.knows(addresses)
        self._receiver: Receiver
        self._founders, self._place_at_first = addresses, me  # of the handshake
        self._own_senders = {me}  # a multicast brings us our own
        self._for_us = (TO_ALL, me + 1)
        self._incarnation = 0
        self._session: int | None = None  # the tag of the current view
        self._view: GroupView | None = None
        self._previous: _Previous | None = None  # the view before
        self._counters: dict[int, int] = {}  # of datagrams that were sent, by tag
        self._packer = Packer(max_datagram_size, seal.overhead + ORIGIN_SIZE)
        self._control_too_large = 0
        self._keeps_order = False
        self._streams: list[Stream] = []  # of what members send to us, by member
        self._links: Links | None = None
        self._send_in_order = self._send  # by links, once there are any
        self.is_full = False
        """Too much waits to be sent; when that is over, the receiver is told with `paused`."""
        self._own_relay: Relay | None = None
        self._relay: RelayClient | None = None  # if it is not our own
        self._looped_back: deque[tuple[int, bytes | memoryview]] = deque()  # by our own relay: origin, records
        self._looping_back = False
        self.relayed = False
        """What is sent to all goes by a relay."""
        self._gathers = False  # only acknowledgments go by it
        self._direct_until = 0.0  # until then they do not: see `send_directly`
        self._waits = True  # all that waits in this turn for the relay can wait there, too
        self.answer_discovery: Callable[[bytes], None] | None = None
        """Who answers those that look for a group by multicast."""
        self.dropped: Counter[str] = Counter()
        """Datagrams and records that were dropped, by reason."""
        self._in_order = OrderedStreams(
            self._process, endpoint.read, self.dropped, self._released, process_held=self._process_held
        )

    def start(self, incarnation: int, receiver: Receiver) -> None:
        """Begins to receive."""
        self._incarnation, self._receiver = incarnation, receiver
        self._endpoint.start(self._receive, receiver.drained, receiver.paused)

    def open(
        self,
        session: int,
        channel: Channel,
        relay: Relay | Address | None,
        *,
        max_hold: int = 0,
        gather: int = 0,
    ) -> None:
        """From now on there are units: in no order, in each sender's order, or in the one order of a relay.

        `max_hold`: nanoseconds that a datagram is held for those that it has overtaken, at most. `gather`: nanoseconds
        that acknowledgments wait at our own relay for those of others, at most; 0: none waits. Where each sender's
        order suffices, a relay passes on acknowledgments only.
        """
        if self._own_relay is not None:
            self._own_relay.close()
        self._session = session
        self._seal.hold(session)
        # With a relay only the relay receives all that a member counts, and needs it in order; heartbeats need none.
        self._keeps_order = channel is Channel.MANY or isinstance(relay, Relay)
        self._streams = [Stream(max_hold) for _ in range(self._nodes)]
        self.relayed = channel is Channel.ONE
        self._gathers = channel is Channel.MANY and relay is not None
        self._waits = True
        self._own_relay = None
        self._own_senders = {self._me, self._me | UNORDERED, self._place_at_first}
        if self._previous is not None:
            self._own_senders |= {self._previous.me, self._previous.me | UNORDERED}
        if isinstance(relay, Relay):
            self._own_relay, self._relay = relay, None
            self._own_senders.add(RELAY)
            if gather:
                relay.gather(session, self._nodes, gather)
        elif relay is None:
            self._relay = None
        elif self._relay is None or self._relay.address != relay or relay in self._addresses:
            is_member = relay in self._addresses
            self._relay = RelayClient(relay, is_member=is_member, max_hold=max_hold)
            if not is_member:
                self._endpoint.knows([relay])
                self._send_to_relay(self._relay, b"")  # it answers with its incarnation
        # a relay of its own that was used in the view before counts on
        if self._endpoint.packet_size:
            passes_on = self._own_relay is not None or (channel is Channel.ANY and self._me == 0)
            self._enter_links(session, max_hold, passes_on=passes_on)

    def _enter_links(self, tag: int, max_hold: int, *, passes_on: bool) -> None:
        """Units travel in links from now on: to the members of the view with this tag."""
        endpoint = self._endpoint
        if self._links is None:
            self._links = endpoint.links = Links(
                endpoint.packet_size,
                endpoint.write_pieces,
                lambda place, message: self.send_control(message, place),
                self._note_full,
            )
            self._send_in_order = self._send_by_links
        self._links.enter(tag, self._addresses, self._me, passes_on=passes_on, round_trip=2 * max_hold / SECOND)

    def enter_view(  # noqa: PLR0913 (what a view has)
        self,
        view: GroupView,
        me: int,
        addresses: list[Address],
        channel: Channel,
        relay: Relay | Address | None,
        *,
        max_hold: int = 0,
        gather: int = 0,
    ) -> None:
        """From now on members are the places of this view. What waits to be sent in the view before is lost."""
        tag = int.from_bytes(view.tag, "big")
        if self._view is not None and self._session is not None:
            self._previous = _Previous(self._session, self._view, self._me, self._addresses)
            kept = (self._session, ~self._session, ~self._incarnation)
            self._counters = {each: self._counters.get(each, 0) for each in kept}
        self._view, self._me, self._addresses, self._nodes = view, me, addresses, len(addresses)
        self._for_us = (TO_ALL, me + 1)
        self._endpoint.reach([address for place, address in enumerate(addresses) if place != me])
        self._packer.clear()
        self._looped_back.clear()
        self.open(tag, channel, relay, max_hold=max_hold, gather=gather)

    @property
    def session(self) -> int | None:
        """The tag of the open session; None before it is open."""
        return self._session

    @property
    def too_large(self) -> int:
        """Records that no datagram can carry."""
        return self._control_too_large + self._packer.too_large

    @property
    def max_datagram_size(self) -> int:
        """The limit for datagrams of units, in bytes."""
        return self._packer.max_datagram_size

    @max_datagram_size.setter
    def max_datagram_size(self, size: int) -> None:
        self._packer.max_datagram_size = size

    @property
    def endpoint(self) -> Endpoint:
        """The sockets, which count what goes through them."""
        return self._endpoint

    def rotate_keys(self, keys: GroupKeys) -> None:
        """Encrypts with other keys from now on."""
        self._seal.rotate(keys)

    def close(self) -> None:
        """Sends and receives nothing any more."""
        if self._own_relay is not None:
            self._own_relay.close()
        self._in_order.close()
        self._endpoint.close()

    # --- sending ---

    def send_control(self, message: Control, to: int | None) -> None:
        """Sends a control message at once, to one member or to all the others."""
        record = self._codec.encode(message)
        if len(record) + LENGTH_SIZE + self._seal.overhead > MAX_DATAGRAM_SIZE:
            self._control_too_large += 1
            return
        body, target = pack_records([record]), ALL if to is None else to
        if isinstance(message, IN_SESSION):
            self._send(target, self._sealed_as(self._me | UNORDERED, 0, self._session or 0, body, target))
        else:  # it names the incarnations that it is for: who has other members counts other places
            datagram = self._sealed_outside(self._place_at_first, body)
            if to is None:
                self._endpoint.send_to_all(datagram)
            else:
                self._endpoint.send(datagram, self._founders[to])

    def send_membership(self, unit: ControlUnit, to: int | None, view: int) -> None:
        """Sends a membership unit at once, to one place or all other places of the current view or the one before."""
        body, target = pack_records([self._codec.encode(unit)]), ALL if to is None else to
        if self._view is not None and view == self._view.number:
            assert self._session is not None, "a view has a tag"
            self._send(target, self._sealed_as(self._me | UNORDERED, 0, self._session, body, target))
        elif self._previous is not None and view == self._previous.view.number:
            previous = self._previous
            targets = range(len(previous.addresses)) if to is None else (to,)
            for place in targets:
                if place != previous.me:
                    datagram = self._sealed_as(previous.me | UNORDERED, 0, previous.tag, body, place)
                    self._endpoint.send(datagram, previous.addresses[place])

    def send_outside(self, unit: OutsideUnit, address: str) -> None:
        """Sends a unit to one that may be in no view of ours."""
        record = self._codec.encode(Outside(str(self._own), unit))
        self._endpoint.send(self._sealed_outside(UNKNOWN, pack_records([record])), address_of(address))

    def send_restarting(self, message: Restarting, address: str) -> None:
        """Sends to one that begins the group anew."""
        body = pack_records([self._codec.encode(message)])
        self._endpoint.send(self._sealed_outside(UNKNOWN, body), address_of(address))

    def send(self, unit: Unit, to: int | None) -> None:
        """Sends a unit to one member, or to all, when the turn is over or a datagram is full."""
        if to is not None:
            target = to
        elif self.relayed:
            target = BY_RELAY
            if self._waits and not unit.can_wait():
                self._waits = False
        else:
            target = BY_RELAY if self._gathers and unit.can_wait() and self._is_gathered() else ALL
        full = self._packer.add(self._codec.encode(unit), target)
        if full is not None:
            self.send_records(full, target)

    def send_directly(self, seconds: float) -> None:
        """For so long acknowledgments go to each member directly where they need not go by the relay.

        For messages to some members: the others do not acknowledge them, and would be waited for.
        """
        if self._gathers:
            self._direct_until = time.monotonic() + seconds

    def set_pace(self, pace: float) -> None:
        """Acknowledgments take so much longer than expected: they wait so much longer for each other."""
        if self._relay is not None:
            self._relay.patience = int(LEAST_PATIENCE * pace)
        elif self._own_relay is not None and self._own_relay.gathering is not None:
            self._own_relay.gathering.pace = pace

    def _is_gathered(self) -> bool:
        """Whether it goes by the relay: unless the last ones were lost there, or few members send any."""
        if self._direct_until:
            if time.monotonic() < self._direct_until:
                return False
            self._direct_until = 0.0
        return self._relay is None or not self._relay.is_late(time.monotonic_ns())

    def flush(self) -> bool:
        """The turn is over: sends what waits. What our own relay passed on is received now, one thing after another.

        True: something was received by that, and there may be more to send.
        """
        for target, body in self._packer.take():
            self.send_records(body, target)
        received = bool(self._looped_back) and not self._looping_back
        if received:
            self._receive_looped_back()
        return received

    def send_records(self, body: bytes, target: int) -> None:
        """Sends packed records in the session: to a member, to `ALL` the others, or to all members `BY_RELAY`."""
        session = self._session
        assert session is not None, "units are sent in an open session"
        if target != BY_RELAY:
            self._send_in_order(target, self._sealed(0, session, body, target))
            if target == ALL and self._gathers and self._own_relay is not None:
                self._acknowledged_by_data(self._me)
            return
        waits, self._waits = self._waits, True
        if self._own_relay is not None:
            self._own_relay.pass_on(self._me, session, body, waits=waits)
            if not self._gathers:
                self._looped_back.append((self._me, body))
        elif self._relay is not None:
            self._send_to_relay(self._relay, body, waits=waits)

    def _acknowledged_by_data(self, member: int) -> None:
        """Its acknowledgment went to all with its data: at our own relay nobody need wait for another one."""
        if self._own_relay is not None and self._own_relay.gathering is not None:
            self._own_relay.gathering.spoke(member)

    def watch_relay(self) -> int:
        """For how many ticks, of which this is one, nothing of ours came back from a relay that is not a member.

        It is asked meanwhile: what was sent to it may be lost, and nobody may have anything more to send.
        """
        if self._relay is None:
            return 0
        silent = self._relay.tick()
        if silent and self._relay.must_be_asked():
            self._send_to_relay(self._relay, b"")
        return silent

    def _send_to_relay(self, relay: RelayClient, records: bytes, *, waits: bool = False) -> None:
        assert self._session is not None
        flags, body = TO_RELAY | CAN_WAIT if waits else TO_RELAY, relay.body_of(records)
        if self._gathers:  # others do not receive it: what they count has no gap
            datagram = self._sealed_as(self._me | UNORDERED, flags, self._session, body, ALL)
            relay.asked_at(time.monotonic_ns())
        else:
            datagram = self._sealed(flags, self._session, body, ALL)
        if self._links is not None and relay.is_member:
            self._endpoint.send_by_link(datagram, self._addresses.index(relay.address))
        else:
            self._endpoint.send(datagram, relay.address)

    def _sealed(self, flags: int, tag: int, body: bytes, target: int) -> bytes:
        counter = self._counters.get(tag, 0)
        self._counters[tag] = counter + 1
        return self._seal.seal(flags, self._me, tag, counter, body, TO_ALL if target == ALL else target + 1)

    def _sealed_as(self, sender: int, flags: int, tag: int, body: bytes, target: int) -> bytes:
        counter = self._counters.get(~tag, 0)  # those of units are counted apart
        self._counters[~tag] = counter + 1
        return self._seal.seal(flags, sender, tag, counter, body, TO_ALL if target == ALL else target + 1)

    def _sealed_outside(self, sender: int, body: bytes) -> bytes:
        return self._sealed_as(sender, HANDSHAKE, self._incarnation, body, ALL)

    def _send(self, target: int, datagram: bytes) -> None:
        if target == ALL:
            self._endpoint.send_to_all(datagram)
        else:
            self._endpoint.send(datagram, self._addresses[target])

    def _send_by_links(self, target: int, datagram: bytes) -> None:
        if target == ALL:
            self._endpoint.send_to_all_by_links(datagram)
        elif target != self._me:
            self._endpoint.send_by_link(datagram, target)

    def _note_full(self, full: bool) -> None:  # noqa: FBT001 (a callback)
        self.is_full = full
        if not full:
            asyncio.get_running_loop().call_soon(self._receiver.paused)

    # --- receiving ---

    def read(self) -> bool:
        """Receives what has arrived, up to a limit; True if nothing is left."""
        return self._endpoint.read()

    def receive_early(self, datagrams: Sequence[bytes]) -> None:
        """Handles what arrived before this member was in its first view: the others were in it already, and sent."""
        for datagram in datagrams:
            self._receive(datagram)
        if datagrams:
            self._receiver.drained()

    def poll(self, seconds: float) -> None:
        """Reads without sleeping until something arrives, or for so long."""
        before, until = self._endpoint.datagrams_in, time.perf_counter() + seconds
        drained = True
        while self._endpoint.datagrams_in == before and time.perf_counter() < until:
            drained = self._endpoint.read()
        if self._endpoint.datagrams_in > before and drained:
            self._receiver.drained()  # else the event loop finds the rest

    def _receive(self, data: bytes | memoryview) -> None:
        if len(data) >= HEADER.size and int.from_bytes(data[4:6]) in self._own_senders and self._is_own(data):
            return
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self.dropped[datagram] += 1
        elif datagram.flags & FROM_RELAY:
            self._receive_relayed(datagram)
        elif datagram.flags & HANDSHAKE:
            self._receive_handshake(datagram)
        elif datagram.tag != self._session and not self._is_opened_by(datagram):
            pass
        elif datagram.to not in self._for_us:
            self.dropped["not_addressed"] += 1
        elif datagram.sender >= self._nodes:
            self._receive_unordered(datagram)
        elif self._keeps_order:
            self._in_order.take(self._streams[datagram.sender], datagram)
        else:
            self._process(datagram)

    def _receive_unordered(self, datagram: Datagram) -> None:
        place = datagram.sender ^ UNORDERED
        if place < self._nodes and not datagram.flags & TO_RELAY:
            self._unpack(place, datagram.body, in_session=True)
        elif place < self._nodes and self._gathers and self._own_relay is not None:
            records = self._own_relay.take(datagram)
            if records is None:
                self.dropped[Rejection.TRUNCATED] += 1
            else:
                self._unpack(place, records, in_session=True)
        else:
            self.dropped["non_member"] += 1

    def _is_own(self, data: bytes | memoryview) -> bool:
        """Whether we have sent it: in another view our place may be another member's."""
        sender, tag = int.from_bytes(data[4:6]), int.from_bytes(data[8:16])
        if sender == RELAY:
            return self._own_relay is not None and tag == self._own_relay.incarnation
        previous = self._previous
        if previous is not None and tag == previous.tag:
            return sender & ~UNORDERED == previous.me
        return (sender & ~UNORDERED == self._me and tag == self._session) or tag == self._incarnation

    def _is_opened_by(self, datagram: Datagram) -> bool:
        """Whether what has another tag than the current view's made us open the session that it belongs to."""
        previous = self._previous
        if previous is not None and datagram.tag == previous.tag:
            self._receive_from_previous(datagram, previous)
            return False
        place = datagram.sender & ~UNORDERED
        if self._session is None and place < self._nodes:
            self._receiver.session_received(place, datagram.tag)
        opened = datagram.tag == self._session
        if not opened:
            self.dropped["session"] += 1
        return opened

    def _receive_from_previous(self, datagram: Datagram, previous: "_Previous") -> None:
        """Only membership units count; who sends units of the order has not heard of the current view."""
        place = datagram.sender & ~UNORDERED
        if place >= len(previous.addresses):
            self.dropped["non_member"] += 1
        elif datagram.to not in {TO_ALL, previous.me + 1}:
            self.dropped["not_addressed"] += 1
        elif datagram.flags & TO_RELAY:
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
        if datagram.sender < len(self._founders):
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
        if not isinstance(message, Outside):
            return False
        if is_valid_outside(message.unit) and is_address(message.address) and has_addresses(message.unit):
            self._receiver.outside_received(message.unit, message.address)
        else:
            self.dropped["invalid"] += 1
        return True

    def _receive_relayed(self, datagram: Datagram) -> None:
        relay, previous = self._relay, self._previous
        if datagram.sender != RELAY:
            self.dropped["non_member"] += 1
            return
        if len(datagram.body) < ORIGIN_SIZE:
            self.dropped[Rejection.TRUNCATED] += 1
            return
        origin, tag = ORIGIN.unpack_from(datagram.body)
        if tag != self._session and previous is not None and tag == previous.tag and (not relay or relay.is_member):
            self._receive_relayed_before(origin)  # by the relay of that view, which may be another
        elif relay is None and self._session is not None:
            self.dropped["non_member"] += 1
        elif relay is None or (tag != self._session and (previous is None or tag != previous.tag)):
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
        if datagram.flags & FROM_RELAY or datagram.tag == self._session:
            self._process(datagram)
        else:
            self.dropped["session"] += 1

    def _process(self, datagram: Datagram) -> None:
        """Handles a datagram that is in its order."""
        if datagram.flags & FROM_RELAY:
            origin, tag = ORIGIN.unpack_from(datagram.body)
            if tag != self._session:
                self._receive_relayed_before(origin)
                return
            body = memoryview(datagram.body)[ORIGIN_SIZE:]
            if origin == GATHERED:
                self._unpack_gathered(body)
            else:
                self._unpack_relayed(origin, body)
        elif not datagram.flags & TO_RELAY:
            self._unpack(datagram.sender, datagram.body, in_session=True)
            if self._gathers and self._own_relay is not None:
                self._acknowledged_by_data(datagram.sender)
        elif self._own_relay is None:
            self.dropped["non_member"] += 1
        else:  # we are the relay: it goes to everybody, us included
            records = self._own_relay.take(datagram)
            if records is None:
                self.dropped[Rejection.TRUNCATED] += 1
            else:
                self._looped_back.append((datagram.sender, records))
                self._receive_looped_back()

    def _receive_relayed_before(self, origin: int) -> None:
        """Who sends in the view before has not heard of the current one; what was gathered shows nothing of it."""
        if origin == GATHERED:
            return
        if self._previous is not None and origin < len(self._previous.addresses):
            self._receiver.other_view_received(origin)
        else:
            self.dropped["session"] += 1

    def _receive_looped_back(self) -> None:
        """In the order in which it was passed on, whatever follows from it."""
        if not self._looping_back:
            self._looping_back = True
            try:
                while self._looped_back:
                    self._unpack_relayed(*self._looped_back.popleft())
            finally:
                self._looping_back = False

    def _unpack_gathered(self, body: memoryview) -> None:
        parts = separated(body)
        if parts is None:
            self.dropped[Rejection.MALFORMED] += 1
            return
        for origin, records in parts:
            self._unpack_relayed(origin, records)

    def _unpack_relayed(self, origin: int, records: bytes | memoryview) -> None:
        if self._relay is not None and (origin == self._me or origin == RELAY):  # noqa: PLR1714 (the quicker)
            self._relay.answered()
        if origin < self._nodes:
            if not (self._gathers and origin == self._me):  # a protocol without a channel knows what it sent
                self._unpack(origin, records, in_session=True)
        elif origin != RELAY:  # which only announces itself
            self.dropped["non_member"] += 1

    def _unpack(self, member: int, body: bytes | memoryview, *, in_session: bool) -> None:
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
                    if self._links is not None and in_session:
                        self._links.acknowledged(member, message)
                elif isinstance(message, IN_SESSION) == in_session:
                    self._receiver.control_received(member, message)
                else:
                    self.dropped["session"] += 1
            elif in_session and message.source == member and is_valid(message, self._nodes):
                self._receiver.unit_received(member, message)
            elif in_session and isinstance(message, CONTROL_UNITS) and self._view is not None:
                self._check_membership(message, member, self._view)  # type: ignore[arg-type]
                return  # it travels alone, and the view may be another one now
            else:
                self.dropped["invalid"] += 1


class _Previous(NamedTuple):
    """The view before the current one, as far as units are still exchanged in it."""

    tag: int
    view: GroupView
    me: int
    addresses: list[Address]
