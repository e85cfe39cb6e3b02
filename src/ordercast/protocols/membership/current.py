"""What all parts of a member know: the current view, the one before it, and who has departed."""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import CancelTimer, SetTimer
from ordercast.protocols.membership.events import MemberOutput, SendControl
from ordercast.protocols.membership.units import MAX_DEPARTED, ControlUnit
from ordercast.protocols.membership.view import (
    Departed,
    GroupView,
    Incarnation,
    MembershipConfig,
    NextView,
    departed_with,
    place_after,
    view_after,
)
from ordercast.protocols.shared.jitter import spread


class Current(DeclaredState):
    """The view that a member is in."""

    me: Final[Incarnation]
    settings: Final[MembershipConfig]

    view: GroupView  # number and members
    place: int  # the own one
    value: NextView | None  # what the members of the previous view agreed on
    previous: GroupView | None  # the view before; None for one that joined with this view
    previous_place: int | None  # the own one; None for one that joined with this view
    has_state: bool  # the application has the state of the group
    departed: tuple[Departed, ...]  # the last ones

    def __init__(self, me: Incarnation, view: GroupView, settings: MembershipConfig, *, has_state: bool) -> None:
        self.me, self.settings = me, settings
        place = view.place_of(me)
        assert place is not None, f"{me.name} is no member of the view"
        self.view, self.place = view, place
        self.value = self.previous = self.previous_place = None
        self.has_state = has_state
        self.departed = ()

    def advance(self, value: NextView) -> None:
        """The next view is the current one."""
        self.departed = (*self.departed, *departed_with(self.view, value))[-MAX_DEPARTED:]
        self.previous, self.previous_place = self.view, self.place
        self.view, self.place, self.value = view_after(self.view, value), place_after(value, self.place), value

    @property
    def size(self) -> int:
        """How many members the view has."""
        return len(self.view.members)

    @property
    def others(self) -> int:
        """All places but the own one."""
        return self.view.everybody & ~(1 << self.place)

    def departed_as(self, member: Incarnation) -> Departed | None:
        """If an incarnation was a member before, and is none now: when it went."""
        return next((gone for gone in self.departed if gone.name == member.name and gone.number == member.number), None)

    def ranked(self, eligible: int) -> int:
        """How many of these places come before the own one."""
        return (eligible & ((1 << self.place) - 1)).bit_count()

    # --- outputs ---

    def send(self, unit: ControlUnit, to: int | None, out: list[MemberOutput]) -> None:
        """To one place of the current view, or to all others."""
        if to is None and self.size == 1:
            return
        out.append(SendControl(unit, to, self.view.number))

    def set_timer(self, name: str, duration: int, out: list[MemberOutput], stamp: int = 0) -> None:
        """Sets a timer, spread over [T, 2T)."""
        out.append(SetTimer(f"view.{name}", spread(duration, self.view.nodes[self.place], self.view.number + stamp)))

    def cancel_timer(self, name: str, out: list[MemberOutput]) -> None:
        """Cancels it, if it runs."""
        out.append(CancelTimer(f"view.{name}"))
