"""What a member looks after now and then: its pace, the relay, the state of others, and what operators should know."""

import asyncio
from typing import TYPE_CHECKING, Protocol

from ordercast.live.host.application_state import MemberState
from ordercast.live.host.batching import Outbox
from ordercast.live.host.congestion import CongestionControl
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.host import Host
from ordercast.live.host.membership import Membership
from ordercast.live.host.operator_warnings import HealthLog
from ordercast.live.host.parameters import Parameters
from ordercast.live.host.unit_counts import UnitCounts
from ordercast.live.logs import GroupLogs
from ordercast.live.session.events import HEARTBEATS_PER_TIMEOUT
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.live.host.ending import MemberEnding

_RELAY_TICKS = 4 * HEARTBEATS_PER_TIMEOUT  # two failure timeouts: a relay may be restarted


class UpkeepOwner(Protocol):
    """The member."""

    name: str
    parameters: Parameters
    transport: Transport
    counts: UnitCounts
    outbox: Outbox
    flow: FlowControl
    membership: Membership
    state: MemberState
    host: Host | None
    log: "MemberLog | None"
    left: "asyncio.Future[None]"
    ending: "MemberEnding"

    @property
    def size(self) -> int:
        """How many members the current view has."""


class Upkeep:
    """Of one member, from the first `tick` until it has left. Used inside one event loop."""

    def __init__(self, owner: UpkeepOwner, congestion: CongestionControl, logs: GroupLogs, relay: object) -> None:
        """`relay`: its address, for messages."""
        self._owner, self.congestion, self._relay = owner, congestion, relay
        self._health, self._loop = HealthLog(logs), asyncio.get_running_loop()

    def tick(self) -> None:
        """Twice in a heartbeat, by itself after the first time."""
        owner, congestion = self._owner, self.congestion
        host, parameters, transport = owner.host, owner.parameters, owner.transport
        if host is not None and not host.closed:
            congestion.adapt(owner.counts)
            host.own.max_bytes_in_flight = congestion.bytes_in_flight
            transport.max_datagram_size = congestion.datagram
            owner.outbox.room = parameters.room_in(congestion.datagram, owner.size)
            self._health.check(owner.counts, transport.dropped, self._loop.time())
            if owner.flow.must_wait:
                self._health.waits_for(owner.flow.names(owner.name, owner.membership.members), self._loop.time())
            owner.state.tick()
            if owner.log is not None:
                owner.log.tick()
            silent = transport.watch_relay()
            if transport.relay_is_silent:
                self._health.waits_for_relay(self._relay, self._loop.time())
            if silent > _RELAY_TICKS:
                owner.ending.abort(
                    f"the relay at {self._relay} is unreachable from {owner.name}: "
                    f"no answer for {2 * parameters.failure_timeout / SECOND:g} s"
                )
        if not owner.left.done():
            self._loop.call_later(parameters.heartbeat / SECOND / 2, self.tick)
