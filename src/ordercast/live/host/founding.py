"""How a founder begins: it looks whether the group is running already, and opens it with the others if it is not."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ordercast.live.host.founders import Founders
from ordercast.live.host.group_terms import GroupTerms
from ordercast.live.host.member_addresses import MemberAddresses
from ordercast.live.host.running_group import GroupIsOpenError, RunningGroup
from ordercast.live.host.session_host import SessionHost
from ordercast.live.logs import GroupLogs
from ordercast.live.session import events
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND
from ordercast.model.errors import JoinError
from ordercast.protocols.membership.units import Find, Found

if TYPE_CHECKING:
    from ordercast.live.host.ending import MemberEnding


class FoundingOwner(Protocol):
    """The member."""

    name: str
    address: Address
    addresses: MemberAddresses
    group: str
    transport: Transport
    session: SessionHost
    opened: "asyncio.Future[None]"
    ending: "MemberEnding"

    def answer_outside(self, question: Find, address: str) -> None:
        """Answers one that asks for the group from this address."""


class Founding:
    """What one member knows of those that opened the group. Used inside one event loop."""

    def __init__(self, owner: FoundingOwner, founders: Sequence[tuple[str, Address]], logs: GroupLogs) -> None:
        """`founders`: those that open the group, if this member is one of them."""
        self._owner, self._logs, self._loop = owner, logs, asyncio.get_running_loop()
        self.members = tuple(founders)
        """Names and addresses of those that open the group with this member."""
        self.founders = Founders(owner.address, owner.group, owner.answer_outside)
        self.founders.know([str(address) for _, address in founders])
        self.running: RunningGroup | None = None
        """While this member waits for others to open the group: looks whether it is running already."""
        self._knows_other = False  # another group of this name
        self._deadline: asyncio.TimerHandle | None = None

    def begin(self, incarnation: int, others: Sequence[Address], within: float) -> None:
        """Begins the handshake, after the others had so many seconds to say that the group is running."""
        owner = self._owner
        if not self.members:
            return
        founders = [str(address) for name, address in self.members if name != owner.name]
        self.running = RunningGroup(
            *(Find(owner.group, owner.name, incarnation, 0), founders, owner.transport.send_outside),
            self._found_running,
            others=[str(address) for address in others if address != owner.address],
            settled=lambda: owner.session.handle(events.Begin()),
            within=within,
        )
        self.running.begin()
        if not self.running.is_settled:
            seconds = owner.session.machine.config.handshake_timeout / SECOND
            self._deadline = self._loop.call_later(seconds, self._not_settled)

    def moved(self, found: Mapping[str, Address]) -> None:
        """The names of these members stand for these addresses now. In an open group they are where it may be found."""
        members = tuple((name, found.get(name, known)) for name, known in self.members)
        if members == self.members:
            return
        owner, addresses = self._owner, [address for _, address in members]
        is_open = owner.opened.done()
        self._logs.membership.info("members have other addresses now: %s", ", ".join(map(str, addresses)))
        owner.addresses.moved(addresses, is_open=is_open)
        self.founders.know(list(map(str, addresses)))
        if not is_open:
            owner.transport.moved(addresses)
            if self.running is not None:
                self.running.know([str(address) for name, address in members if name != owner.name])
        self.members = members  # last: what could not be taken is told again

    def _not_settled(self) -> None:
        """A member of the group has answered that it is blocked, and did so until now."""
        if self.running is not None and not self.running.is_settled and not self._owner.opened.done():
            self._owner.ending.end(JoinError("the group did not open"))
            self._owner.ending.disconnect()

    def _found_running(self, contacts: Sequence[Address]) -> None:
        """The group that this member wants to open is running, without it."""
        owner = self._owner
        if not owner.opened.done():
            owner.session.stop()
            owner.ending.why = GroupIsOpenError(owner.name, owner.address, contacts)
            owner.opened.set_exception(owner.ending.why)

    def told_of_group(self, unit: Found, terms: GroupTerms) -> None:
        """A member of a group of this name says, unasked, that it is running: it should be this one."""
        if unit.is_founder and not terms.are_of(unit.terms) and not self._knows_other:
            self._knows_other = True
            self._logs.membership.error(
                "two groups of the name %s are running: %s of the other one, in which %s was before, is at %s; "
                "end one of them, and start its members with contacts=",
                *(self._owner.group, unit.member.name, self._owner.name, unit.addresses[unit.place]),
                extra={"peer": unit.member.name},
            )

    def stop_asking(self) -> None:
        """The group is open, or over."""
        if self.running is not None:
            self.running.stop()
        if self._deadline is not None:
            self._deadline.cancel()
