"""What a member does when one that is in no view asks for the group: it answers, and takes in those that are ready.

`applicants` knows who wants to join; here it is decided when a ballot for them begins (J5): at once if nobody else has
asked for the group; otherwise after a little time, so that one view takes in all that come together.
"""

from typing import Final

from ordercast.model.nodes import members
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.applicants import Applicants
from ordercast.protocols.membership.blocking import Blocking
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.events import MemberOutput
from ordercast.protocols.membership.units import Apply, Entered, Find
from ordercast.protocols.membership.view import NextView


class Admission:
    """The part of a member that takes others in. It has no state of its own."""

    applicants: Final[Applicants]
    acceptor: Final[Acceptor]
    coordinator: Final[Coordinator]
    blocking: Final[Blocking]

    def __init__(
        self, applicants: Applicants, acceptor: Acceptor, coordinator: Coordinator, blocking: Blocking
    ) -> None:
        self.applicants, self.acceptor = applicants, acceptor
        self.coordinator, self.blocking = coordinator, blocking

    def receive(self, unit: Find | Apply, address: str, out: list[MemberOutput]) -> NextView | None:
        """One asks where the group is, or applies. Returns the next view, if it is decided thereby."""
        name = unit.name if isinstance(unit, Find) else unit.applicant.name
        coordinator, blocked = self._applied_at(name), self.blocking.blocked
        if isinstance(unit, Find):
            self.applicants.receive_find(unit, address, coordinator, out, blocked=blocked)
            return None
        self.applicants.receive_apply(unit, address, coordinator, out, blocked=blocked)
        return self.consider(out)

    def _applied_at(self, name: str) -> int:
        """Where this name is applied with: at the one that would coordinate; at the next one if that has the name.

        Its process may have been restarted: then it answers nobody, and whoever probes it need not wait for a failure
        timeout.
        """
        eligible, of_name = self.coordinator.eligible(), self.applicants.place_bit(name)
        if of_name == 1 << self.coordinator.current.place:
            return members(eligible)[0]
        return members(eligible & ~of_name or eligible)[0]

    def receive_entered(self, unit: Entered, out: list[MemberOutput]) -> NextView | None:
        """A member is there, and may have got the state: then more can join."""
        self.applicants.heard_of(unit.source, has_state=unit.has_state)
        if unit.applicant is not None:
            self.applicants.name_is_in_use(unit.source, unit.applicant)
        return self.consider(out)

    def consider(self, out: list[MemberOutput]) -> NextView | None:
        """Takes in those that are ready; if others may become so, too, after a little time."""
        if self.coordinator.rank() != 0 or not self._may_enter():
            return None
        if not self.applicants.others_ask():
            return self._take_in(out)
        self.applicants.gather(out)
        return None

    def _may_enter(self) -> bool:
        return not self.acceptor.has_stopped and self.applicants.may_enter(self.coordinator.suspects)

    def gathered(self, out: list[MemberOutput]) -> NextView | None:
        """Others had time to become ready, too: the ballot; the next view, if it is decided thereby."""
        self.applicants.gathering = False
        self.applicants.asking = set()
        return self._take_in(out) if self._may_enter() else None

    def _take_in(self, out: list[MemberOutput]) -> NextView | None:
        names = ", ".join(member.name for member in self.applicants.ready())
        return self.coordinator.consider(f"{names} joins", out)
