"""What a member does when one that is in no view asks for the group: it answers, and takes in those that are ready.

`applicants` knows who wants to join; here it is decided when a ballot for them begins (J5).
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

    def receive(self, unit: Find | Apply, address: str, out: list[MemberOutput]) -> None:
        """One asks where the group is, or applies."""
        name = unit.name if isinstance(unit, Find) else unit.applicant.name
        coordinator, blocked = self._applied_at(name), self.blocking.blocked
        if isinstance(unit, Find):
            self.applicants.receive_find(unit, address, coordinator, out, blocked=blocked)
        else:
            self.applicants.receive_apply(unit, address, coordinator, out, blocked=blocked)
            self.consider(out)

    def _applied_at(self, name: str) -> int:
        """Where this name is applied with: at the one that would coordinate; at the next one if that has the name.

        Its process may have been restarted: then it answers nobody, and whoever probes it need not wait for a failure
        timeout.
        """
        eligible, of_name = self.coordinator.eligible(), self.applicants.place_bit(name)
        if of_name == 1 << self.coordinator.current.place:
            return members(eligible)[0]
        return members(eligible & ~of_name or eligible)[0]

    def receive_entered(self, unit: Entered, out: list[MemberOutput]) -> None:
        """A member is there, and may have got the state: then more can join."""
        self.applicants.heard_of(unit.source, has_state=unit.has_state)
        if unit.applicant is not None:
            self.applicants.name_is_in_use(unit.source, unit.applicant)
        self.consider(out)

    def consider(self, out: list[MemberOutput]) -> None:
        """Takes in those that are ready, after a little time in which others may become so."""
        if self.coordinator.rank() == 0 and self._may_enter():
            self.applicants.gather(out)

    def _may_enter(self) -> bool:
        return not self.acceptor.has_stopped and self.applicants.may_enter(self.coordinator.suspects)

    def gathered(self, out: list[MemberOutput]) -> NextView | None:
        """Others had time to become ready, too: the ballot; the next view, if it is decided thereby."""
        self.applicants.gathering = False
        if not self._may_enter():
            return None
        names = ", ".join(member.name for member in self.applicants.ready())
        return self.coordinator.consider(f"{names} joins", out)
