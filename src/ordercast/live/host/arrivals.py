"""What arrives at a member, passed on: to the protocol, the session, the failure detector, or whoever joins a group."""

from typing import TYPE_CHECKING, Protocol

from ordercast.live.host.batch_scheduler import BatchScheduler
from ordercast.live.host.failure_detection import FailureDetection
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.founders import is_unasked
from ordercast.live.host.host import Host
from ordercast.live.host.inbox import HARD_LIMIT, Inbox
from ordercast.live.host.leaving import Leaving
from ordercast.live.host.partial_messages import PartialsExchange
from ordercast.live.host.reachability import Reachability
from ordercast.live.host.returning import Returning
from ordercast.live.host.running_group import RunningGroup
from ordercast.live.host.session_host import SessionHost
from ordercast.live.host.unit_counts import UnitCounts
from ordercast.live.session import events
from ordercast.live.transport.transport import Transport
from ordercast.model.units import DataUnit, Unit
from ordercast.protocols.membership.events import OtherView, ReceiveControl, ReceiveOutside
from ordercast.protocols.membership.units import Answer, Apply, ControlUnit, Found, OutsideUnit, Welcome
from ordercast.protocols.membership.view import GroupView
from ordercast.wire.control import (
    IN_SESSION,
    Control,
    DurablePosition,
    FlowNotice,
    LastHeard,
    LastHeardRequest,
    LeaveRequest,
    PartialsPart,
    PartialsRequest,
    Stage,
)
from ordercast.wire.inspection import Inspect, Inspected

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.live.host.ending import MemberEnding


class ArrivalsOwner(Protocol):
    """The member."""

    name: str
    group: str
    reachability: Reachability
    ending: "MemberEnding"

    def inspected(self, question: Inspect) -> Inspected | None:
        """How this member is; None: it is not in the group."""

    def told_of_group(self, unit: Found) -> None:
        """A member of a group of this name says, unasked, that it is running."""


class Arrivals:
    """The transport's receiver at one member. It is told with `use` and `enter_view` for whom something arrives."""

    session: SessionHost
    """Set before anything arrives, and for each incarnation of this member anew."""

    def __init__(  # noqa: PLR0913 (to whom it passes on)
        self,
        owner: ArrivalsOwner,
        transport: Transport,
        inbox: Inbox,
        counts: UnitCounts,
        *,
        leaving: Leaving,
        partials: PartialsExchange,
        flow: FlowControl,
        failure_timeout: int,
        pause_timeout: int,
    ) -> None:
        self._owner, self._transport, self._inbox, self._counts = owner, transport, inbox, counts
        self._leaving, self._partials, self._flow = leaving, partials, flow
        self.detection = FailureDetection(
            transport,
            failure_timeout,
            pause_timeout,
            stage=lambda: self.session.machine.closing.stage,
            suspect=owner.reachability.suspect,
            unheard=owner.reachability.unheard,
            drained=self.drained,
            paused=self.paused,
        )
        self._host: Host | None = None  # before the session is open
        self._scheduler: BatchScheduler
        self._view: GroupView  # the current one
        self._nodes: tuple[int, ...] = ()  # its nodes; none before the session is open
        self.at_rest: bool | None = None
        """What the session knows of it; None: this member is not closing."""
        self.running: RunningGroup | None = None
        """While this member waits for others to open the group: looks whether it is running already."""
        self.returning: Returning | None = None
        """While the others continue without this member, and it tries to return."""
        self.retired: Host | None = None
        """Of the incarnation before this one: it still answers members of its last view."""
        self.log: MemberLog | None = None
        """Of this member, if it has one."""

    def use(self, host: Host, scheduler: BatchScheduler) -> None:
        """The session is open, or this member has returned: units are for this host."""
        self._host, self._scheduler = host, scheduler

    def enter_view(self, view: GroupView, place: int) -> None:
        """What arrives comes from places of this view; its members are watched."""
        before, now = self._nodes, {node: new for new, node in enumerate(view.nodes)}
        self._view, self._nodes = view, view.nodes
        self._flow.enter_view({old: now[node] for old, node in enumerate(before) if node in now})
        self.detection.enter_view(place, len(view.members))

    def stop(self) -> None:
        """Nothing arrives any more: nobody is watched, and nobody is answered."""
        self.detection.stop()
        for host in (self._host, self.retired):
            if host is not None:
                host.forget()

    def report_rest(self) -> None:
        """While closing, the session has to know whether anything is in flight."""
        if self.at_rest is not None and self._host is not None:
            at_rest = self._host.is_at_rest()
            if at_rest != self.at_rest:
                self.at_rest = at_rest
                self.session.handle(events.AtRest(at_rest))

    # --- transport.Receiver ---

    def session_received(self, member: int, session: int) -> None:
        """A member that sends in the session that we agreed to knows that all agree."""
        if self._host is None and session == self.session.machine.session:
            self.session.handle(events.TrafficReceived(member))

    def control_received(self, member: int, message: Control) -> None:
        """A control message arrived: from a place of the current view, or from a founder that is in no view yet."""
        self.report_rest()  # a heartbeat may be all that the session waits for, and units before it may not be handled
        if not isinstance(message, IN_SESSION) or self._host is None:
            self.session.control_received(member, message)
            return
        self._is_active(member)
        if isinstance(message, LastHeardRequest):
            self.detection.answer(member, message)
        elif isinstance(message, LastHeard):
            self.detection.answered(message)
        elif isinstance(message, FlowNotice):
            self._flow.received(member, message)
        elif isinstance(message, LeaveRequest):
            self._flow.asked_to_leave(message)
        elif isinstance(message, PartialsRequest | PartialsPart):
            self._partials.receive(member, message)
        elif isinstance(message, DurablePosition):
            if self.log is not None:
                self.log.tellings.receive(member, self._view.nodes[member], message)
        else:
            self.session.control_received(self._view.nodes[member], message)

    def membership_received(self, unit: ControlUnit) -> None:
        """A membership unit arrived."""
        if self._host is None:
            return
        if unit.view == self._view.number:
            self._is_active(unit.source)
        elif self.retired is not None and unit.view <= self.retired.member.current.view.number:
            self.retired.change(ReceiveControl(unit))  # in the last view of the incarnation before
            return
        self._host.change(ReceiveControl(unit))

    def outside_received(self, unit: OutsideUnit, address: str) -> None:
        """A unit arrived from one that is in no view of ours."""
        if self.returning is not None and isinstance(unit, Found | Answer | Welcome):
            self.returning.receive(unit, address)
        elif self._host is None:
            if isinstance(unit, Found) and self.running is not None:
                self.running.receive(unit, address)
        elif isinstance(unit, Found) and is_unasked(unit):
            self._owner.told_of_group(unit)
        elif isinstance(unit, Apply) and self.session.machine.closing.stage >= Stage.DONE:
            why = f"the group {self._owner.group} is about to close"
            refusal = Answer(unit.applicant.number, unit.nonce, refused=True, why=why, reach=0)
            self._transport.send_outside(refusal, address)
        else:
            self._host.change(ReceiveOutside(unit, address))

    def inspect_received(self, question: Inspect) -> None:
        """One that watches the group asks how this member is."""
        answer = self._owner.inspected(question) if question.group == self._owner.group else None
        if answer is not None:
            self._transport.send_inspected(answer, question.address)

    def other_view_received(self, place: int) -> None:
        """A member of the view before has not heard of the current one."""
        if self._host is not None:
            self._host.change(OtherView(place))

    def unit_received(self, member: int, unit: Unit) -> None:
        """A unit arrived."""
        if not self.detection.known_active >> member & 1:
            self._is_active(member)
        host = self._host
        if host is None:
            return
        may_drop = self._inbox.bytes > HARD_LIMIT or host.may_be_behind
        if may_drop and isinstance(unit, DataUnit) and self._is_dropped(host):
            return
        host.receive(unit)

    def drained(self) -> None:
        """Nothing more has arrived for now."""
        if self._host is not None:
            self._host.drained()
            self._scheduler.drained()
            self.report_rest()
            if self._leaving.begun:
                self._leaving.say_if_sent(self._host)

    def paused(self) -> None:
        """More has arrived than was read: the machine is not told that it has everything, but what it sent goes out."""
        if self._host is not None:
            self._host.pump()
            self.report_rest()

    def _is_active(self, place: int) -> None:
        """Something arrived from this place: it is alive."""
        if not self.detection.known_active >> place & 1:
            self.detection.active(place)
            self.session.handle(events.TrafficReceived(self._view.nodes[place]))

    def _is_dropped(self, host: Host) -> bool:
        """If there is no room the unit counts as lost, and will be sent again.

        An application that has closed the group need not read any more: if more was dropped the others could never
        close, so the group is aborted.
        """
        if not host.is_behind and self._inbox.bytes <= HARD_LIMIT:
            return False
        if self.at_rest is None or host.is_behind:
            self._counts.overrun += 1
        else:
            name, unread = self._owner.name, f"{HARD_LIMIT >> 20} MiB"
            self._owner.ending.abort(f"{name} has closed the group and does not read: more than {unread} arrived since")
        return True
