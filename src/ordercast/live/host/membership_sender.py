"""Sends units of membership; with a log, when what they say is on the disk.

What a member has promised or accepted must survive it, and what lets others enter a view is said when this member has
entered it for good. One that has left with that view, or was excluded, never enters it: it says so when what it has
accepted is on the disk.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ordercast.live.host.host_owner import HostOwner
from ordercast.live.transport.transport import Transport
from ordercast.protocols.membership.events import SendControl, SendOutside
from ordercast.protocols.membership.machine import MembershipMachine, Phase
from ordercast.protocols.membership.units import Accepted, Found, Install, Propose, Report, Welcome

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog

_DURABLE = {Report, Accepted, Propose, Install}
"""Units that say what a member has promised or accepted, or what is decided: with a log, it is on the disk before."""
MAX_TOLD = 128
"""Members that departed last, which one that joins is told: a datagram has to carry them."""


class MembershipSender:
    """Of one member."""

    def __init__(
        self, member: MembershipMachine, transport: Transport, owner: HostOwner, log: "MemberLog | None"
    ) -> None:
        self._member, self._transport, self._owner, self._log = member, transport, owner, log

    def send_outside(self, output: SendOutside) -> None:
        """To one that is not in the group."""
        unit = output.unit
        if type(unit) is Welcome:
            welcome = replace(self._owner.welcome(unit), departed=unit.departed[-MAX_TOLD:])
            self._when_entered(welcome.view.number, lambda: self._transport.send_outside(welcome, output.address))
            return
        if type(unit) is Found:
            unit = self._owner.found(unit, output.address)
        self._transport.send_outside(unit, output.address)

    def send_control(self, output: SendControl) -> None:
        """To other members."""

        def send() -> None:
            self._transport.send_membership(output.unit, output.to, output.view)

        member = self._member
        if self._log is None or type(output.unit) not in _DURABLE:
            send()
        elif output.view < member.current.view.number or (
            type(output.unit) is Install and member.phase is Phase.MEMBER
        ):
            self._log.say_when_entered(output.view + 1, send)
        else:
            self._log.promise(output.view, member.acceptor.promised, member.acceptor.accepted, send)

    def _when_entered(self, view: int, send: Callable[[], None]) -> None:
        if self._log is None:
            send()
        else:
            self._log.say_when_entered(view, send)
