"""A group that is running already: how one that wants to open it finds out, and what it needs to be a member of it."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

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

_MIN_GATHER = 1 * MILLISECOND  # for others to become ready to join, too
_MIN_GRACE = 10 * MILLISECOND  # for a suspected member to answer after all
_FIRST, _LONGEST, _UNSETTLED = 0.2, 1.0, 0.05  # seconds between two questions
_MAX_HEARD = 8


class GroupIsOpenError(JoinError):
    """The group that this process waits for is open already: it can be joined at these addresses."""

    def __init__(self, name: str, address: Address, contacts: Sequence[Address]) -> None:
        """`name`, `address`: of this process."""
        super().__init__("the group is open already")
        self.name, self.address, self.contacts = name, address, contacts


class RunningGroup:
    """Asks whether a group is open already, while this process waits to open it with others, until it is or `stop`.

    Then this process was a member before, or its place was given up. Who opens the group with it does not answer; but
    members that joined later may be all that is left. So those that may be such are asked first, and `settled` is
    called when they have answered, or had time to do so: before that, the group must not be opened anew.
    """

    def __init__(  # noqa: PLR0913
        self,
        question: Find,
        founders: Sequence[str],
        send: Callable[[OutsideUnit, str], None],
        found: Callable[[Sequence[Address]], None],
        *,
        others: Sequence[str] = (),
        settled: Callable[[], None] = lambda: None,
        within: float = 0.0,
    ) -> None:
        """`found`: is told the addresses of the members.

        `founders`: addresses of those with which the group is opened; empty if they are not known, and then any group
        of its name counts. `others`: where members may be; they have so many seconds to answer.
        """
        self._question, self._founders, self._others = question, tuple(founders), tuple(others)
        self._send, self._found, self._settled = send, found, settled
        self._within = within
        self._silent = set(others)  # those of them that have not answered
        self._heard: deque[str] = deque(maxlen=_MAX_HEARD)  # who said, unasked, that the group is running
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None  # of the others
        self._is_over = False
        self.is_settled = False
        """The group may be opened."""
        self.blocked = ""
        """Who is in it, if it cannot take anybody in, for a sentence."""

    def know(self, founders: Sequence[str]) -> None:
        """These are the addresses of those with which the group is opened now."""
        self._founders = tuple(founders)

    def begin(self) -> None:
        """Asks."""
        if self._others:
            self._deadline = self._loop.call_later(self._within, self._settle)
            self._ask(self._others)
        else:
            self._settle()
        self._ask_later()

    def stop(self) -> None:
        """Asks no more."""
        self._is_over = True
        for timer in (self._timer, self._deadline):
            if timer is not None:
                timer.cancel()

    def receive(self, unit: Found, address: str) -> None:
        """An answer, or something else: it counts only if it names a question of ours."""
        ours = self._question
        asked = (unit.group, unit.name, unit.incarnation) == (ours.group, ours.name, ours.incarnation)
        if self._is_over or unit.group != ours.group or unit.is_member:
            return
        if not asked or not 0 < unit.nonce <= ours.nonce:
            self._hear(address)
        elif self._founders and not unit.is_founder and address not in self._founders:
            self._answered(address)  # another group of this name
        elif unit.blocked:
            self.blocked = f"{unit.member.name}, which is in this group already and reaches too few of its members"
        else:
            self.stop()
            self._found([address_of(text) for text in unit.addresses])

    def _hear(self, address: str) -> None:
        """One says, unasked, that it is a member: it may be a replay, so it is asked."""
        if address not in self._heard:
            self._heard.append(address)
            self._ask([address])

    def _answered(self, address: str) -> None:
        self._silent.discard(address)
        if not self._silent:
            self._settle()

    def _settle(self) -> None:
        """Not while a group is known that will go on when enough of its members are there again."""
        if not self.is_settled and not self._is_over and not self.blocked:
            self.is_settled = True
            self._settled()

    def _ask(self, addresses: Iterable[str]) -> None:
        self._question = replace(self._question, nonce=self._question.nonce + 1)
        for address in addresses:
            self._send(self._question, address)

    def _ask_later(self) -> None:
        wait = min(_FIRST * max(self._question.nonce, 1), _LONGEST) if self.is_settled else _UNSETTLED
        self._timer = self._loop.call_later(wait, self._ask_again)

    def _ask_again(self) -> None:
        self._ask(dict.fromkeys((*self._founders, *self._others, *self._heard)))
        self._ask_later()


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
