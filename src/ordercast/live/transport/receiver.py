"""What the transport of a member needs of whoever receives."""

from typing import Protocol

from ordercast.model.units import Unit
from ordercast.protocols.membership.units import ControlUnit, OutsideUnit
from ordercast.wire.control import Control
from ordercast.wire.inspection import Inspect


class Receiver(Protocol):
    """Who is handed what arrives."""

    def session_received(self, member: int, session: int) -> None:
        """Something of a session arrived, and we are in none: it may be the one that we have agreed to."""

    def control_received(self, member: int, message: Control) -> None:
        """A control message arrived."""

    def unit_received(self, member: int, unit: Unit) -> None:
        """A valid unit of the order arrived in the current view."""

    def membership_received(self, unit: ControlUnit) -> None:
        """A valid membership unit arrived, in the current view or in the one before."""

    def outside_received(self, unit: OutsideUnit, address: str) -> None:
        """A unit arrived from one that is in no view of ours; answers go to this address."""

    def inspect_received(self, question: Inspect) -> None:
        """One that watches the group asks how this member is."""

    def other_view_received(self, place: int) -> None:
        """Something of the order arrived from a member of the view before ours."""

    def drained(self) -> None:
        """Nothing more has arrived for now."""

    def paused(self) -> None:
        """More has arrived than is read in one turn; the rest follows."""
