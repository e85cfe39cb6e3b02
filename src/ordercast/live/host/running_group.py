"""A group that is running already: how one that wants to open it finds out, and what it needs to be a member of it."""

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ordercast.live.host.parameters import Parameters
from ordercast.live.session.events import SessionConfig
from ordercast.live.session.handshake import Identity
from ordercast.live.session.machine import Session
from ordercast.live.transport.addresses import Address, address_of
from ordercast.model.config import MILLISECOND, SECOND
from ordercast.model.errors import JoinError
from ordercast.protocols.membership.units import Find, Found, OutsideUnit
from ordercast.protocols.membership.view import GroupView, MembershipConfig

_MIN_GATHER = 3 * MILLISECOND  # for others to become ready to join, too
_MIN_GRACE = 10 * MILLISECOND  # for a suspected member to answer after all
_FIRST, _LONGEST = 0.2, 1.0  # seconds between two questions


class GroupIsOpenError(JoinError):
    """The group that this process waits for is open already: it can be joined at these addresses."""

    def __init__(self, name: str, address: Address, contacts: Sequence[Address]) -> None:
        """`name`, `address`: of this process."""
        super().__init__("the group is open already")
        self.name, self.address, self.contacts = name, address, contacts


class RunningGroup:
    """Asks those that open a group with this process whether it is open without it, until it is open or `stop`.

    Then this process was a member before, or its place was given up. Who opens the group with it does not answer.
    """

    def __init__(
        self,
        question: Find,
        addresses: Sequence[str],
        send: Callable[[OutsideUnit, str], None],
        found: Callable[[Sequence[Address]], None],
    ) -> None:
        """`found`: is told the addresses of the members."""
        self._question, self._addresses, self._send, self._found = question, addresses, send, found
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_FIRST, self._ask)
        self.blocked = ""
        """Who is in it, if it cannot take anybody in, for a sentence."""

    def stop(self) -> None:
        """Asks no more."""
        self._timer.cancel()

    def receive(self, unit: Found) -> None:
        """An answer, or something else: it counts only if it names a question of ours."""
        ours = self._question
        asked = (unit.group, unit.name, unit.incarnation) == (ours.group, ours.name, ours.incarnation)
        if not asked or not 0 < unit.nonce <= ours.nonce or unit.is_member:
            return
        if unit.blocked:
            self.blocked = f"{unit.member.name}, which is in this group already and reaches too few of its members"
        else:
            self.stop()
            self._found([address_of(text) for text in unit.addresses])

    def _ask(self) -> None:
        self._question = replace(self._question, nonce=self._question.nonce + 1)
        for address in self._addresses:
            self._send(self._question, address)
        self._timer = self._loop.call_later(min(_FIRST * self._question.nonce, _LONGEST), self._ask)


def joined_session(name: str, node: int, view: GroupView, config: SessionConfig) -> Session:
    """The session of a member that joined an open group with this view."""
    return Session(
        node,
        (name,),
        Identity(incarnation=1),
        "",
        joined={each: person.name for person, each in zip(view.members, view.nodes, strict=True)},
        config=config,
    )


def membership_config(parameters: Parameters, round_trip: int | None) -> MembershipConfig:
    """The timing of the agreement on views. `round_trip`: as it was measured."""
    timeout, repeat = parameters.failure_timeout, min(50 * MILLISECOND, parameters.heartbeat)
    return MembershipConfig(
        repeat=repeat,
        failure_timeout=timeout,
        gather=min(repeat, max(_MIN_GATHER, parameters.round_trip, round_trip or 0)),
        guard=repeat,
        blocked_repeat=min(2 * SECOND, timeout),
        grace=max(_MIN_GRACE, 2 * parameters.round_trip, 2 * (round_trip or 0)),
        least=parameters.least_members,
        has_state=parameters.has_state or parameters.has_log,
    )
