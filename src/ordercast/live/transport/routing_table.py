"""Where the members of the current view are, and by what their datagrams go: what sending and receiving share."""

from typing import NamedTuple

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.links import Links
from ordercast.live.transport.relay import Relay, RelayClient
from ordercast.protocols.membership.view import GroupView
from ordercast.wire.datagram import RELAY, UNORDERED


class PreviousView(NamedTuple):
    """The view before the current one, as far as units are still exchanged in it."""

    tag: int
    view: GroupView
    me: int
    addresses: list[Address]


class RoutingTable:
    """Of one member. `Transport` writes it, when a view begins; the two directions read it."""

    __slots__ = (
        *(
            "addresses",
            "beside",
            "beside_after_relay",
            "founders",
            "gathers",
            "incarnation",
            "links",
            "me",
            "nodes",
            "own",
            "own_relay",
        ),
        *("own_senders", "place_at_first", "previous", "relay", "relayed", "session", "view"),
    )

    def __init__(self, addresses: list[Address], me: int, own: Address | None) -> None:
        """`addresses`: of the members that open the group together; empty for one that joins later, from `own`."""
        self.own = addresses[me] if own is None else own
        self.addresses, self.me, self.nodes = addresses, me, len(addresses)
        self.founders, self.place_at_first = addresses, me
        """Of the handshake."""
        self.incarnation = 0
        self.session: int | None = None
        """The tag of the current view."""
        self.view: GroupView | None = None
        self.previous: PreviousView | None = None
        self.links: Links | None = None
        self.own_relay: Relay | None = None
        self.relay: RelayClient | None = None
        """If it is not our own."""
        self.relayed = False
        """What is sent to all goes by a relay."""
        self.gathers = False
        """Only acknowledgments go by it."""
        self.beside = False
        """What needs no place in its order is sent beside it."""
        self.beside_after_relay = False
        """The same, but not the first status after data."""
        self.own_senders = {me}
        """Who we are in what we send: a multicast brings it to ourselves."""

    def is_own(self, data: bytes | memoryview) -> bool:
        """Whether we have sent it: in another view our place may be another member's."""
        sender, tag = int.from_bytes(data[4:6]), int.from_bytes(data[8:16])
        if sender == RELAY:
            return self.own_relay is not None and tag == self.own_relay.incarnation
        previous = self.previous
        if previous is not None and tag == previous.tag:
            return sender & ~UNORDERED == previous.me
        return (sender & ~UNORDERED == self.me and tag == self.session) or tag == self.incarnation

    def acknowledged_by_data(self, member: int) -> None:
        """Its acknowledgment went to all with its data: at our own relay nobody need wait for another one."""
        if self.own_relay is not None and self.own_relay.gathering is not None:
            self.own_relay.gathering.spoke(member)
