"""A member that cannot reach enough others to agree on the next view.

- P1: it says so after a failure timeout, and keeps trying.
- P2: it also asks whether the others have gone on without it; then it is excluded. And it tells those that may not know
  its view: if all that were in the view before have failed but them, only one that joined can tell.
"""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Discard
from ordercast.model.nodes import members
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.current import Current
from ordercast.protocols.membership.events import Blocked, MemberOutput, SendOutside, Unblocked
from ordercast.protocols.membership.installer import Installer
from ordercast.protocols.membership.order import Epoch
from ordercast.protocols.membership.retirement import Retirement
from ordercast.protocols.membership.units import Find, Found
from ordercast.protocols.membership.view import is_quorum


class Blocking(DeclaredState):
    """The part of a member that notices that it is blocked, and asks whether others have gone on."""

    current: Final[Current]
    epoch: Final[Epoch]
    acceptor: Final[Acceptor]
    coordinator: Final[Coordinator]
    retirement: Final[Retirement]
    installer: Final[Installer]
    group: Final[str]
    contacts: Final[tuple[str, ...]]

    blocked: bool  # it does not reach enough members, and delivers nothing
    asked: int  # questions whether others have gone on

    def __init__(  # noqa: PLR0913
        self,
        current: Current,
        epoch: Epoch,
        acceptor: Acceptor,
        coordinator: Coordinator,
        retirement: Retirement,
        installer: Installer,
        *,
        group: str,
        contacts: tuple[str, ...],
    ) -> None:
        """`contacts`: besides the members of its view, where it asks."""
        self.current, self.epoch, self.acceptor = current, epoch, acceptor
        self.coordinator, self.retirement, self.installer = coordinator, retirement, installer
        self.group, self.contacts = group, contacts
        self.blocked, self.asked = False, 0

    def due(self, out: list[MemberOutput]) -> None:
        """A failure timeout has passed without a next view; blocked is who does not reach a quorum."""
        current, reached = self.current, self.acceptor.reached
        if not self.acceptor.has_stopped:
            return
        enough = reached.bit_count() >= max(self.epoch.reports_needed(current.size), current.settings.least)
        if not self.blocked and not (enough and is_quorum(reached, current.size)):
            self.blocked = self.coordinator.blocked = True
            out.append(Blocked(current.view.everybody & ~reached))
        self.acceptor.reached = 1 << current.place  # the next time, who was heard of since then
        self.asked += 1
        find = Find(self.group, current.me.name, current.me.number, self.asked)
        addresses = [current.view.members[place].address for place in members(current.others)]
        out.extend(SendOutside(find, address) for address in (*addresses, *self.contacts))
        self.installer.tell_late_members(out)
        current.set_timer("blocked", current.settings.blocked_repeat, out)

    def unblock(self, out: list[MemberOutput]) -> None:
        """It goes on, or is no member any more."""
        if self.blocked:
            self.blocked = False
            out.append(Unblocked())

    def receive_found(self, unit: Found, out: list[MemberOutput]) -> None:
        """An answer: the others have gone on without it, if their view is a later one."""
        me = self.current.me
        asked = (unit.group, unit.name, unit.incarnation) == (self.group, me.name, me.number)
        if not asked or not 0 < unit.nonce <= self.asked or not self.acceptor.has_stopped:
            out.append(Discard(unit, "stray"))
        elif unit.view > self.current.view.number and not unit.is_member:
            self.unblock(out)
            self.retirement.exclude_unknown(unit.view, len(unit.addresses), out)
