"""A member of a group whose membership changes: the epoch's machine of the current view, and the agreement on the next.

A view is an epoch: each view runs a fresh instance of the order's machine over its members. When the membership is to
change, a coordinator asks all members to stop and to report what they have, chooses the next view and the cut at which
the epoch ends, and proposes both; what a quorum of the view has accepted is decided. Each member then finishes the
epoch at the cut, tells the application the view, and begins the next epoch with what is left over.

The member dispatches to its parts, each with a state of its own. A part uses those listed above it:

    current      the current view, the one before, who has departed
    applicants   who wants to join                                        (current)
    installer    telling others the current view                          (current, applicants)
    acceptor     promises, the report, what was accepted                  (current, epoch)
    coordinator  ballots, the choice, the decision                        (current, epoch, acceptor, applicants)

While `is_direct` is True a host may give the epoch's inputs to `epoch.machine` directly.

 - R9: finish, the view, the next epoch, in this order in one stream of outputs. R10: who is not in it is excluded.
 - R11: who has left or is excluded goes on answering for two failure timeouts.
 - R12: own packets from the cut on are submitted first, in their order; then what waited.
 - L1: who leaves waits until all its own messages have arrived.
 - P1: who cannot reach a quorum says so, and keeps trying.
"""

from collections import deque
from enum import Enum
from typing import Final

from ordercast.model.config import GroupConfig
from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import (
    Discard,
    Drained,
    GiveUp,
    Level,
    Machine,
    Reached,
    Receive,
    Submit,
    Suspect,
    TimerFired,
)
from ordercast.model.nodes import members
from ordercast.model.state import DeclaredState, Snapshot
from ordercast.model.units import Packet
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.applicants import Applicants, Terms
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import (
    TO_ALL,
    Begin,
    Blocked,
    ChangeView,
    Excluded,
    InstallView,
    LeaveGroup,
    LeftGroup,
    MemberInput,
    MemberOutput,
    OtherView,
    ReceiveControl,
    ReceiveOutside,
    Retired,
    SendOutside,
    StateLoaded,
    Unblocked,
    Withdrawn,
)
from ordercast.protocols.membership.installer import Installer
from ordercast.protocols.membership.order import Epoch, Order
from ordercast.protocols.membership.units import (
    Accept,
    Apply,
    ControlUnit,
    Entered,
    Fetch,
    Find,
    Flush,
    Found,
    Install,
    Leave,
    Overruled,
    Probe,
    Propose,
    Report,
    Supply,
    Suspicion,
    Welcome,
    problem_of,
    problem_of_outside,
)
from ordercast.protocols.membership.view import (
    MAX_WHY,
    GroupView,
    Incarnation,
    MembershipConfig,
    NextView,
    Reason,
    is_quorum,
    place_after,
    places_after,
)

TOLD = 3
"""Members that are told a suspicion: the lowest that are not suspected."""
RETIRED_FOR = 2
"""Failure timeouts for which one that is no member any more goes on answering."""


class Phase(Enum):
    """Where a member is in its life."""

    MEMBER = "member"
    RETIRED = "retired"
    """It has left or was excluded, and still answers those that may need to hear it."""
    CLOSED = "closed"


class Member(DeclaredState):
    """One member."""

    order: Final[Order]
    epoch: Final[Epoch]
    contacts: Final[tuple[str, ...]]
    current: Current
    applicants: Applicants
    installer: Installer
    acceptor: Acceptor
    coordinator: Coordinator

    phase: Phase
    last: NextView | None  # of a retired one: what followed its last view, if it knows
    waiting: deque[Submit]  # submitted while stopped, in places of the current view
    skips: int  # message numbers that the next submission leaves out: of what was withdrawn
    leaves: bool  # the application leaves
    drains: bool  # and waits for its own messages
    kept: dict[int, Packet]  # packets of the previous view that others may have to fetch (sequencer)
    blocked: bool
    asked: int  # questions whether others have gone on

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
        self.order, self.contacts = order, contacts
        self.current = Current(me, view, settings, has_state=has_state)
        self.epoch = Epoch(order, config)
        self.epoch.begin(self.current.place, self.current.size)
        self.applicants = Applicants(self.current, group, terms)
        self.installer = Installer(self.current, self.applicants)
        self.acceptor = Acceptor(self.current, self.epoch)
        self.coordinator = Coordinator(self.current, self.epoch, self.acceptor, self.applicants.ready)
        self.phase = Phase.MEMBER
        self.last = None
        self.waiting, self.kept = deque(), {}
        self.leaves = self.drains = self.blocked = False
        self.asked = self.skips = 0

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
    ) -> "Member":
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

    # --- state: the epoch's machine is another one in each view ---

    @property
    def machine(self) -> Machine:
        """The order's machine in the current view."""
        return self.epoch.machine

    @property
    def stopped(self) -> bool:
        """The machine is given no inputs: the next view is being agreed on, or there is none for this member."""
        return self.acceptor.report is not None or self.phase is not Phase.MEMBER

    @property
    def is_direct(self) -> bool:
        """The host may give the epoch's inputs to its machine directly, until the next output of this member."""
        return not self.stopped and not self.skips and not self.leaves

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
            self._receive_control(event.unit, out)
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
        self, event: Suspect | Begin | OtherView | LeaveGroup | StateLoaded | ChangeView, out: list[MemberOutput]
    ) -> None:
        if isinstance(event, Begin):
            self._begin(out)
        elif isinstance(event, Suspect):
            self._suspect(event.members, out)
        elif isinstance(event, OtherView):
            if self.current.previous and 0 <= event.place < len(self.current.previous.members):
                self.installer.answer(event.place, out)
        elif isinstance(event, StateLoaded):
            self.current.has_state = True
            self.installer.say_entered(None, out)
        elif isinstance(event, LeaveGroup):
            self.drains = event.drain and (self.drains or not self.leaves)
            self.leaves = True
            self._leave_if_drained(out)
        else:
            self.coordinator.why = event.why[:MAX_WHY]
            if self.acceptor.promised is None or not self.coordinator.is_active:
                self._installed_if(self.coordinator.begin(out), out)

    def _begin(self, out: list[MemberOutput]) -> None:
        """Tells the first view; one that joined says that it is there."""
        current, value = self.current, self.current.value
        joined = tuple(member.name for member in value.joined) if value else ()
        why = value.why if value else "founded"
        out.append(InstallView(current.view, current.place, joined, (), why, value, gives_state=False))
        if value is not None:
            self.installer.say_entered(None, out)

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
            self.waiting.append(event)
        else:
            to = self.current.view.everybody if _is_to_all(event) else event.destinations
            self._give_to_epoch(event, to, out)

    def _give_to_epoch(self, event: Submit, to: int, out: list[MemberOutput]) -> None:
        """With the message numbers of what was withdrawn before it left out."""
        skips, self.skips = self.skips + event.skips, 0
        submit = Submit(to, event.lengths, event.payload, event.priority, skips, _is_to_all(event))
        out += self.epoch.machine.handle(submit)

    # --- units of the view ---

    def _receive_control(self, unit: ControlUnit, out: list[MemberOutput]) -> None:
        current = self.current
        previous = current.previous
        if previous is not None and unit.view == previous.number:
            if problem := problem_of(unit, previous):
                out.append(Discard(unit, problem))
            else:
                self._receive_from_previous(unit, out)
            return
        problem = "of another view" if unit.view != current.view.number else problem_of(unit, current.view)
        if problem or unit.source == current.place:
            out.append(Discard(unit, problem or "own"))
            return
        self.acceptor.reached |= (1 << unit.source) if self.acceptor.report is not None else 0
        if self.phase is Phase.RETIRED:
            self._answer_retired(unit, out)
        else:
            self.installer.entered |= 1 << unit.source
            self._receive_in_view(unit, out)

    def _receive_in_view(self, unit: ControlUnit, out: list[MemberOutput]) -> None:
        """From a member of the current view."""
        decided: NextView | None = None
        if isinstance(unit, Flush):
            self._guided(unit, self.acceptor.receive_flush(unit, out), out)
        elif isinstance(unit, Propose):
            self._guided(unit, self.acceptor.receive_propose(unit, out), out)
        elif isinstance(unit, Report):
            decided = self.coordinator.receive_report(unit, out)
        elif isinstance(unit, Accept):
            decided = self.coordinator.receive_accept(unit, out)
        elif isinstance(unit, Overruled):
            self.coordinator.receive_overruled(unit, out)
        elif isinstance(unit, Install):
            self._install(unit.value, unit.source, out)
        elif isinstance(unit, Fetch):
            self.acceptor.receive_fetch(unit, self.kept, out)
        elif isinstance(unit, Supply):
            if self.acceptor.receive_supply(unit, out):
                self._look_again(out)
        else:
            decided = self._receive_news(unit, out)
        self._installed_if(decided, out)

    def _receive_news(self, unit: Entered | Leave | Suspicion | Probe, out: list[MemberOutput]) -> NextView | None:
        """What members say besides ballots."""
        if isinstance(unit, Entered):
            self.applicants.heard_of(unit.source, out, has_state=unit.has_state)
            self._consider_applicants(out)
        elif isinstance(unit, Probe):
            self.installer.say_entered(unit.source, out)
        elif isinstance(unit, Leave):
            return self.coordinator.leaves(unit.source, out)
        else:
            why = unit.why or f"{self.current.view.names(unit.members)} suspected"
            return self.coordinator.suspect(unit.members, why, out)
        return None

    def _guided(self, unit: Flush | Propose, follows: bool, out: list[MemberOutput]) -> None:  # noqa: FBT001
        """A coordinator is at work: this member waits for it. Whom that one has heard can be reached."""
        if follows:
            self.acceptor.reached |= unit.heard | 1 << unit.source
            if not self.coordinator.guided:
                self.coordinator.wait_for_coordinator(out)
            self.coordinator.guided = True

    def _look_again(self, out: list[MemberOutput]) -> None:
        """More of what was lacking is here."""
        acceptor = self.acceptor
        if acceptor.decided is not None:
            if acceptor.obtain(acceptor.decided, out):
                self._enter(acceptor.decided, acceptor.holder, out)
        elif self.coordinator.is_active and self.coordinator.proposed is None:
            self._installed_if(self.coordinator.propose(out), out)
        elif acceptor.proposal is not None and acceptor.obtain(acceptor.proposal[1], out):
            acceptor.accept(out)

    # --- suspicion, leaving ---

    def _suspect(self, places: int, out: list[MemberOutput]) -> None:
        """The own failure detector suspects members: those that may have to act are told."""
        current = self.current
        new = places & current.others & ~self.coordinator.suspects
        if not new:
            return
        why = f"{current.view.names(new)} did not answer"
        told = members(current.view.everybody & ~self.coordinator.suspects & ~new)[:TOLD]
        for place in told:
            if place != current.place:
                current.send(Suspicion(current.view.number, current.place, new, why), place, out)
        self._installed_if(self.coordinator.suspect(new, why, out), out)

    def _leave_if_drained(self, out: list[MemberOutput]) -> None:
        """L1: says that it leaves when its own messages are where they belong."""
        if self.acceptor.leaving or self.stopped or not (self.is_drained() or not self.drains):
            self.current.set_timer("leave", self.current.settings.repeat, out)
        else:
            self.acceptor.leaving = True
            self._say_leave(out)

    def is_drained(self) -> bool:
        """Whether all destinations have all own packets: these are in every cut."""
        sizes = self.epoch.machine.log_sizes()
        return sizes.waiting == 0 and sizes.sent == 0 and not self.waiting

    def _say_leave(self, out: list[MemberOutput]) -> None:
        current = self.current
        current.send(Leave(current.view.number, current.place), None, out)
        current.set_timer("leave", current.settings.repeat, out)
        self._installed_if(self.coordinator.leaves(current.place, out), out)

    # --- the next view ---

    def _installed_if(self, decided: NextView | None, out: list[MemberOutput]) -> None:
        """If this member has seen that a view is decided, it tells the others, and enters it."""
        if decided is None:
            return
        current = self.current
        current.send(Install(current.view.number, current.place, decided), None, out)
        self._install(decided, None, out)

    def _install(self, value: NextView, told_by: int | None, out: list[MemberOutput]) -> None:
        """R9: enters a decided view, as soon as all below the cut is here. `told_by`: None if it saw it itself."""
        acceptor = self.acceptor
        if acceptor.decided is not None:
            if told_by is not None:
                acceptor.holder = told_by
            return
        acceptor.stop(out)
        acceptor.decided = value
        acceptor.holder = acceptor.holder if told_by is None else told_by
        if not self.is_included(value):
            self._exclude(value, out)
        elif acceptor.obtain(value, out):
            self._enter(value, told_by, out)
        else:
            self.current.set_timer("fetch", self.current.settings.repeat, out)

    def is_included(self, value: NextView) -> bool:
        """R10: whether this member finishes the epoch: it goes on, or it has left."""
        place = self.current.place
        return bool(value.stay >> place & 1) or (place, Reason.LEFT) in value.left

    def _enter(self, value: NextView, told_by: int | None, out: list[MemberOutput]) -> None:
        """R9: the end of the old epoch, the view, the beginning of the new epoch."""
        current, flush = self.current, self.epoch.flush
        self._finish(value, out)
        if self.blocked:
            self.blocked = False
            out.append(Unblocked())
        if not value.stay >> current.place & 1:
            out.append(LeftGroup())
            self._retire(value, out)
            return
        self.kept = dict(self.acceptor.supplied)
        if value.cut.numbered_below:  # what is older than the history is with all members
            oldest = max(0, value.cut.numbered_below - 2 * self.epoch.config.sequencer.history)
            self.kept |= dict(flush.supply(((oldest, value.cut.numbered_below),)))
        again, next_message = flush.left_over(value.cut), flush.next_message(value.cut)
        old = current.view
        current.advance(value)
        self.epoch.begin(current.place, current.size, next_message)
        self.acceptor.start_view()
        self.coordinator.start_view()
        self.applicants.start_view()
        self.installer.start_view()
        for name in ("round", "blocked", "fetch", "install"):
            current.cancel_timer(name, out)
        self._tell_view(old, value, out)
        self._resubmit(again, next_message, value, out)
        self.installer.begin(told_by, value, out)
        if self.acceptor.leaving:
            self._say_leave(out)

    def _finish(self, value: NextView, out: list[MemberOutput]) -> None:
        """The end of the epoch. An own packet that only members were to get that are gone was perhaps never given."""
        place, finishing = self.current.place, value.stay
        for leaver, reason in value.left:
            finishing |= (reason is Reason.LEFT) << leaver
        for output in self.epoch.flush.finish(value.cut, self.acceptor.supplied):
            if isinstance(output, Reached) and output.level is Level.ACKNOWLEDGED:
                packet = output.packet
                if packet.source == place and not packet.destinations & finishing:
                    submit = Submit(packet.destinations, packet.lengths, packet.payload, packet.priority)
                    out.append(Withdrawn(submit, packet.first))
            out.append(output)

    def _tell_view(self, old: GroupView, value: NextView, out: list[MemberOutput]) -> None:
        """Between the last message of the old epoch and the first of the new one."""
        current = self.current
        joined = tuple(member.name for member in value.joined)
        left = tuple((old.members[place].name, reason.value) for place, reason in value.left)
        gives = current.place in value.donors
        out.append(InstallView(current.view, current.place, joined, left, value.why, value, gives_state=gives))

    def _resubmit(self, again: list[Submit], number: int, value: NextView, out: list[MemberOutput]) -> None:
        """R12: what was not in the cut comes first, then what waited, to those that are still members.

        `number`: of the first message. What was withdrawn at the end of an earlier view lies between the two.
        """
        waited, self.waiting = self.waiting, deque()
        before, self.skips = self.skips, 0
        for event in again:
            number = self._resubmit_one(event, number, value, out)
        self.skips += before
        number += before
        for event in waited:
            number = self._resubmit_one(event, number, value, out)

    def _resubmit_one(self, event: Submit, number: int, value: NextView, out: list[MemberOutput]) -> int:
        """The number of the message after it."""
        first, to = number + event.skips, self._in_next_view(event, value)
        if to:
            self._give_to_epoch(event, to, out)
        else:
            self.skips += event.skips + len(event.lengths)
            out.append(Withdrawn(event, first))
        return first + len(event.lengths)

    def _in_next_view(self, event: Submit, value: NextView) -> int:
        """The destinations, as places of the current view. What was to all and had no number yet is to all of them."""
        if self.order.to_all or _is_to_all(event):
            return self.current.view.everybody
        return places_after(value.stay, event.destinations)

    # --- the view before (R13) ---

    def _receive_from_previous(self, unit: ControlUnit, out: list[MemberOutput]) -> None:
        """R13: its sender is still in the view before, or has just entered the current one."""
        value = self.current.value
        if isinstance(unit, Fetch):
            self.acceptor.receive_fetch(unit, self.kept, out)
        elif isinstance(unit, Install):
            if value is not None and value.stay >> unit.source & 1:
                self.installer.say_entered(place_after(value, unit.source), out)
        elif isinstance(unit, Flush | Propose | Leave | Suspicion | Probe):
            self.installer.answer(unit.source, out)
        else:
            out.append(Discard(unit, "old"))

    # --- no member any more (R10, R11) ---

    def _exclude(self, value: NextView, out: list[MemberOutput]) -> None:
        """A view without this member was decided."""
        if self.blocked:
            self.blocked = False
            out.append(Unblocked())
        out.append(Excluded(value.number, value.why, value.cut.ends[self.current.place]))
        self._retire(value, out)

    def not_delivered(self) -> list[Submit]:
        """Of one that was excluded by a view that it knows: own submissions that nobody delivers, in their order.

        Destinations are places of its last view. Whoever returns may submit them again.
        """
        left = [] if self.last is None else self.epoch.flush.left_over(self.last.cut)
        return [*left, *self.waiting]

    def _retire(self, value: NextView | None, out: list[MemberOutput]) -> None:
        """It goes on answering: those that stay may need to hear of the view from it."""
        self.phase, self.last = Phase.RETIRED, value
        for name in ("round", "blocked", "fetch", "install", "leave", "gather", "applicants"):
            self.current.cancel_timer(name, out)
        self.current.set_timer("retired", RETIRED_FOR * self.current.settings.failure_timeout, out)

    def _answer_retired(self, unit: ControlUnit, out: list[MemberOutput]) -> None:
        """R11: tells the view that followed; one that does not know it answers as an acceptor."""
        if isinstance(unit, Flush | Propose):
            if self.last is not None:
                current = self.current
                current.send(Install(current.view.number, current.place, self.last), unit.source, out)
            elif isinstance(unit, Flush):
                self.acceptor.receive_flush(unit, out)
            else:
                self.acceptor.receive_propose(unit, out)
        elif isinstance(unit, Fetch):
            self.acceptor.receive_fetch(unit, self.kept, out)
        else:
            out.append(Discard(unit, "old"))

    # --- those outside ---

    def _receive_outside(self, event: ReceiveOutside, out: list[MemberOutput]) -> None:
        unit, address = event.unit, event.address
        if problem := problem_of_outside(unit):
            out.append(Discard(unit, problem))
        elif self.phase is Phase.RETIRED:
            out.append(Discard(unit, "old"))
        elif type(unit) is Find:
            self.applicants.receive_find(unit, address, self._coordinator(), out, blocked=self.blocked)
        elif type(unit) is Apply:
            self.applicants.receive_apply(unit, address, self._coordinator(), out, blocked=self.blocked)
            self._consider_applicants(out)
        elif type(unit) is Found:
            self._receive_found(unit, out)
        else:
            out.append(Discard(unit, "stray"))

    def _coordinator(self) -> int:
        """The place that begins the next ballot."""
        return members(self.coordinator.eligible())[0]

    def _consider_applicants(self, out: list[MemberOutput]) -> None:
        """Takes in those that are ready, after a little time in which others may become so."""
        if not self.stopped and self.coordinator.rank() == 0 and self.applicants.may_enter(self.coordinator.suspects):
            self.applicants.gather(out)

    def _receive_found(self, unit: Found, out: list[MemberOutput]) -> None:
        """P2: an answer to a blocked member: the others have gone on without it."""
        me = self.current.me
        asked = (unit.group, unit.name, unit.incarnation) == (self.applicants.group, me.name, me.number)
        if not asked or not 0 < unit.nonce <= self.asked or not self.stopped:
            out.append(Discard(unit, "stray"))
        elif unit.view > self.current.view.number and not unit.is_member:
            if self.blocked:
                self.blocked = False
                out.append(Unblocked())
            out.append(Excluded(unit.view, "the others went on", None))
            self._retire(None, out)

    # --- timers ---

    def _fire(self, name: str, out: list[MemberOutput]) -> None:
        if self.phase is Phase.RETIRED:
            if name == "retired":
                self.phase = Phase.CLOSED
                out.append(Retired())
        elif name == "round":
            self._installed_if(self.coordinator.round_due(out), out)
        elif name == "blocked":
            self._blocked_due(out)
        elif name == "fetch":
            self._fetch_due(out)
        elif name == "install":
            self._suspect(self.installer.install_again(out), out)
        elif name == "leave":
            self._leave_due(out)
        elif name == "answer":
            self.installer.answered = 0
        elif name == "gather":
            self._gathered(out)
        elif name == "applicants":
            self._suspect(self.applicants.tick(out), out)
            self._consider_applicants(out)

    def _fetch_due(self, out: list[MemberOutput]) -> None:
        """What is lacking below the cut of a decided view is asked for again."""
        if self.acceptor.decided is not None:
            self.current.set_timer("fetch", self.current.settings.repeat, out)
            self._look_again(out)

    def _leave_due(self, out: list[MemberOutput]) -> None:
        if self.acceptor.leaving:  # also while stopped: who has gone on answers with the view
            self._say_leave(out)
        else:
            self._leave_if_drained(out)

    def _gathered(self, out: list[MemberOutput]) -> None:
        self.applicants.gathering = False
        if not self.stopped and self.applicants.may_enter(self.coordinator.suspects):
            names = ", ".join(member.name for member in self.applicants.ready())
            self._installed_if(self.coordinator.consider(f"{names} joins", out), out)

    def _blocked_due(self, out: list[MemberOutput]) -> None:
        """P1: a failure timeout has passed without a next view; blocked is who does not reach a quorum."""
        current, reached = self.current, self.acceptor.reached
        if self.acceptor.report is None:
            return
        enough = reached.bit_count() >= self.epoch.reports_needed(current.size)
        if not self.blocked and not (enough and is_quorum(reached, current.size)):
            self.blocked = self.coordinator.blocked = True
            out.append(Blocked(current.view.everybody & ~reached))
        self.asked += 1
        find = Find(self.applicants.group, current.me.name, current.me.number, self.asked)
        addresses = [current.view.members[place].address for place in members(current.others)]
        out.extend(SendOutside(find, address) for address in (*addresses, *self.contacts))
        current.set_timer("blocked", current.settings.blocked_repeat, out)


def _is_to_all(event: Submit) -> bool:
    return event.to_all or event.destinations == TO_ALL
