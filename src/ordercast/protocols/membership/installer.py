"""Telling others the current view: those that have not entered it, and those that are still in the one before.

- R13: a member of the previous view is told what followed it, at most once in the guard time.
- R14: who has seen the decision repeats it to those that stay, and welcomes those that join, until all have entered;
  after a failure timeout the rest is suspected.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard
from ordercast.model.nodes import members
from ordercast.protocols.membership.applicants import Applicants
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import MemberOutput, SendControl, SendOutside
from ordercast.protocols.membership.units import (
    ControlUnit,
    Entered,
    Flush,
    Install,
    Leave,
    Probe,
    Propose,
    Suspicion,
)
from ordercast.protocols.membership.view import NextView, place_after


class Installer(DeclaredState):
    """The part of a member that tells others the current view."""

    current: Final[Current]
    applicants: Final[Applicants]

    installs: bool  # this member repeats the view to those that have not entered it
    entered: int  # places known to have entered it
    rounds: int  # how often the view was repeated
    answered: int  # places of the previous view that were answered since the answer timer was set

    def __init__(self, current: Current, applicants: Applicants) -> None:
        self.current, self.applicants = current, applicants
        self.installs, self.rounds = False, 0
        self.start_view()

    def start_view(self) -> None:
        """Nobody else is known to be in the view yet."""
        self.entered, self.answered = 1 << self.current.place, 0

    def begin(self, told_by: int | None, value: NextView, out: list[MemberOutput]) -> None:
        """Who has seen the decision repeats it; the others tell that they have entered."""
        self.installs, self.rounds = told_by is None, 0
        if told_by is None:
            self._welcome(out)
            if self.entered != self.current.view.everybody:
                self.current.set_timer("install", self.current.settings.repeat, out)
        elif value.stay >> told_by & 1:
            self.say_entered(place_after(value, told_by), out)

    def say_entered(self, to: int | None, out: list[MemberOutput], applicant: int | None = None) -> None:
        """To one place of the current view, or to all. `applicant`: of the probe that this answers."""
        current = self.current
        current.send(Entered(current.view.number, current.place, current.has_state, applicant), to, out)

    def _welcome(self, out: list[MemberOutput]) -> None:
        """Tells those that joined with this view and have not been heard in it."""
        for place in self.applicants.joined_places():
            if not self.entered >> place & 1:
                joined = self.current.view.members[place]
                out.append(SendOutside(self.applicants.welcome_for(joined), joined.address))

    def tell_late_members(self, out: list[MemberOutput]) -> None:
        """Who was never heard in this view may be in the one before, whose tag one that joined does not know."""
        current = self.current
        if current.value is not None and current.previous is None:
            for place in members(current.view.everybody & ~self.entered):
                late = current.view.members[place]
                out.append(SendOutside(self.applicants.welcome_for(late), late.address))

    def install_again(self, out: list[MemberOutput]) -> int:
        """A round is over; returns the places that are to be suspected because they do not enter."""
        current, value, previous = self.current, self.current.value, self.current.previous
        missing = current.view.everybody & ~self.entered
        if not self.installs or not missing:
            return 0
        assert value is not None, "it has entered this view from the one before"
        assert previous is not None, "it has entered this view from the one before"
        assert current.previous_place is not None, "it has entered this view from the one before"
        self.rounds += 1
        if self.rounds * current.settings.repeat >= current.settings.failure_timeout:
            self.installs = False
            return missing
        install = Install(previous.number, current.previous_place, value)
        for new, old in enumerate(members(value.stay)):
            if missing >> new & 1:
                out.append(SendControl(install, old, previous.number))
        self._welcome(out)
        current.set_timer("install", current.settings.repeat, out)
        return 0

    # --- those that are still in the view before (R13) ---

    def receive_from_previous(self, unit: ControlUnit, out: list[MemberOutput]) -> None:
        """Its sender is still in the view before, or has just entered the current one."""
        value = self.current.value
        if isinstance(unit, Install):
            if value is not None and value.stay >> unit.source & 1:
                self.say_entered(place_after(value, unit.source), out)
        elif isinstance(unit, Flush | Propose | Leave | Suspicion | Probe):
            self.answer(unit.source, out)
        else:
            out.append(Discard(unit, "old"))

    def answer(self, place: int, out: list[MemberOutput]) -> None:
        """Tells a member of the previous view what followed, at most once in the guard time."""
        current = self.current
        if current.previous is None:
            return
        assert current.value is not None, "it has entered this view from the one before"
        assert current.previous_place is not None, "it has entered this view from the one before"
        if not 0 <= place < len(current.previous.members):
            return
        if self.answered >> place & 1 or place == current.previous_place:
            return
        if not self.answered:
            current.set_timer("answer", current.settings.guard, out)
        self.answered |= 1 << place
        install = Install(current.previous.number, current.previous_place, current.value)
        out.append(SendControl(install, place, current.previous.number))
