"""Units of other members of the view, or of the one before: each is checked, and given to the part that it is for."""

from typing import Final

from ordercast.model.machine import Discard
from ordercast.model.nodes import members
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.admission import Admission
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import MemberOutput
from ordercast.protocols.membership.installer import Installer
from ordercast.protocols.membership.retirement import Phase, Retirement
from ordercast.protocols.membership.units import (
    Accepted,
    ControlUnit,
    Entered,
    Fetch,
    Flush,
    Install,
    Leave,
    Overruled,
    Probe,
    Propose,
    Report,
    Supply,
    Suspicion,
    problem_of,
)
from ordercast.protocols.membership.view import MAX_WHY, NextView
from ordercast.protocols.membership.view_change import ViewChange

TOLD = 3
"""Members that are told a suspicion: the lowest that are not suspected."""


class ControlReception:
    """The part of a member that dispatches units of other members. It has no state of its own."""

    current: Final[Current]
    installer: Final[Installer]
    acceptor: Final[Acceptor]
    coordinator: Final[Coordinator]
    retirement: Final[Retirement]
    admission: Final[Admission]
    view_change: Final[ViewChange]

    def __init__(self, view_change: ViewChange, admission: Admission) -> None:
        self.view_change, self.admission = view_change, admission
        self.current, self.installer, self.acceptor = view_change.current, view_change.installer, view_change.acceptor
        self.coordinator, self.retirement = view_change.coordinator, view_change.retirement

    def receive(self, unit: ControlUnit, out: list[MemberOutput]) -> None:
        """One that came under the tag of the current view, or of the one before."""
        current = self.current
        previous = current.previous
        if previous is not None and unit.view == previous.number:
            if problem := problem_of(unit, previous):
                out.append(Discard(unit, problem))
            elif isinstance(unit, Fetch):
                self.acceptor.receive_fetch(unit, out)
            else:
                self.installer.receive_from_previous(unit, out)
            return
        problem = "of another view" if unit.view != current.view.number else problem_of(unit, current.view)
        problem = problem or self.acceptor.objection(unit)
        if problem or unit.source == current.place:
            out.append(Discard(unit, problem or "own"))
            return
        self.acceptor.reached |= (1 << unit.source) if self.acceptor.has_stopped else 0
        if self.retirement.phase is Phase.RETIRED:
            self.retirement.answer(unit, out)
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
        elif isinstance(unit, Accepted):
            decided = self.coordinator.receive_accepted(unit, out)
        elif isinstance(unit, Overruled):
            self.coordinator.receive_overruled(unit, out)
        elif isinstance(unit, Install):
            self.view_change.install(unit.value, unit.source, out)
        elif isinstance(unit, Fetch):
            self.acceptor.receive_fetch(unit, out)
        elif isinstance(unit, Supply):
            if self.acceptor.receive_supply(unit, out):
                self.view_change.look_again(out)
        else:
            decided = self._receive_news(unit, out)
        self.view_change.decided(decided, out)

    def _receive_news(self, unit: Entered | Leave | Suspicion | Probe, out: list[MemberOutput]) -> NextView | None:
        """What members say besides ballots."""
        if isinstance(unit, Entered):
            return self.admission.receive_entered(unit, out)
        if isinstance(unit, Probe):
            self.installer.say_entered(unit.source, out, unit.applicant)
        elif isinstance(unit, Leave):
            return self.coordinator.leaves(unit.source, out)
        else:
            why = unit.why or f"{self.current.view.names(unit.members)} suspected"
            decided = self.coordinator.unheard(unit.source, unit.unheard, why, out)
            return self.coordinator.suspect(unit.members, why, out) if decided is None else decided
        return None

    def _guided(self, unit: Flush | Propose, follows: bool, out: list[MemberOutput]) -> None:  # noqa: FBT001
        """A coordinator is at work: this member waits for it. Whom that one has heard can be reached."""
        if follows:
            self.acceptor.reached |= unit.heard | 1 << unit.source
            if not self.coordinator.guided:
                self.coordinator.wait_for_coordinator(out)
            self.coordinator.guided = True

    # --- suspicion ---

    def suspect(self, places: int, out: list[MemberOutput]) -> None:
        """The own failure detector suspects members: those that may have to act are told."""
        current = self.current
        new = places & current.others & ~self.coordinator.suspects
        if not new:
            return
        why = f"{current.view.names(new)} suspected"  # it may answer after all
        self._tell(Suspicion(current.view.number, current.place, new, why), new, out)
        self.view_change.decided(self.coordinator.suspect(new, why, out), out)

    def unheard(self, places: int, out: list[MemberOutput]) -> None:
        """P5: members live, as others say, and this one does not hear them."""
        current = self.current
        places &= current.others
        if not places or self.acceptor.has_stopped:
            return
        why = f"{current.me.name} does not hear {current.view.names(places)}"[:MAX_WHY]
        self._tell(Suspicion(current.view.number, current.place, 0, why, places), 0, out)
        self.view_change.decided(self.coordinator.unheard(current.place, places, why, out), out)

    def _tell(self, unit: Suspicion, suspects: int, out: list[MemberOutput]) -> None:
        """To those that may have to act."""
        current = self.current
        told = members(current.view.everybody & ~self.coordinator.suspects & ~suspects)[:TOLD]
        for place in told:
            if place != current.place:
                current.send(unit, place, out)
