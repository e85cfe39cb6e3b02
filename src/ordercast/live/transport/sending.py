"""The way out of one member: units and control messages become datagrams.

encode → pack → seal → route (one member, all, relay) → endpoint
"""

import time
from collections.abc import Callable, Iterable
from threading import Lock

from ordercast.live.transport.addresses import address_of
from ordercast.live.transport.beside_relay import POSITION
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.packing import ALL, BESIDE, BY_RELAY, Packer
from ordercast.live.transport.receiving import Receiving
from ordercast.live.transport.relay import LEAST_PATIENCE, ORIGIN_SIZE, RelayClient
from ordercast.live.transport.routing_table import RoutingTable
from ordercast.model.units import Unit
from ordercast.protocols.membership.units import ControlUnit, OutsideUnit
from ordercast.wire.codec import Codec
from ordercast.wire.control import IN_SESSION, Control, Heartbeat, Restarting, Stage
from ordercast.wire.datagram import (
    BESIDE_RELAY,
    CAN_WAIT,
    HANDSHAKE,
    LENGTH_SIZE,
    MAX_DATAGRAM_SIZE,
    TO_ALL,
    TO_RELAY,
    UNKNOWN,
    UNORDERED,
    pack_records,
)
from ordercast.wire.inspection import Inspected
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal


class Sending:
    """Sends for one member."""

    def __init__(
        self,
        endpoint: Endpoint,
        table: RoutingTable,
        seal: Seal,
        codec: Codec,
        receiving: Receiving,
        *,
        max_datagram_size: int,
    ) -> None:
        """`receiving`: what our own relay passes on is received there, too."""
        self._endpoint, self._table, self._seal, self._codec = endpoint, table, seal, codec
        self._receiving = receiving
        self._counters: dict[int, int] = {}  # of datagrams that were sent, by tag
        self._counting = Lock()  # of those that are counted apart: a thread may send such, too
        self.packer = Packer(max_datagram_size, seal.overhead + ORIGIN_SIZE)
        self.control_too_large = 0
        self._send_in_order = self._send  # by links, once there are any
        self._direct_until = 0.0  # until then acknowledgments do not go by the relay: see `send_directly`
        self._waits = True  # all that waits in this turn for the relay can wait there, too

    def use_links(self) -> None:
        """Units travel in links from now on."""
        self._send_in_order = self._send_by_links

    def enter_view(self) -> None:
        """The table is of the next view. What waits to be sent in the view before is lost."""
        table = self._table
        with self._counting:
            if table.previous is not None:
                tag = table.previous.tag
                self._counters = {each: self._counters.get(each, 0) for each in (tag, ~tag, ~table.incarnation)}
            if table.session is not None:
                self._counters.setdefault(~table.session, 0)
        self.packer.clear()
        self._waits = True

    def announce_to_relay(self, relay: RelayClient) -> None:
        """It answers with its incarnation."""
        self._send_to_relay(relay, b"")

    def send_control(self, message: Control, to: int | None) -> None:
        """Sends a control message at once, to one member or to all the others."""
        table = self._table
        record = self._codec.encode(message)
        if len(record) + LENGTH_SIZE + self._seal.overhead > MAX_DATAGRAM_SIZE:
            self.control_too_large += 1
            return
        body, target = pack_records([record]), ALL if to is None else to
        if isinstance(message, IN_SESSION):
            self._send(target, self._sealed_as(table.me | UNORDERED, 0, table.session or 0, body, target))
        else:  # it names the incarnations that it is for: who has other members counts other places
            datagram = self._sealed_outside(table.place_at_first, body)
            if to is None:
                self._endpoint.send_to_all(datagram)
            else:
                self._endpoint.send(datagram, table.founders[to])

    def heartbeats(self, stage: Stage, to: Iterable[int]) -> Callable[[], None]:
        """Sends a heartbeat to some members, as they are now, whenever it is called: by a thread, if it likes.

        When the view is over it sends nothing: its counters may be forgotten, and none must be used twice.
        """
        table, seal = self._table, self._seal
        body = pack_records([self._codec.encode(Heartbeat(stage))])
        sender, tag = table.me | UNORDERED, table.session or 0
        places = [(place + 1, table.addresses[place]) for place in to]

        def send() -> None:
            sealing = seal.apart()
            for number, address in places:
                counter = self._next_in_view(tag)
                if counter is None:
                    return
                self._endpoint.send(sealing.seal(0, sender, tag, counter, body, number), address)

        return send

    def send_membership(self, unit: ControlUnit, to: int | None, view: int) -> None:
        """Sends a membership unit at once, to one place or all other places of the current view or the one before."""
        table = self._table
        body, target = pack_records([self._codec.encode(unit)]), ALL if to is None else to
        if table.view is not None and view == table.view.number:
            assert table.session is not None, "a view has a tag"
            self._send(target, self._sealed_as(table.me | UNORDERED, 0, table.session, body, target))
        elif table.previous is not None and view == table.previous.view.number:
            previous = table.previous
            targets = range(len(previous.addresses)) if to is None else (to,)
            for place in targets:
                if place != previous.me:
                    datagram = self._sealed_as(previous.me | UNORDERED, 0, previous.tag, body, place)
                    self._endpoint.send(datagram, previous.addresses[place])

    def send_outside(self, unit: OutsideUnit, address: str) -> None:
        """Sends a unit to one that may be in no view of ours."""
        record = self._codec.encode(Outside(str(self._table.own), unit))
        self._endpoint.send(self._sealed_outside(UNKNOWN, pack_records([record])), address_of(address))

    def send_inspected(self, answer: Inspected, address: str) -> None:
        """Answers one that watches the group."""
        body = pack_records([self._codec.encode(answer)])
        self._endpoint.send(self._sealed_outside(UNKNOWN, body), address_of(address))

    def send_restarting(self, message: Restarting, address: str) -> None:
        """Sends to one that begins the group anew."""
        body = pack_records([self._codec.encode(message)])
        self._endpoint.send(self._sealed_outside(UNKNOWN, body), address_of(address))

    def send(self, unit: Unit, to: int | None) -> None:
        """Sends a unit to one member, or to all, when the turn is over or a datagram is full."""
        if to is not None:
            target = to
        elif self._table.relayed:
            target = BESIDE if self._table.beside and self._goes_beside(unit) else BY_RELAY
            if self._waits and target == BY_RELAY and not unit.can_wait():
                self._waits = False
        else:
            target = BY_RELAY if self._table.gathers and unit.can_wait() and self._is_gathered() else ALL
        full = self.packer.add(self._codec.encode(unit), target)
        if full is not None:
            self.send_records(full, target)

    def _goes_beside(self, unit: Unit) -> bool:
        follows_data, self._receiving.has_data = self._receiving.has_data, False
        if unit.needs_place() or (follows_data and self._table.beside_after_relay):
            return False
        return self._all_are_back()

    def _all_are_back(self) -> bool:
        """Whether we have received all that we have sent by the relay."""
        relay = self._table.relay
        return relay is not None and not relay.on_the_way and not self.packer.has(BY_RELAY)

    def send_directly(self, seconds: float) -> None:
        """For so long acknowledgments go to each member directly where they need not go by the relay.

        For messages to some members: the others do not acknowledge them, and would be waited for.
        """
        if self._table.gathers:
            self._direct_until = time.monotonic() + seconds

    def set_pace(self, pace: float) -> None:
        """Acknowledgments take so much longer than expected: they wait so much longer for each other."""
        table = self._table
        if table.relay is not None:
            table.relay.patience = int(LEAST_PATIENCE * pace)
        elif table.own_relay is not None and table.own_relay.gathering is not None:
            table.own_relay.gathering.pace = pace

    def _is_gathered(self) -> bool:
        """Whether it goes by the relay: unless the last ones were lost there, or few members send any."""
        if self._direct_until:
            if time.monotonic() < self._direct_until:
                return False
            self._direct_until = 0.0
        return self._table.relay is None or not self._table.relay.is_late(time.monotonic_ns())

    def flush(self) -> bool:
        """The turn is over: sends what waits. What our own relay passed on is received now, one thing after another.

        True: something was received by that, and there may be more to send.
        """
        for target, body in self.packer.take():
            self.send_records(body, target)
        if self._receiving.receive_looped_back():
            return True
        if self._table.own_relay is not None:
            self._table.own_relay.release()
        return False

    def send_records(self, body: bytes, target: int) -> None:
        """Sends packed records in the session: to a member, `ALL` the others, or to all `BY_RELAY` or `BESIDE` it."""
        table = self._table
        session = table.session
        assert session is not None, "units are sent in an open session"
        if target == BESIDE:
            self._send_beside(body, session)
            return
        if target != BY_RELAY:
            self._send_in_order(target, self._sealed(0, session, body, target))
            if target == ALL and table.gathers and table.own_relay is not None:
                table.acknowledged_by_data(table.me)
            return
        waits, self._waits = self._waits, True
        if table.own_relay is not None:
            table.own_relay.pass_on(table.me, session, body, waits=waits)
            if not table.gathers:
                self._receiving.loop_back(table.me, body)
        elif table.relay is not None:
            self._send_to_relay(table.relay, body, waits=waits)

    def _send_beside(self, records: bytes, session: int) -> None:
        table, relay = self._table, self._table.relay
        assert relay is not None, "our own relay is as near as anybody"
        body = POSITION.pack(relay.incarnation, relay.position) + records
        self._send_in_order(ALL, self._sealed_as(table.me | UNORDERED, BESIDE_RELAY, session, body, ALL))
        self._receiving.loop_back(table.me, records)

    def send_apart(self, datagram: bytes | None, place: int, other: bytes) -> None:
        """Sends a datagram of our own relay to all members but one, and another to that one."""
        table = self._table
        if datagram is not None:
            for each in range(table.nodes):
                if each not in {place, table.me}:
                    self._send_in_order(each, datagram)
        self._send_in_order(place, other)

    def watch_relay(self) -> int:
        """For how many ticks, of which this is one, nothing of ours came back from a relay that is not a member.

        It is asked meanwhile: what was sent to it may be lost, and nobody may have anything more to send.
        """
        table = self._table
        if table.relay is None:
            return 0
        silent = table.relay.tick()
        if (silent or table.relay.is_unknown) and table.relay.must_be_asked():
            self._send_to_relay(table.relay, b"")
        return silent

    @property
    def relay_is_silent(self) -> bool:
        """A relay that is not a member is asked, and does not answer."""
        return self._table.relay is not None and self._table.relay.is_silent

    def _send_to_relay(self, relay: RelayClient, records: bytes, *, waits: bool = False) -> None:
        table = self._table
        assert table.session is not None
        flags, body = TO_RELAY | CAN_WAIT if waits else TO_RELAY, relay.body_of(records)
        if table.gathers:  # others do not receive it: what they count has no gap
            datagram = self._sealed_as(table.me | UNORDERED, flags, table.session, body, ALL)
            relay.asked_at(time.monotonic_ns())
        else:
            if records and (table.beside or not waits):
                relay.keep(self._counters.get(table.session, 0), records, short=table.beside)
            datagram = self._sealed(flags, table.session, body, ALL)
        if table.links is not None and relay.is_member:
            self._endpoint.send_by_link(datagram, table.addresses.index(relay.address))
        else:
            self._endpoint.send(datagram, relay.address)

    def _sealed(self, flags: int, tag: int, body: bytes, target: int) -> bytes:
        counter = self._counters.get(tag, 0)
        self._counters[tag] = counter + 1
        return self._seal.seal(flags, self._table.me, tag, counter, body, TO_ALL if target == ALL else target + 1)

    def _sealed_as(self, sender: int, flags: int, tag: int, body: bytes, target: int) -> bytes:
        return self._seal.seal(flags, sender, tag, self._next_apart(tag), body, TO_ALL if target == ALL else target + 1)

    def _next_apart(self, tag: int) -> int:
        """The counter of a datagram that is not one of units, which are counted apart."""
        with self._counting:
            counter = self._counters.get(~tag, 0)
            self._counters[~tag] = counter + 1
        return counter

    def _next_in_view(self, tag: int) -> int | None:
        """The same in a view; None if that is over."""
        with self._counting:
            counter = self._counters.get(~tag)
            if counter is not None:
                self._counters[~tag] = counter + 1
        return counter

    def _sealed_outside(self, sender: int, body: bytes) -> bytes:
        return self._sealed_as(sender, HANDSHAKE, self._table.incarnation, body, ALL)

    def _send(self, target: int, datagram: bytes) -> None:
        if target == ALL:
            self._endpoint.send_to_all(datagram)
        else:
            self._endpoint.send(datagram, self._table.addresses[target])

    def _send_by_links(self, target: int, datagram: bytes) -> None:
        if target == ALL:
            self._endpoint.send_to_all_by_links(datagram)
        elif target != self._table.me:
            self._endpoint.send_by_link(datagram, target)
