"""From a decided view to the epoch that runs in it.

- R9: the end of the old epoch, the view, the beginning of the new one: in this order in one stream of outputs, as soon
  as all below the cut is here.
- R10: a member that the view is without is excluded.
"""

from typing import Final

from ordercast.model.machine import Discard
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.applicants import Applicants
from ordercast.protocols.membership.blocking import Blocking
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import InstallView, MemberOutput
from ordercast.protocols.membership.installer import Installer
from ordercast.protocols.membership.leaving import Leaving
from ordercast.protocols.membership.order import Epoch
from ordercast.protocols.membership.retirement import Retirement
from ordercast.protocols.membership.submissions import Submissions
from ordercast.protocols.membership.units import Install, Welcome
from ordercast.protocols.membership.view import GroupView, NextView, Reason, is_possible, view_after


class ViewChange:
    """The part of a member that enters the next view. It has no state of its own."""

    current: Final[Current]
    epoch: Final[Epoch]
    submissions: Final[Submissions]
    applicants: Final[Applicants]
    installer: Final[Installer]
    acceptor: Final[Acceptor]
    coordinator: Final[Coordinator]
    leaving: Final[Leaving]
    retirement: Final[Retirement]
    blocking: Final[Blocking]

    def __init__(  # noqa: PLR0913
        self,
        current: Current,
        epoch: Epoch,
        submissions: Submissions,
        *,
        applicants: Applicants,
        installer: Installer,
        acceptor: Acceptor,
        coordinator: Coordinator,
        leaving: Leaving,
        retirement: Retirement,
        blocking: Blocking,
    ) -> None:
        self.current, self.epoch, self.submissions = current, epoch, submissions
        self.applicants, self.installer = applicants, installer
        self.acceptor, self.coordinator = acceptor, coordinator
        self.leaving, self.retirement, self.blocking = leaving, retirement, blocking

    def begin(self, out: list[MemberOutput]) -> None:
        """Tells the first view; one that joined says that it is there."""
        current, value = self.current, self.current.value
        joined = tuple(member.name for member in value.joined) if value else ()
        why = value.why if value else "founded"
        out.append(InstallView(current.view, current.place, joined, (), why, value, gives_state=False))
        if value is not None:
            self.installer.say_entered(None, out)

    def decided(self, value: NextView | None, out: list[MemberOutput]) -> None:
        """If this member has seen that a view is decided, it tells the others, and enters it."""
        if value is None:
            return
        current = self.current
        current.send(Install(current.view.number, current.place, value), None, out)
        self.install(value, None, out)

    def install(self, value: NextView, told_by: int | None, out: list[MemberOutput]) -> None:
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
            self.blocking.unblock(out)
            self.retirement.exclude(value, out)
        elif acceptor.obtain(value, out):
            self._enter(value, told_by, out)
        else:
            self.current.set_timer("fetch", self.current.settings.repeat, out)

    def receive_welcome(self, unit: Welcome, out: list[MemberOutput]) -> None:
        """One that joined with the next view tells it; the tag proves that it follows the current one."""
        current, value = self.current, unit.value
        if (
            unit.incarnation != current.me.number
            or not is_possible(value, current.view)
            or view_after(current.view, value) != unit.view
            or self.acceptor.objection(Install(current.view.number, current.place, value)) is not None
        ):
            out.append(Discard(unit, "old"))
            return
        self.install(value, None, out)
        if current.view.number == value.number:
            self.installer.say_entered(None, out)

    def is_included(self, value: NextView) -> bool:
        """R10: whether this member finishes the epoch: it goes on, or it has left."""
        place = self.current.place
        return bool(value.stay >> place & 1) or (place, Reason.LEFT) in value.left

    # --- what is fetched ---

    def fetch_due(self, out: list[MemberOutput]) -> None:
        """What is lacking below the cut of a decided view is asked for again."""
        if self.acceptor.decided is not None:
            self.current.set_timer("fetch", self.current.settings.repeat, out)
            self.look_again(out)

    def look_again(self, out: list[MemberOutput]) -> None:
        """More of what was lacking is here."""
        acceptor = self.acceptor
        if acceptor.decided is not None:
            if acceptor.obtain(acceptor.decided, out):
                self._enter(acceptor.decided, acceptor.holder, out)
        elif self.coordinator.is_active and self.coordinator.proposed is None:
            self.decided(self.coordinator.propose(out), out)
        elif acceptor.proposal is not None and acceptor.obtain(acceptor.proposal[1], out):
            acceptor.accept(out)

    # --- entering ---

    def _enter(self, value: NextView, told_by: int | None, out: list[MemberOutput]) -> None:
        """R9: the end of the old epoch, the view, the beginning of the new epoch."""
        current, flush = self.current, self.epoch.flush
        for output in flush.finish(value.cut, self.acceptor.supplied):
            self.submissions.withdraw_if_undelivered(output, value, out)
            out.append(output)
        self.blocking.unblock(out)
        if not value.stay >> current.place & 1:
            self.retirement.leave(value, out)
            return
        self.acceptor.keep(value.cut)
        again, next_message = flush.left_over(value.cut), flush.next_message(value.cut)
        old = current.view
        current.advance(value)
        self.epoch.begin(current.place, current.size, next_message)
        self._start_view(out)
        self._tell_view(old, value, out)
        self.submissions.resubmit(again, next_message, value, out)
        self.installer.begin(told_by, value, out)
        self.decided(self.leaving.enter_view(out), out)

    def _start_view(self, out: list[MemberOutput]) -> None:
        """What the parts know is about one view."""
        self.acceptor.start_view()
        self.coordinator.start_view()
        self.applicants.start_view()
        self.installer.start_view()
        for name in ("round", "blocked", "fetch", "install"):
            self.current.cancel_timer(name, out)

    def _tell_view(self, old: GroupView, value: NextView, out: list[MemberOutput]) -> None:
        """Between the last message of the old epoch and the first of the new one."""
        current = self.current
        joined = tuple(member.name for member in value.joined)
        left = tuple((old.members[place].name, reason.value) for place, reason in value.left)
        gives = current.place in value.donors
        out.append(InstallView(current.view, current.place, joined, left, value.why, value, gives_state=gives))
