"""One member of a live group: its parts, and what each of them is told.

    Group ──► Outbox ──► Host (protocol machine) ──► Transport ──► Endpoint
      ▲                    │          ▲                               │
      └────── Inbox ◄──────┘          └── Arrivals ◄── Transport ◄────┘      what arrives
                                              │
                                         SessionHost (session machine)

`Member` makes these parts, and is told what becomes of the session, the protocol and the log; `Arrivals` passes on what
arrives to one of them. How the protocol begins is in `protocol_start`, how a member ends in `ending`.

Traces, and the session of the founders, count nodes: first the founders, then every incarnation that joined, and no
number is used again. The protocol and the transport count the places of the current view.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ordercast.live.host.application_state import MemberState, StateOptions
from ordercast.live.host.arrivals import Arrivals
from ordercast.live.host.batch_scheduler import BatchScheduler
from ordercast.live.host.batching import Outbox
from ordercast.live.host.busy_polling import BusyPolling
from ordercast.live.host.ending import MemberEnding
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.founding import Founding
from ordercast.live.host.freed_memory import keep_freed_memory
from ordercast.live.host.group_terms import GroupTerms
from ordercast.live.host.host import Host
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.inspections import inspected
from ordercast.live.host.member_addresses import MemberAddresses, RelayOption
from ordercast.live.host.membership import Membership
from ordercast.live.host.parameters import HIGHEST_LEVEL, Parameters, congestion_control
from ordercast.live.host.protocol_start import ProtocolStart
from ordercast.live.host.reachability import Reachability
from ordercast.live.host.recording import NewRecorder
from ordercast.live.host.return_to_group import ReturnToGroup
from ordercast.live.host.running_group import RunningGroup
from ordercast.live.host.session_host import Change, SessionHost
from ordercast.live.host.unit_counts import UnitCounts
from ordercast.live.host.upkeep import Upkeep
from ordercast.live.host.view_entry import ViewEntry
from ordercast.live.logs import GroupLogs
from ordercast.live.session import events
from ordercast.live.session.machine import Session
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND
from ordercast.model.errors import GroupClosed, JoinError
from ordercast.model.machine import Level
from ordercast.protocols.membership import events as membership_events
from ordercast.protocols.membership.events import InstallView, ReceiveOutside
from ordercast.protocols.membership.machine import MembershipMachine
from ordercast.protocols.membership.units import (
    Find,
    Found,
    Welcome,
)
from ordercast.wire.inspection import Inspect, Inspected
from ordercast.wire.keys import GroupKeys

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.protocols.restart.standing import Plan

_ROUNDS_AFTER = 4  # in which one that has left still answers: the others hear of the view meanwhile


class Member:
    """Made and used inside one event loop."""

    def __init__(  # noqa: PLR0913 (what it connects)
        self,
        own: tuple[str, Address],
        parameters: Parameters,
        transport: Transport,
        session: Session,
        relay: RelayOption,
        new_recorder: NewRecorder,
        *,
        founders: Sequence[tuple[str, Address]] = (),
        group: str = "",
        busy_poll: bool = True,
        rejoin: bool = True,
        state: StateOptions | None = None,
        log: "MemberLog | None" = None,
        plan: "Plan | None" = None,
    ) -> None:
        """`own`: name and address; `log`: open, if there is one; `plan`: the group begins anew, with this view.

        `founders`: names and addresses of those that open the group, if this member is one of them. `group`: its name.
        `rejoin`: if the others continue without this member, it joins again.
        """
        self.name, self.address = own
        self.me, self.parameters, self.transport = session.me, parameters, transport
        self.group = group
        self.addresses, self._new_recorder = MemberAddresses(self.address, founders, relay), new_recorder
        self._busy_polling = BusyPolling(enabled=busy_poll)
        self._loop, self._logs = asyncio.get_running_loop(), GroupLogs(group, self.name)
        self.founding = Founding(self, founders, self._logs)
        self.membership = Membership()
        self.terms: GroupTerms  # once the group is open
        self.counts = UnitCounts()
        self.host: Host | None = None
        """The protocol; None before the session is open."""
        congestion = congestion_control(parameters, transport.endpoint.receive_buffer)
        self.max_message_size = parameters.max_message_size
        self.inbox = Inbox(tuple(name for name, _ in founders), self.max_message_size)
        self.outbox = Outbox(parameters.room_in(congestion.datagram))
        self.scheduler: BatchScheduler
        """Is told of messages that are added to the outbox; there is none before the session is open."""
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.left: asyncio.Future[None] = self._loop.create_future()
        self.state = MemberState(self, self.addresses.of, group, state)
        self._upkeep = Upkeep(self, congestion, self._logs, self.addresses.relay)
        self.start, self.ending = ProtocolStart(self, self._logs, plan), MemberEnding(self, self._logs)
        self.reachability = Reachability(self, self._logs)
        self.returns = ReturnToGroup(self, self._logs, rejoin=rejoin)
        self._scheduled = False
        self.views = ViewEntry(self, transport, self.inbox, self._logs)
        self.flow = FlowControl(
            *(self.inbox, transport.send_control),
            on_open=self._pump,
            on_leave_request=self.returns.leave_until_read,
            slow_reader_timeout=parameters.slow_reader_timeout / SECOND,
        )
        self.arrivals = Arrivals(
            *(self, transport, self.inbox, self.counts),
            flow=self.flow,
            leaving=self.ending.leaving,
            partials=self.views.partials,
            failure_timeout=parameters.failure_timeout,
            pause_timeout=parameters.pause_timeout,
        )
        self.use_session(session)
        self._use_log(log, plan)
        keep_freed_memory()

    def _use_log(self, log: "MemberLog | None", plan: "Plan | None") -> None:
        """What is delivered is written there; with a plan, the group goes on at its position."""
        self.log = log
        if plan is not None:
            self.inbox.begin_at(plan.position, plan.number)
            self.inbox.hold_for_state()
            self.views.first_position = plan.position
        if log is not None:
            self.inbox.log, self.outbox.awaited_by, self.arrivals.log = log.feed, log.awaited_by, log
            log.use(self)

    def use_session(self, session: Session) -> None:
        """Runs this session, and passes on to it what arrives for it."""
        arrivals = self.arrivals
        self.session = SessionHost(session, self.transport, self, drained=arrivals.drained, paused=arrivals.paused)
        arrivals.session = self.session

    @property
    def running(self) -> RunningGroup | None:
        """While this member waits for others to open the group: looks whether it is running already."""
        return self.founding.running

    @property
    def size(self) -> int:
        """How many members the current view has."""
        return len(self.views.view.members)

    # --- from the beginning to the end ---

    def begin(self, incarnation: int, others: Sequence[Address] = (), within: float = 0.0) -> None:
        """Begins the handshake; first it asks the others, which have so many seconds to say that the group is running.

        They are members on this machine of a group of this name, or its multicast address.
        """
        self.transport.start(incarnation, self.arrivals)
        self.founding.begin(incarnation, others, within)
        self.arrivals.running = self.founding.running
        self._upkeep.tick()

    def run(self, machine: MembershipMachine, names: Sequence[str]) -> None:
        """Runs the protocol of a view from now on. Outbox, inbox and counters are this process's, and stay.

        `names`: of all nodes that the group had.
        """
        self.views.enter(machine.current.view, machine.current.place, machine.machine.needs)
        self.host = Host(
            machine,
            highest_level=HIGHEST_LEVEL.get(self.parameters.protocol, Level.KNOWN_STABLE),
            outbox=self.outbox,
            inbox=self.inbox,
            transport=self.transport,
            recorder=self._new_recorder(self.terms.session, self.me, names),
            counts=self.counts,
            owner=self,
            flight=self._upkeep.congestion.flight,
            flow=self.flow,
            measures_rounds=self.parameters.measures_rounds,
            log=self.log,
        )
        if self._scheduled:
            self.scheduler.use(self.host)
        else:
            self.scheduler = BatchScheduler(self.host, self.outbox, self.transport, self._busy_polling)
            self._scheduled = True
        self.arrivals.use(self.host, self.scheduler)

    def rotate_keys(self, keys: GroupKeys) -> None:
        """Encrypts with other keys from now on."""
        self.transport.rotate_keys(keys)
        self.state.rotate_keys(keys)
        self._logs.security.info("keys rotated: encrypts with key %d", keys.current, extra={"key_id": keys.current})

    async def recorded(self) -> None:
        """Returns when the trace and the log are written, if there are any, after the end."""
        if self.host is not None:
            await self.host.recorder.written()
        if self.log is not None:
            await self.log.close()

    # --- what becomes of the session (session_host.SessionOwner) ---

    def session_changed(self, change: Change) -> None:
        """The session opened, ended, or suspects a member."""
        match change:
            case events.Opened():
                self.start.open(change)
            case events.Refused(why=why):
                self.ending.end(JoinError(why))
            case events.Aborted(why=why):
                if self.host is not None:
                    self.host.give_up(why)  # delivers what is certain, so that the account has all of it
                self.ending.end(why)
            case events.Closed():
                self.ending.end(GroupClosed("the group was closed"))
            case events.Left():
                self.ending.disconnect()
            case events.Suspected(member=member):
                if member in self.session.places:
                    self.reachability.suspect(1 << self.session.places[member])

    def session_failed(self, error: Exception) -> None:
        """Nobody can be told any more: the others will find this member unreachable."""
        self.ending.end(self.ending.internal_error(error))
        self.ending.disconnect()

    # --- what becomes of the protocol (host_owner.HostOwner) ---

    def partials_lost(self) -> None:
        """Messages began before this member joined, and those that have their beginnings are gone."""
        self.ending.fail(f"{self.name} joined, and those that know what came before have gone; join again")

    def view_installed(self, change: InstallView) -> None:
        """The group continues with these members."""
        self.views.installed(change)
        self.returns.stays()

    def welcome(self, unit: Welcome) -> Welcome:
        """The same, with what those that join are told besides."""
        return self.views.welcome(unit)

    def left_group(self) -> None:
        """The others continue without this member, as it wanted."""
        is_waited_for = self.size > 1 or (self.log is not None and self.log.unsaid > 0)
        notice = _ROUNDS_AFTER * self.session.machine.config.repeat if is_waited_for else 0
        if self.state.joins_anew is not None:
            self._loop.call_soon(self.returns.excluded, self.state.joins_anew)
        elif not self.returns.left():
            why = self.state.problem or self.returns.withdrawn or GroupClosed(f"{self.name} has left the group")
            self._loop.call_soon(self.ending.end_alone, why, notice)

    def read_all(self) -> None:
        """The application has been handed everything that there is."""
        self.state.read_all()
        self.returns.read_all()

    def found(self, unit: Found, address: str) -> Found:
        """The same, with what one that asks from this address is told besides."""
        return replace(unit, is_founder=self.founding.founders.has(address), names=self.membership.members)

    def answer_outside(self, question: Find, address: str) -> None:
        """Answers one that asks for the group from this address."""
        if self.host is not None:
            self.host.change(ReceiveOutside(question, address))

    def inspected(self, question: Inspect) -> Inspected | None:
        """How this member is, for one that watches the group."""
        return inspected(self, question)

    def told_of_group(self, unit: Found) -> None:
        """A member of a group of this name says, unasked, that it is running: it should be this one."""
        self.founding.told_of_group(unit, self.terms)

    def excluded(self, output: membership_events.Excluded) -> None:
        """The others continue without this member: it returns, or ends alone."""
        self._loop.call_soon(self.returns.excluded, output)  # when the machine's turn is over

    def blocked(self, lacks: int) -> None:
        """Too few members can be reached, or enough again."""
        self.reachability.blocked(lacks)

    def recovery_started(self, why: str) -> None:
        """The group agrees on its order anew."""
        if self._logs.protocol.isEnabledFor(logging.INFO):  # there may be many
            self._logs.protocol.info("recovery: %s", self.membership.with_names(why), extra={"reason": why})

    def protocol_aborted(self, why: str) -> None:
        """The protocol gave the group up. Whoever did not answer may be alive, and the relay may have failed."""
        by = "" if self.addresses.relay is None else f" (relay: {self.addresses.relay})"
        self.ending.abort(f"{self.name} aborted the group: {self.membership.with_names(why)}{by}")

    def protocol_failed(self, error: Exception) -> None:
        """There is an error in our own code: the others continue without this member, and need not wait to find out."""
        self.ending.fail(self.ending.internal_error(error))

    # --- what becomes of the log (durable.member_log.MemberLogOwner) ---

    def log_failed(self, why: str) -> None:
        """Nothing is written any more: this member ends, or goes on without a log."""
        if self.log is not None and self.log.settings.on_failure == "leave" and not self.left.done():
            leaves = f"{self.name} leaves the group, because"
            self.ending.fail(f"{leaves} {why}", told=f"{leaves} its log has failed")

    def log_caught_up(self) -> None:
        """The disk was slower than the group, and is not any more."""
        self._pump()

    def _pump(self) -> None:
        if self.host is not None:
            self.host.pump()
