"""How a member enters views: each of its parts is told of the places, and the application of the change."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from ordercast.live.durability import DurableWaiters
from ordercast.live.events import View
from ordercast.live.host.application_state import MemberState
from ordercast.live.host.arrivals import Arrivals
from ordercast.live.host.founding import Founding
from ordercast.live.host.host import Host
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.member_addresses import MemberAddresses
from ordercast.live.host.membership import Membership, joined_nodes, log_view, places_of, told
from ordercast.live.host.parameters import BESIDE_IN, Parameters, gathering_time, longest_wait
from ordercast.live.host.partial_messages import PartialsExchange
from ordercast.live.host.session_host import SessionHost
from ordercast.live.logs import GroupLogs
from ordercast.live.session import events
from ordercast.live.transport.transport import Transport
from ordercast.model.nodes import mask_of
from ordercast.model.runs import Channel
from ordercast.protocols.membership.events import InstallView
from ordercast.protocols.membership.units import Welcome
from ordercast.protocols.membership.view import GroupView

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog

_OWN_POSITIONS = {"spo", "po"}  # orders in which each member counts its own messages only


class ViewOwner(Protocol):
    """The member."""

    parameters: Parameters
    transport: Transport
    session: SessionHost
    host: Host | None
    inbox: Inbox
    membership: Membership
    addresses: MemberAddresses
    founding: Founding
    arrivals: Arrivals
    state: MemberState
    log: "MemberLog | None"

    def partials_lost(self) -> None:
        """Messages began before this member joined, and those that have their beginnings are gone."""


class ViewEntry:
    """The current view of one member. Used inside one event loop."""

    def __init__(self, owner: ViewOwner, transport: Transport, inbox: Inbox, logs: GroupLogs) -> None:
        self._owner, self._logs, self._loop = owner, logs, asyncio.get_running_loop()
        self.view: GroupView
        """The current one; there is none before the group is open."""
        self.first_position = 0
        """Of the current view."""
        self.timing = owner.parameters.config.timing
        """Of the protocol, as set for the round trips that were measured."""
        self.partials = PartialsExchange(transport, inbox, owner.partials_lost)
        self._welcome: Welcome | None = None  # while the first view of one that joined is entered
        self.joined_view: View | None = None
        """The first view of one that joined or returned, or of a group that began anew."""
        self.undurable: list[DurableWaiters] = []
        """For own messages that were delivered while this member was away."""

    def joins_by(self, welcome: Welcome) -> None:
        """The next view that is installed is the first one of a member that joined, or returned."""
        self._welcome = welcome

    def enter(self, view: GroupView, place: int, channel: Channel) -> None:
        """From now on the places of this view are used."""
        self.view, owner = view, self._owner
        owner.membership.enter(view)
        addresses = owner.addresses.in_view(view)
        owner.transport.enter_view(
            *(view, place, addresses, channel),
            owner.addresses.relay_in(addresses, place, channel),
            max_hold=longest_wait(self.timing.guard),
            gather=gathering_time(self.timing, len(addresses)),
            beside=len(addresses) == BESIDE_IN,
            stable=owner.parameters.config.delivers_stable,
        )
        owner.founding.founders.enter_view(addresses, place)
        owner.session.places = self.partials.places = {node: each for each, node in enumerate(view.nodes)}
        owner.arrivals.enter_view(view, place)

    def installed(self, change: InstallView) -> None:
        """The group continues with these members."""
        view, owner = change.view, self._owner
        welcome, self._welcome = self._welcome, None
        if welcome is None:
            assert owner.host is not None, "a view is installed in an open session"
            self.enter(view, change.place, owner.host.machine.needs)
        position = owner.inbox.position
        owner.state.view_installed(change, joins=welcome is not None)
        if welcome is not None and owner.parameters.protocol not in _OWN_POSITIONS:
            position = welcome.position
        self.first_position = position
        if welcome is None:
            self.partials.enter(change)
        else:
            self.partials.join(welcome)
        new = told(change, position, () if welcome is None else welcome.departed)
        owner.inbox.put_view(new, {} if welcome is not None else places_of(change))
        if owner.log is not None:
            owner.log.enter_view(view, change.place, position)
            for waiters in self.undurable:
                owner.log.durability.delivered(waiters, position)
            self.undurable.clear()
        log_view(new, self._logs)
        nodes, joined = mask_of(view.nodes), joined_nodes(change)
        self._loop.call_soon(self._continue_with, new, nodes, joined)  # when the machine's turn is over
        if welcome is not None:
            self.joined_view = new

    def _continue_with(self, view: View, nodes: int, joined: tuple[tuple[int, str], ...]) -> None:
        owner = self._owner
        owner.arrivals.report_rest()
        owner.session.handle(events.Remaining(nodes, joined))
        owner.membership.tell(view, self._logs)

    def welcome(self, unit: Welcome) -> Welcome:
        """The same, with what those that join are told besides."""
        return replace(
            unit,
            position=self.first_position,
            partials=self.partials.size(unit.view.number),
            founders=tuple(map(str, self._owner.founding.founders.addresses)),
        )
