"""Leaving: who leaves says so when its own messages are where they belong, until a view without it comes.

- L1: it takes no more submissions, waits until all its own messages have arrived, and then goes on helping the others.
- Too few may be left for a view without it: it stays for now, and says again in each view that it leaves. One that may
  stay as well does not, and goes on as before.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import LeaveGroup, MemberOutput
from ordercast.protocols.membership.order import Epoch
from ordercast.protocols.membership.submissions import Submissions
from ordercast.protocols.membership.units import Leave
from ordercast.protocols.membership.view import NextView


class Leaving(DeclaredState):
    """The part of a member that leaves the group. Each step returns the next view, if it is decided thereby."""

    current: Final[Current]
    epoch: Final[Epoch]
    submissions: Final[Submissions]
    acceptor: Final[Acceptor]
    coordinator: Final[Coordinator]

    leaves: bool  # the application leaves
    drains: bool  # and waits for its own messages
    may_stay: bool  # if the next view has this member, it does not leave

    def __init__(
        self, current: Current, epoch: Epoch, submissions: Submissions, acceptor: Acceptor, coordinator: Coordinator
    ) -> None:
        self.current, self.epoch, self.submissions = current, epoch, submissions
        self.acceptor, self.coordinator = acceptor, coordinator
        self.leaves = self.drains = self.may_stay = False

    def begin(self, event: LeaveGroup, out: list[MemberOutput]) -> NextView | None:
        """The application leaves; once more: it does not wait for its messages any longer."""
        self.drains = event.drain and (self.drains or not self.leaves)
        self.may_stay = event.may_stay and (self.may_stay or not self.leaves)
        self.leaves = True
        return self._say_if_drained(out)

    def due(self, out: list[MemberOutput]) -> NextView | None:
        """The timer has fired. Also who has stopped says it again: who has gone on answers with the view."""
        return self.say(out) if self.acceptor.leaving else self._say_if_drained(out)

    def _say_if_drained(self, out: list[MemberOutput]) -> NextView | None:
        if self.acceptor.leaving or self.acceptor.has_stopped or not (self.is_drained() or not self.drains):
            self.current.set_timer("leave", self.current.settings.repeat, out)
            return None
        self.acceptor.leaving = True
        return self.say(out)

    def is_drained(self) -> bool:
        """Whether all destinations have all own packets: these are in every cut."""
        sizes = self.epoch.machine.log_sizes()
        return sizes.waiting == 0 and sizes.sent == 0 and not self.submissions.waiting

    def enter_view(self, out: list[MemberOutput]) -> NextView | None:
        """The next view has this member."""
        if self.may_stay:
            self.leaves = self.drains = self.may_stay = self.acceptor.leaving = False
            self.current.cancel_timer("leave", out)
            return None
        return self.say(out) if self.acceptor.leaving else None

    def say(self, out: list[MemberOutput]) -> NextView | None:
        """To all members of the view."""
        current = self.current
        current.send(Leave(current.view.number, current.place), None, out)
        current.set_timer("leave", current.settings.repeat, out)
        return self.coordinator.leaves(current.place, out)
