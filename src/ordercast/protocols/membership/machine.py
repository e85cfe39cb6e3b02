"""A member of a group whose membership changes: the epoch's machine of the current view, and the agreement on the next.

A view is an epoch: each view runs a fresh instance of the order's machine over its members. When the membership is to
change, a coordinator asks all members to stop and to report what they have, chooses the next view and the cut at which
the epoch ends, and proposes both; what a quorum of the view has accepted is decided. Each member then finishes the
epoch at the cut, tells the application the view, and begins the next epoch with what is left over.

The member dispatches to its parts, each with a state of its own. A part uses those listed above it:

    current      the current view, the one before, who has departed
    submissions  what the application submits, over views                 (current, epoch)
    applicants   who wants to join                                        (current)
    installer    telling others the current view                          (current, applicants)
    acceptor     promises, the report, what was accepted                  (current, epoch)
    coordinator  ballots, the choice, the decision                        (current, epoch, acceptor, applicants)
    leaving      waiting for the own messages, saying that one leaves     (submissions, acceptor, coordinator)
    retirement   having left or being excluded, and still answering       (current, epoch, acceptor)
    blocking     not reaching enough others                               (acceptor, coordinator, retirement)
    admission    when those that are ready are taken in                   (applicants, coordinator, blocking)
    view_change  from a decided view to the epoch that runs in it         (all but admission)
    reception    units of other members: which part is given them         (all)

While `is_direct` is True a host may give the epoch's inputs to `epoch.machine` directly.
"""

from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState, Snapshot
from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Discard, Drained, GiveUp, Machine, Receive, Submit, Suspect, TimerFired
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.admission import Admission
from ordercast.protocols.membership.applicants import Applicants, Terms
from ordercast.protocols.membership.blocking import Blocking
from ordercast.protocols.membership.control_reception import ControlReception
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import (
    Begin,
    ChangeView,
    LeaveGroup,
    MemberInput,
    MemberOutput,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
    StateLoaded,
    Unheard,
)
from ordercast.protocols.membership.installer import Installer
from ordercast.protocols.membership.leaving import Leaving
from ordercast.protocols.membership.order import Epoch, Order
from ordercast.protocols.membership.retirement import Phase, Retirement
from ordercast.protocols.membership.submissions import Submissions
from ordercast.protocols.membership.units import Apply, Find, Found, Welcome, problem_of_outside
from ordercast.protocols.membership.view import MAX_WHY, GroupView, Incarnation, MembershipConfig, NextView
from ordercast.protocols.membership.view_change import ViewChange

__all__ = ["MembershipMachine", "Phase"]


class MembershipMachine(DeclaredState):
    """One member."""

    epoch: Final[Epoch]
    admission: Final[Admission]
    view_change: Final[ViewChange]
    reception: Final[ControlReception]

    current: Current
    submissions: Submissions
    applicants: Applicants
    installer: Installer
    acceptor: Acceptor
    coordinator: Coordinator
    leaving: Leaving
    retirement: Retirement
    blocking: Blocking

    def __init__(  # noqa: PLR0913
        self,
        me: Incarnation,
        view: GroupView,
        order: Order,
        config: GroupConfig,
        settings: MembershipConfig,
        *,
        group: str = "",
        terms: Terms = (),
        contacts: tuple[str, ...] = (),
        has_state: bool = True,
    ) -> None:
        """A member of the founding view. `config`: of the order; `terms`: what those that join must agree with.

        `contacts`: besides the members of its view, where a blocked member asks whether others have gone on.
        """
        self.current = current = Current(me, view, settings, has_state=has_state)
        self.epoch = epoch = Epoch(order, config)
        epoch.begin(current.place, current.size)
        self.submissions = Submissions(current, epoch)
        self.applicants = Applicants(current, group, terms)
        self.installer = Installer(current, self.applicants)
        self.acceptor = acceptor = Acceptor(current, epoch)
        self.coordinator = coordinator = Coordinator(
            *(current, epoch, acceptor, self.applicants.ready, self.applicants.without_state)
        )
        self.leaving = Leaving(current, epoch, self.submissions, acceptor, coordinator)
        self.retirement = Retirement(current, epoch, acceptor)
        self.blocking = Blocking(
            *(current, epoch, acceptor, coordinator, self.retirement, self.installer), group=group, contacts=contacts
        )
        self.admission = Admission(self.applicants, acceptor, coordinator, self.blocking)
        self.view_change = ViewChange(
            *(current, epoch, self.submissions),
            applicants=self.applicants,
            installer=self.installer,
            acceptor=acceptor,
            coordinator=coordinator,
            leaving=self.leaving,
            retirement=self.retirement,
            blocking=self.blocking,
        )
        self.reception = ControlReception(self.view_change, self.admission)

    @classmethod
    def joins(  # noqa: PLR0913
        cls,
        me: Incarnation,
        welcome: Welcome,
        order: Order,
        config: GroupConfig,
        settings: MembershipConfig,
        *,
        group: str = "",
        terms: Terms = (),
        contacts: tuple[str, ...] = (),
    ) -> "MembershipMachine":
        """One that was welcomed (J6). It is given the state by the donors that the view names."""
        stateful = not settings.has_state
        member = cls(
            *(me, welcome.view, order, config, settings),
            group=group,
            terms=terms,
            contacts=contacts,
            has_state=stateful,
        )
        member.current.value = welcome.value
        member.current.departed = welcome.departed
        member.applicants.start_view()
        return member

    # --- what a host asks ---

    @property
    def machine(self) -> Machine:
        """The order's machine in the current view."""
        return self.epoch.machine

    @property
    def phase(self) -> Phase:
        """Where the member is in its life."""
        return self.retirement.phase

    @property
    def last(self) -> NextView | None:
        """Of one that is no member any more: what followed its last view, if it knows."""
        return self.retirement.last

    @property
    def leaves(self) -> bool:
        """The application leaves: no more submissions are taken."""
        return self.leaving.leaves

    @property
    def blocked(self) -> bool:
        """Too few members can be reached to agree on the next view."""
        return self.blocking.blocked

    @property
    def stopped(self) -> bool:
        """The machine is given no inputs: the next view is being agreed on, or there is none for this member."""
        return self.acceptor.has_stopped or self.phase is not Phase.MEMBER

    @property
    def is_direct(self) -> bool:
        """The host may give the epoch's inputs to its machine directly, until the next output of this member."""
        return not self.stopped and not self.submissions.skips and not self.leaves

    @property
    def waiting(self) -> tuple[Submit, ...]:
        """What was submitted while the member is stopped, in places of the current view."""
        return tuple(self.submissions.waiting)

    def not_delivered(self) -> list[Submit]:
        """Of one that was excluded by a view that it knows: own submissions that nobody delivers, in their order.

        Destinations are places of its last view. Whoever returns may submit them again.
        """
        return [*self.retirement.left_over(), *self.submissions.waiting]

    # --- state: the epoch's machine is another one in each view ---

    def snapshot(self) -> Snapshot:
        """The declared state, that of all parts, and that of the epoch's machine."""
        return (super().snapshot(), self.epoch.machine.snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        """Makes the machine of that view first."""
        own, machine = snapshot
        super().restore(own)  # type: ignore[arg-type]
        self.epoch.begin(self.current.place, self.current.size)
        self.epoch.machine.restore(machine)  # type: ignore[arg-type]

    # --- inputs ---

    def handle(self, event: MemberInput) -> list[MemberOutput]:
        """Takes one input and returns all outputs that follow from it."""
        out: list[MemberOutput] = []
        if self.phase is Phase.CLOSED:
            return out
        if isinstance(event, ReceiveControl):
            self.reception.receive(event.unit, out)
        elif isinstance(event, ReceiveOutside):
            self._receive_outside(event, out)
        elif isinstance(event, TimerFired) and event.name.startswith("view."):
            self._fire(event.name.removeprefix("view."), out)
        elif self.phase is Phase.RETIRED:
            return out
        elif isinstance(event, Submit):
            self._submit(event, out)
        elif isinstance(event, Receive | TimerFired | Drained | GiveUp):
            self._pass_to_epoch(event, out)
        else:
            self._handle_membership(event, out)
        return out

    def _handle_membership(
        self,
        event: Suspect | Unheard | Begin | OtherView | LeaveGroup | StateLoaded | ChangeView,
        out: list[MemberOutput],
    ) -> None:
        if isinstance(event, Begin):
            self.view_change.begin(out)
        elif isinstance(event, Suspect):
            self.reception.suspect(event.members, out)
        elif isinstance(event, Unheard):
            self.reception.unheard(event.members, out)
        elif isinstance(event, OtherView):
            self.installer.answer(event.place, out)
        elif isinstance(event, StateLoaded):
            self.current.has_state = True
            self.installer.say_entered(None, out)
            self.view_change.decided(self.admission.consider(out), out)
        elif isinstance(event, LeaveGroup):
            self.view_change.decided(self.leaving.begin(event, out), out)
        else:
            self.coordinator.why = event.why[:MAX_WHY]
            if self.acceptor.promised is None or not self.coordinator.is_active:
                self.view_change.decided(self.coordinator.begin(out), out)

    # --- the epoch ---

    def _pass_to_epoch(self, event: Receive | TimerFired | Drained | GiveUp, out: list[MemberOutput]) -> None:
        """R1: only while nothing was promised."""
        if not self.stopped:
            out += self.epoch.machine.handle(event)
        elif isinstance(event, Receive):
            out.append(Discard(event.unit, "stopped"))

    def _submit(self, event: Submit, out: list[MemberOutput]) -> None:
        """Submissions are always taken, and wait while the member is stopped."""
        if self.leaves:
            raise LocalProtocolError("a member that leaves does not send")
        if self.stopped:
            self.submissions.waiting.append(event)
        else:
            self.submissions.submit(event, out)

    # --- those outside ---

    def _receive_outside(self, event: ReceiveOutside, out: list[MemberOutput]) -> None:
        unit = event.unit
        if problem := problem_of_outside(unit):
            out.append(Discard(unit, problem))
        elif self.phase is Phase.RETIRED:
            out.append(Discard(unit, "old"))
        elif type(unit) is Find or type(unit) is Apply:
            self.view_change.decided(self.admission.receive(unit, event.address, out), out)
        elif type(unit) is Found:
            self.blocking.receive_found(unit, out)
        elif type(unit) is Welcome:
            self.view_change.receive_welcome(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    # --- timers ---

    def _fire(self, name: str, out: list[MemberOutput]) -> None:
        if self.phase is Phase.RETIRED:
            if name == "retired":
                self.retirement.close(out)
        elif name == "round":
            self.view_change.decided(self.coordinator.round_due(out), out)
        elif name == "blocked":
            self.blocking.due(out)
        elif name == "fetch":
            self.view_change.fetch_due(out)
        elif name == "install":
            self.reception.suspect(self.installer.install_again(out), out)
        elif name == "leave":
            self.view_change.decided(self.leaving.due(out), out)
        elif name == "answer":
            self.installer.answered = 0
        elif name == "gather":
            self.view_change.decided(self.admission.gathered(out), out)
        elif name == "applicants":
            self.reception.suspect(self.applicants.tick(out), out)
            self.view_change.decided(self.admission.consider(out), out)
