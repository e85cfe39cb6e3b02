"""Where the members of a group are, as this member reaches them: each other, and the relay of a view."""

from collections.abc import Callable, Sequence

from ordercast.live.host.parameters import GATHERS_FROM
from ordercast.live.transport.addresses import Address, address_of, seen_from
from ordercast.live.transport.relay import Relay
from ordercast.model.runs import Channel
from ordercast.protocols.membership.view import GroupView, Incarnation

RelayOption = Callable[[], Relay] | Address | None
"""Makes the relay of a view, which the first member runs, or is the address of a relay process; None: no relay."""


class MemberAddresses:
    """As one member uses them: those of the founders as it was told, others as they are seen from its own."""

    def __init__(self, own: Address, founders: Sequence[tuple[str, Address]], relay: RelayOption) -> None:
        """`founders`: names and addresses, in their order; empty for one that joined."""
        self._own, self._founders, self._relay = own, tuple(address for _, address in founders), relay
        self._by_node = self._founders
        self.relay = relay if isinstance(relay, Address) else None
        """Of a relay process."""

    def moved(self, founders: Sequence[Address], *, is_open: bool) -> None:
        """The founders have these addresses now; in an open group, those of them that were started again."""
        self._founders = tuple(founders)
        if not is_open:
            self._by_node = self._founders

    def begin_anew(self) -> None:
        """The group began anew: its nodes are others."""
        self._by_node = ()

    def of(self, person: Incarnation, node: int) -> Address:
        """The address of one member."""
        if node < len(self._by_node):
            return self._by_node[node]
        return seen_from(self._own, address_of(person.address))

    def in_view(self, view: GroupView) -> list[Address]:
        """Those of all members of a view, by place."""
        return [self.of(person, node) for person, node in zip(view.members, view.nodes, strict=True)]

    def relay_in(self, addresses: Sequence[Address], place: int, channel: Channel) -> Relay | Address | None:
        """The relay of a view with these addresses, for the member at this place: made new, if it is that one's.

        None: there is none, or the view is so small that members do better without.
        """
        if channel is not Channel.ONE and len(addresses) < GATHERS_FROM:
            return None
        if not callable(self._relay):
            return self._relay
        return self._relay() if place == 0 else addresses[0]

    def contacts(self, view: GroupView) -> list[Address]:
        """All at which somebody may know of the group that this member was in."""
        found = dict.fromkeys((*self.in_view(view), *self._founders))
        return [address for address in found if address != self._own]
