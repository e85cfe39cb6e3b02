"""The transport of one member: `sending` makes datagrams of units and control messages, `receiving` the opposite.

Members are places of a view: their addresses, our own place and the tag belong to it (`routing_table`), and
`enter_view` replaces them all. Until the next call, membership units are also sent and received in the view before.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.links import Links
from ordercast.live.transport.receiver import Receiver
from ordercast.live.transport.receiving import Receiving
from ordercast.live.transport.relay import Relay, RelayClient
from ordercast.live.transport.reorder_buffer import Stream
from ordercast.live.transport.routing_table import PreviousView, RoutingTable
from ordercast.live.transport.sending import Sending
from ordercast.model.config import SECOND
from ordercast.model.runs import Channel
from ordercast.protocols.membership.view import GroupView
from ordercast.wire.codec import Codec
from ordercast.wire.datagram import RELAY, UNORDERED
from ordercast.wire.keys import GroupKeys
from ordercast.wire.seal import Seal


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
        self._endpoint, self.seal = endpoint, seal
        endpoint.knows(addresses)
        self.table = RoutingTable(addresses, me, own)
        """Where members are."""
        self._receiver: Receiver
        self._receiving = Receiving(endpoint.read, self.table, seal, codec)
        self._sending = sending = Sending(
            *(endpoint, self.table, seal, codec, self._receiving), max_datagram_size=max_datagram_size
        )
        self.is_full = False
        """Too much waits to be sent; when that is over, the receiver is told with `paused`."""
        self.send, self.send_records, self.flush = sending.send, sending.send_records, sending.flush
        self.send_control, self.send_membership = sending.send_control, sending.send_membership
        self.heartbeats = sending.heartbeats
        self.send_outside, self.send_restarting = sending.send_outside, sending.send_restarting
        self.send_inspected = sending.send_inspected
        self.send_directly, self.set_pace = sending.send_directly, sending.set_pace
        self.watch_relay, self.receive_early = sending.watch_relay, self._receiving.receive_early

    def start(self, incarnation: int, receiver: Receiver) -> None:
        """Begins to receive."""
        self.table.incarnation, self._receiver = incarnation, receiver
        self._receiving.start(receiver)
        self._endpoint.start(self._receiving.receive, receiver.drained, receiver.paused)

    def open(  # noqa: PLR0913 (what a view has)
        self,
        session: int,
        channel: Channel,
        relay: Relay | Address | None,
        *,
        max_hold: int = 0,
        gather: int = 0,
        beside: bool = False,
        stable: bool = False,
    ) -> None:
        """From now on there are units: in no order, in each sender's order, or in the one order of a relay.

        `max_hold`: nanoseconds that a datagram is held for those that it has overtaken, at most. `gather`: nanoseconds
        that acknowledgments wait at our own relay for those of others, at most; 0: none waits. Where each sender's
        order suffices, a relay passes on acknowledgments only. `beside`: what needs no place in the order of a relay
        that is a member goes to each member directly; `stable`: the first round of acknowledgments, too, since there is
        no second one. Else the relay takes its own second one along with the first ones, which are fewer datagrams.
        """
        table = self.table
        if table.own_relay is not None:
            table.own_relay.close()
        table.session = session
        self.seal.hold(session)
        table.relayed = channel is Channel.ONE
        table.gathers = channel is Channel.MANY and relay is not None
        is_member = not isinstance(relay, Address) or relay in table.addresses
        table.beside = beside and table.relayed and is_member
        table.beside_after_relay = not stable
        table.own_senders = {table.me, table.me | UNORDERED, table.place_at_first}
        if table.previous is not None:
            table.own_senders |= {table.previous.me, table.previous.me | UNORDERED}
        # With a relay only the relay receives all that a member counts, and needs it in order; heartbeats need none.
        self._receiving.enter_view(max_hold, keeps_order=channel is Channel.MANY or isinstance(relay, Relay))
        self._sending.enter_view()
        self._use_relay(relay, max_hold, gather)
        if self._endpoint.packet_size:
            passes_on = table.own_relay is not None or (channel is Channel.ANY and table.me == 0)
            self._enter_links(session, max_hold, passes_on=passes_on)

    def _use_relay(self, relay: Relay | Address | None, max_hold: int, gather: int) -> None:
        table = self.table
        table.own_relay = None
        if isinstance(relay, Relay):
            assert table.session is not None
            table.own_relay, table.relay = relay, None
            table.own_senders.add(RELAY)
            if gather:
                relay.gather(table.session, table.nodes, gather)
            elif table.beside:
                relay.collect(table.session)
            if not self._endpoint.has_multicast:
                relay.echo(table.nodes, self._sending.send_apart)
        elif relay is None:
            table.relay = None
        elif table.relay is None or table.relay.address != relay or relay in table.addresses:
            is_member = relay in table.addresses
            table.relay = RelayClient(relay, is_member=is_member, max_hold=max_hold)
            if not is_member:
                self._endpoint.knows([relay])
                self._sending.announce_to_relay(table.relay)
        # a relay of its own that was used in the view before counts on

    def _enter_links(self, tag: int, max_hold: int, *, passes_on: bool) -> None:
        """Units travel in links from now on: to the members of the view with this tag."""
        endpoint, table = self._endpoint, self.table
        if table.links is None:
            table.links = endpoint.links = Links(
                endpoint.packet_size,
                endpoint.write_pieces,
                lambda place, message: self.send_control(message, place),
                self._note_full,
            )
            self._sending.use_links()
        table.links.enter(tag, table.addresses, table.me, passes_on=passes_on, round_trip=2 * max_hold / SECOND)

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
        beside: bool = False,
        stable: bool = False,
    ) -> None:
        """From now on members are the places of this view. What waits to be sent in the view before is lost."""
        table = self.table
        if table.view is not None and table.session is not None:
            table.previous = PreviousView(table.session, table.view, table.me, table.addresses)
        table.view, table.me, table.addresses, table.nodes = view, me, addresses, len(addresses)
        self._endpoint.reach([address for place, address in enumerate(addresses) if place != me])
        self._receiving.forget_looped_back()
        self.open(
            int.from_bytes(view.tag, "big"),
            channel,
            relay,
            max_hold=max_hold,
            gather=gather,
            beside=beside,
            stable=stable,
        )

    def moved(self, addresses: list[Address]) -> None:
        """Those that open the group with this member have these addresses now."""
        table = self.table
        table.addresses[:] = addresses
        self._endpoint.reach([address for place, address in enumerate(addresses) if place != table.me])

    @property
    def session(self) -> int | None:
        """The tag of the open session; None before it is open."""
        return self.table.session

    @property
    def relay_is_silent(self) -> bool:
        """A relay that is not a member is asked, and does not answer."""
        return self._sending.relay_is_silent

    @property
    def relayed(self) -> bool:
        """What is sent to all goes by a relay."""
        return self.table.relayed

    @property
    def dropped(self) -> Counter[str]:
        """Datagrams and records that were dropped, by reason."""
        return self._receiving.dropped

    @property
    def answer_discovery(self) -> Callable[[bytes], None] | None:
        """Who answers those that look for a group by multicast."""
        return self._receiving.answer_discovery

    @answer_discovery.setter
    def answer_discovery(self, answer: Callable[[bytes], None]) -> None:
        self._receiving.answer_discovery = answer

    @property
    def too_large(self) -> int:
        """Records that no datagram can carry."""
        return self._sending.control_too_large + self._sending.packer.too_large

    @property
    def max_datagram_size(self) -> int:
        """The limit for datagrams of units, in bytes."""
        return self._sending.packer.max_datagram_size

    @max_datagram_size.setter
    def max_datagram_size(self, size: int) -> None:
        self._sending.packer.max_datagram_size = size

    @property
    def endpoint(self) -> Endpoint:
        """The sockets, which count what goes through them."""
        return self._endpoint

    @property
    def streams(self) -> list[Stream]:
        """Of what members send to us, by member."""
        return self._receiving.streams

    def rotate_keys(self, keys: GroupKeys) -> None:
        """Encrypts with other keys from now on."""
        self.seal.rotate(keys)

    def close(self) -> None:
        """Sends and receives nothing any more."""
        if self.table.own_relay is not None:
            self.table.own_relay.close()
        self._receiving.close()
        self._endpoint.close()

    def _note_full(self, full: bool) -> None:  # noqa: FBT001 (a callback)
        self.is_full = full
        if not full:
            asyncio.get_running_loop().call_soon(self._receiver.paused)

    def read(self) -> bool:
        """Receives what has arrived, up to a limit; True if nothing is left."""
        return self._endpoint.read()

    def poll(self, seconds: float) -> None:
        """Reads without sleeping until something arrives, or for so long."""
        before, until = self._endpoint.datagrams_in, time.perf_counter() + seconds
        drained = True
        while self._endpoint.datagrams_in == before and time.perf_counter() < until:
            drained = self._endpoint.read()
        if self._endpoint.datagrams_in > before and drained:
            self._receiver.drained()  # else the event loop finds the rest
