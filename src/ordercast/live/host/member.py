"""One member of a live group: opens the session, runs the protocol in it, and ends both in the right order.

    Group ──► Outbox ──► Host (protocol machine) ──► Transport ──► Endpoint
      ▲                    │          ▲                               │
      └────── Inbox ◄──────┘          └── Arrivals ◄── Transport ◄────┘      what arrives
                                              │
                                         SessionHost (session machine)

`Member` makes these parts, and is told what becomes of the session and of the protocol; `Arrivals` passes on what
arrives to one of them.

Traces, and the session of the founders, count nodes: first the founders, then every incarnation that joined, and no
number is used again. The protocol and the transport count the places of the current view.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ordercast.live.events import View
from ordercast.live.host.application_state import MemberState, StateOptions
from ordercast.live.host.arrivals import Arrivals
from ordercast.live.host.batching import Outbox
from ordercast.live.host.busy_polling import BusyPolling
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.flush_scheduler import FlushScheduler
from ordercast.live.host.founding import Founding
from ordercast.live.host.group_terms import GroupTerms
from ordercast.live.host.host import Host
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.inspections import inspected
from ordercast.live.host.leaving import Leaving
from ordercast.live.host.member_addresses import MemberAddresses, RelayOption
from ordercast.live.host.membership import Membership
from ordercast.live.host.parameters import HIGHEST_LEVEL, Parameters, congestion_control
from ordercast.live.host.recording import NewRecorder
from ordercast.live.host.return_to_group import ReturnToGroup
from ordercast.live.host.running_group import RunningGroup, membership_config
from ordercast.live.host.session_host import Change, SessionHost, nanoseconds
from ordercast.live.host.unit_counts import UnitCounts
from ordercast.live.host.upkeep import Upkeep
from ordercast.live.host.view_entry import ViewEntry
from ordercast.live.logs import GroupLogs
from ordercast.live.session import events
from ordercast.live.session.machine import Session
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND, GroupConfig
from ordercast.model.errors import GroupAborted, GroupClosed, JoinError
from ordercast.model.machine import Level
from ordercast.model.nodes import name_of
from ordercast.protocols.membership import events as membership_events
from ordercast.protocols.membership import machine as membership
from ordercast.protocols.membership.events import InstallView, ReceiveOutside
from ordercast.protocols.membership.order import order_of
from ordercast.protocols.membership.units import (
    Find,
    Found,
    Suspicion,
    Welcome,
)
from ordercast.protocols.membership.view import MAX_WHY, Incarnation, founding_view
from ordercast.wire.inspection import Inspect, Inspected
from ordercast.wire.keys import GroupKeys

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.protocols.restart.standing import Plan

_ANEW = "the group began anew, from the logs of its members"
_TIMES_TOLD = 3  # that this member has failed: some may be lost
_ROUNDS_AFTER = 4  # in which one that has left still answers: the others hear of the view meanwhile
_OWN_POSITIONS = {"spo", "po"}  # orders in which each member counts its own messages only


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
        self.scheduler: FlushScheduler
        """Is told of messages that are added to the outbox; there is none before the session is open."""
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.left: asyncio.Future[None] = self._loop.create_future()
        self.end: BaseException | None = None
        """Why nothing can be sent any more."""
        self.state = MemberState(self, self.addresses.of, group, state)
        self._upkeep = Upkeep(self, congestion, self._logs, self.addresses.relay)
        self.leaving, self.returns = Leaving(self), ReturnToGroup(self, self._logs, rejoin=rejoin)
        self._opened_at, self._scheduled = 0.0, False
        self._timing = parameters.config.timing
        self._lacks = 0  # places that this member does not reach, while they are too many to agree on the next view
        self.views = ViewEntry(self, transport, self.inbox, self._logs)
        self.flow = FlowControl(self.inbox, lambda notice: transport.send_control(notice, None), self._pump)
        self.arrivals = Arrivals(
            *(self, transport, self.inbox, self.counts),
            flow=self.flow,
            leaving=self.leaving,
            partials=self.views.partials,
            failure_timeout=parameters.failure_timeout,
            pause_timeout=parameters.pause_timeout,
        )
        self.use_session(session)
        self._use_log(log, plan)

    def _use_log(self, log: "MemberLog | None", plan: "Plan | None") -> None:
        """What is delivered is written there; with a plan, the group goes on at its position."""
        self.log, self._plan = log, plan
        if plan is not None:
            self.inbox.begin_at(plan.position, plan.number)
            self.inbox.hold_for_state()
            self.views.first_position = plan.position
        if log is not None:
            self.inbox.log, self.outbox.logged, self.arrivals.log = log.feed, True, log
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

    @property
    def is_blocked(self) -> bool:
        """Too few members can be reached to agree on the next view."""
        return self._lacks != 0

    @property
    def is_closing(self) -> bool:
        """The application has closed the group, for all members."""
        return self.arrivals.at_rest is not None

    # --- what the application asks for ---

    def begin(self, incarnation: int, others: Sequence[Address] = (), within: float = 0.0) -> None:
        """Begins the handshake; first it asks the others, which have so many seconds to say that the group is running.

        They are members on this machine of a group of this name, or its multicast address.
        """
        self.transport.start(incarnation, self.arrivals)
        self.founding.begin(incarnation, others, within)
        self.arrivals.running = self.founding.running
        self._upkeep.tick()

    def close(self, within: float | None) -> None:
        """Sends nothing more, and leaves when all members have everything and close, too; called again: by then."""
        if self.arrivals.at_rest is None and self.end is None:
            self.arrivals.at_rest = False
            self.end = GroupClosed("the group is closed: nothing can be sent any more")
            self.flow.disable()
            self._logs.shutdown.debug("%s closes the group", self.name)
            if self.arrivals.returning is not None:
                self.returns.withdraw(f"{self.name} was about to return to the group, which continued without it")
                return
            self.session.handle(events.Close(nanoseconds(within)))
            if self.host is not None:
                self.host.hurry()
            self.arrivals.report_rest()
            self.outbox.release()
            if self.is_blocked:
                self._loop.call_soon(self.end_alone, self.membership.unreached(self.name, self._lacks), 0)
        elif within is not None:
            self.session.handle(events.Close(nanoseconds(within)))

    def rotate_keys(self, keys: GroupKeys) -> None:
        """Encrypts with other keys from now on."""
        self.transport.rotate_keys(keys)
        self.state.rotate_keys(keys)
        self._logs.security.info("keys rotated: encrypts with key %d", keys.current, extra={"key_id": keys.current})

    def give_up(self, why: str) -> None:
        """Aborts the group, for all members."""
        self.session.handle(events.GiveUp(why))

    def leave_group(self, within: float | None, *, drain: bool = True) -> None:
        """Sends nothing more, and leaves when all own messages have arrived; the others continue.

        After `within` seconds, or at once without `drain`, it leaves whatever has arrived.
        """
        if self.arrivals.returning is not None:
            self.returns.withdraw(GroupClosed(f"{self.name} has left the group"))
        if self.host is None or self.host.closed:
            return
        if not self.leaving.begun:
            self.leaving.begin()
            self.flow.disable()
            self.end = GroupClosed(f"{self.name} has left the group: nothing can be sent any more")
            self._logs.shutdown.debug("%s leaves the group", self.name)
            self.outbox.release()
        if self.is_blocked:
            self._loop.call_soon(self.end_alone, self.membership.unreached(self.name, self._lacks), 0)
        elif not drain:
            self.leaving.say(self.host, drain=False)
        elif within is not None:
            self.leaving.by(within)
        self.leaving.say_if_sent(self.host)

    def leave(self) -> None:
        """Sends and receives nothing any more."""
        if self.left.done():
            return
        self._stop_joining()
        self.founding.founders.stop()
        self.session.stop()
        self.flow.stop()
        self.arrivals.stop()
        self.transport.close()
        self.left.set_result(None)

    def _stop_joining(self) -> None:
        if self.arrivals.returning is not None:
            self.arrivals.returning.stop()
        self.founding.stop_asking()
        self.views.partials.stop()

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
                self._open(change)
            case events.Refused(why=why):
                self.stop(JoinError(why))
            case events.Aborted(why=why):
                if self.host is not None:
                    self.host.give_up(why)  # delivers what is certain, so that the account has all of it
                self.stop(self._account(why))
            case events.Closed():
                self.stop(GroupClosed("the group was closed"))
            case events.Left():
                self.leave()
            case events.Suspected(member=member):
                if member in self.session.places:
                    self.suspect(1 << self.session.places[member])

    def session_failed(self, error: Exception) -> None:
        """Nobody can be told any more: the others will find this member unreachable."""
        self.stop(self._account(self._failure(error)))
        self.leave()

    def _open(self, opened: events.Opened) -> None:
        parameters, names = self.parameters, tuple(name for name, _ in self.founding.members)
        self.terms = GroupTerms(parameters, opened.session)
        config = self._configured(self.session.round_trips.typical())
        founders = tuple(
            Incarnation(name, incarnation, str(address))
            for (name, address), incarnation in zip(self.founding.members, opened.incarnations, strict=True)
        )
        view = founding_view(founders, opened.session.to_bytes(8, "big"))
        if self._plan is not None:
            view = replace(view, number=self._plan.number)
            opened_with = View(number=view.number, position=self._plan.position, members=names, joined=names, why=_ANEW)
            self.views.joined_view = opened_with
        member = membership.MembershipMachine(
            *(founders[self.me], view, order_of(parameters.protocol), config),
            membership_config(parameters, self.session.round_trips.typical()),
            group=self.group,
            terms=self.terms.encoded(),
        )
        self._start(member, names)
        if self.log is not None:
            self.log.terms = self.terms.encoded()
            self.log.found(view, self.me)
            self.log.has_begun = self.log.has_begun or self._plan is None
            self._answer_restarts(self.log, founders[self.me])
        self._stop_joining()
        self._opened_at = self._loop.time()
        self._logs.membership.info(
            "session %016x is open with %s", opened.session, ", ".join(names), extra={"members": names}
        )
        self.opened.set_result(None)

    def enter(self, me: Incarnation, welcome: Welcome, terms: GroupTerms, round_trip: int | None) -> None:
        """Begins in a view of the open group, which this process joined, or returned to, as `me`."""
        self.terms = terms
        self.views.joins_by(welcome)
        self.founding.founders.know(welcome.founders)
        if self.log is not None:
            self.log.terms = terms.encoded()
            self._answer_restarts(self.log, me)
        view, parameters = welcome.view, self.parameters
        member = membership.MembershipMachine.joins(
            *(me, welcome, order_of(parameters.protocol), self._configured(round_trip)),
            membership_config(parameters, round_trip),
            group=self.group,
            terms=terms.encoded(),
        )
        known = {node: person.name for person, node in zip(view.members, view.nodes, strict=True)}
        self.me = view.nodes[member.current.place]
        self._start(member, tuple(known.get(node, name_of(node)) for node in range(view.next_node)))
        if not self.opened.done():
            self._opened_at = self._loop.time()
            self.opened.set_result(None)
        self.session.handle(events.Begin())
        assert self.host is not None
        self.host.begin()

    def _configured(self, round_trip: int | None) -> GroupConfig:
        config = self.parameters.config_for(round_trip)
        self._timing = config.timing
        return config

    def _start(self, member: membership.MembershipMachine, names: Sequence[str]) -> None:
        """The machine of a member and what runs it. Outbox, inbox and counters are this process's, and stay."""
        self.views.enter(member.current.view, member.current.place, member.machine.needs, self._timing)
        self.host = Host(
            member,
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
            self.scheduler = FlushScheduler(self.host, self.outbox, self.transport, self._busy_polling)
            self._scheduled = True
        self.arrivals.use(self.host, self.scheduler)

    def _pump(self) -> None:
        if self.host is not None:
            self.host.pump()

    def suspect(self, places: int) -> None:
        """These places of the current view seem to have failed."""
        names = self.views.view.names(places)
        self._logs.membership.warning("%s suspects that %s has failed", self.name, names, extra={"peer": names})
        if self.host is not None:
            self.host.suspect(places)

    def unheard(self, places: int) -> None:
        """Others hear these places, and this member does not."""
        names = self.views.view.names(places)
        self._logs.membership.warning("%s does not hear %s, which others do", self.name, names, extra={"peer": names})
        if self.host is not None:
            self.host.unheard(places)

    def stop(self, why: BaseException, *, alone: bool = False) -> None:
        """The protocol is over; the session may still have to tell others. `alone`: the others continue."""
        self.end = why
        self.arrivals.detection.stop()
        self.state.stop(why)
        if self.host is not None:
            self.host.stop(why)
        if self.log is not None:
            self.log.durability.stop(why)
        if not self.opened.done():
            self.opened.set_exception(why)
        self.inbox.end(why)
        self.outbox.release()
        if isinstance(why, GroupAborted):
            sentence = f"{self.name} is not in the group any more" if alone else "the group was aborted"
            self._logs.shutdown.warning("%s: %s", sentence, why.why, extra={"reason": why.why})
        elif isinstance(why, GroupClosed):
            sentence = f"{self.name} has left the group" if alone else "the group was closed"
            self._logs.shutdown.info("%s", sentence, extra={"reason": "left" if alone else "closed"})

    def _account(self, why: str) -> GroupAborted | JoinError:
        if self.host is None:
            return JoinError(why)
        return GroupAborted(why, self.inbox.delivered, self.host.unconfirmed())

    def _failure(self, error: Exception) -> str:
        """What the others are told of an error in our own code; its text stays in the local log."""
        self._logs.live.error("internal error: %s leaves the group", self.name, exc_info=error)
        return f"{self.name} failed ({type(error).__name__})"

    # --- what becomes of the protocol (host_owner.HostOwner) ---

    def partials_lost(self) -> None:
        """Messages began before this member joined, and those that have their beginnings are gone."""
        self._tell_failure(f"{self.name} joined, and those that know what came before have gone; join again")

    def view_installed(self, change: InstallView) -> None:
        """The group continues with these members."""
        self.views.installed(change, self._timing)

    def welcome(self, unit: Welcome) -> Welcome:
        """The same, with what those that join are told besides."""
        return self.views.welcome(unit)

    def left_group(self) -> None:
        """The others continue without this member, as it wanted."""
        notice = 0 if self.size == 1 else _ROUNDS_AFTER * self.session.machine.config.repeat
        if self.state.joins_anew is not None:
            self._loop.call_soon(self.returns.excluded, self.state.joins_anew)
        else:
            why = self.state.problem or self.returns.withdrawn or GroupClosed(f"{self.name} has left the group")
            self._loop.call_soon(self.end_alone, why, notice)

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

    def retire(self) -> None:
        """The protocol of the last view takes part no more, and nobody is suspected."""
        assert self.host is not None
        self.session.stop()
        self.arrivals.detection.stop()
        self._lacks = 0
        self.host.retire()

    def excluded(self, output: membership_events.Excluded) -> None:
        """The others continue without this member: it returns, or ends alone."""
        self._loop.call_soon(self.returns.excluded, output)  # when the machine's turn is over

    def end_alone(self, why: GroupClosed | str, notice: int) -> None:
        """The group is over for this member only. For so long it still answers those that ask for the next view."""
        if self.left.done():
            return
        self._stop_joining()
        self.session.stop()
        self.stop(self._account(why) if isinstance(why, str) else why, alone=True)
        self._loop.call_later(notice / SECOND, self.leave)

    def blocked(self, lacks: int) -> None:
        """Too few members can be reached, or enough again."""
        self._lacks = lacks
        self.inbox.put_notice(self.membership.notice(lacks))
        if lacks and (self.leaving.begun or self.arrivals.at_rest is not None):
            self._loop.call_soon(self.end_alone, self.membership.unreached(self.name, lacks), 0)
        else:
            self.membership.log_blocked(self.name, lacks, self._logs)

    def recovery_started(self, why: str) -> None:
        """The group agrees on its order anew."""
        if self._logs.protocol.isEnabledFor(logging.INFO):  # there may be many
            self._logs.protocol.info("recovery: %s", self.membership.with_names(why), extra={"reason": why})

    def protocol_aborted(self, why: str) -> None:
        """The protocol gave the group up. Whoever did not answer may be alive, and the relay may have failed."""
        by = "" if self.addresses.relay is None else f" (relay: {self.addresses.relay})"
        self.give_up(f"{self.name} aborted the group: {self.membership.with_names(why)}{by}")

    def protocol_failed(self, error: Exception) -> None:
        """There is an error in our own code: the others continue without this member, and need not wait to find out."""
        self._tell_failure(self._failure(error))

    def _tell_failure(self, why: str, *, told: str | None = None) -> None:
        """`told`: to the others, if they must not hear all: texts of errors may have what is only for this process."""
        view, place, told = self.views.view, self.session.places[self.me], (told or why)[:MAX_WHY]
        for _ in range(_TIMES_TOLD):
            self.transport.send_membership(Suspicion(view.number, place, 1 << place, told), None, view.number)
        self._loop.call_soon(self.end_alone, why, 0)

    # --- what becomes of the log (durable.member_log.MemberLogOwner) ---

    def log_failed(self, why: str) -> None:
        """Nothing is written any more: this member ends, or goes on without a log."""
        if self.log is not None and self.log.settings.on_failure == "leave" and not self.left.done():
            leaves = f"{self.name} leaves the group, because"
            self._tell_failure(f"{leaves} {why}", told=f"{leaves} its log has failed")

    def _answer_restarts(self, log: "MemberLog", me: Incarnation) -> None:
        """Gives the log to those that begin the group anew, if this member does not reach enough others to go on."""
        from ordercast.live.host.durable.restart_host import SurvivorHost  # noqa: PLC0415 (only those with a log)

        survivor = SurvivorHost(log, self.state.offer, me)

        def answer(body: bytes) -> None:
            if self.is_blocked:
                survivor.receive(body, self.transport.send_restarting)

        self.transport.answer_discovery = answer

    def log_caught_up(self) -> None:
        """The disk was slower than the group, and is not any more."""
        if self.host is not None:
            self.host.pump()

    # --- statistics ---

    def uptime(self) -> float:
        """Seconds since the group opened."""
        return self._loop.time() - self._opened_at
