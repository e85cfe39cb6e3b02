"""How a member returns: the others continued without it, and it lives.

It joins again as a new incarnation, over the same sockets. The first time it does so at once; one that is excluded
again and again waits longer each time, so that a link that works now and then does not keep the group busy. Nobody
waits whom the others need: a view of two is lost with its older member, and one alone with its only one.
"""

import asyncio
import secrets
from collections.abc import Callable, Sequence

from ordercast.live.durability import DurableWaiters
from ordercast.live.host.batching import Outbox
from ordercast.live.host.host import Host
from ordercast.live.host.joiner_host import JoinerHost
from ordercast.model.errors import Undelivered
from ordercast.model.machine import Level
from ordercast.protocols.membership.applicants import Terms
from ordercast.protocols.membership.joiner import Joiner
from ordercast.protocols.membership.units import Found, OutsideUnit, Welcome
from ordercast.protocols.membership.view import Incarnation, MembershipConfig

REMEMBERED = 600.0
"""Seconds for which an exclusion counts."""
_MAX_DOUBLINGS = 5
_ENOUGH = 3
"""Members of a view that survives the crash of any one of them."""
WITHDRAWN = 1.0
"""Seconds for which one that was about to join, and ends, still hears whether it was taken in."""


class Exclusions:
    """When this member was excluded."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def delay(self, now: float, failure_timeout: float, remaining: int) -> float:
        """It is excluded now: seconds after which it returns. `remaining`: members of the view without it."""
        self._times = [then for then in self._times if then > now - REMEMBERED]
        before = len(self._times)
        self._times.append(now)
        if not before or remaining < _ENOUGH:
            return 0.0
        return failure_timeout * (1 << min(before, _MAX_DOUBLINGS))


def settle(host: Host, outbox: Outbox, end: int | None, undurable: list[DurableWaiters]) -> tuple[int, int]:
    """After an exclusion: how many own messages the others were delivered, and how many are sent again.

    `end`: own packets of the last view were delivered below it; None: nobody knows. `undurable`: is given those who
    wait until what was delivered is on the disks of a majority.
    """
    settled = host.settle(end)
    for batch in settled.delivered:
        batch.reached(Level.KNOWN_STABLE)
        if batch.durable is not None:
            undurable.append(batch.durable)
    for batch in settled.unknown:
        batch.give_up(Undelivered("the group continued without this member, and nobody knows whether it was delivered"))
    outbox.put_back(settled.not_delivered)
    return sum(batch.messages for batch in settled.delivered), outbox.messages()


class Returning:
    """One attempt to return, until it has returned, is refused, or is stopped."""

    def __init__(  # noqa: PLR0913 (what a joiner needs)
        self,
        *,
        name: str,
        address: str,
        group: str,
        contacts: Sequence[str],
        old: int,
        terms: Terms,
        settings: MembershipConfig,
        send: Callable[[OutsideUnit, str], None],
        returned: Callable[[Incarnation, Welcome, Terms], None],
        refused: Callable[[str], None],
        has_log: bool = False,
    ) -> None:
        """`old`: the node that it was. `has_log`: the others may have begun anew, with other numbers of nodes."""
        self._terms, self._found = terms, terms
        self._me = Incarnation(name, secrets.randbits(64) or 1, address)
        self._returned, self._refused = returned, refused
        self._again: Callable[[], JoinerHost] | None = None  # with those that have begun anew

        def new_host(terms: Terms | None, old: int | None) -> JoinerHost:
            nonce = secrets.randbits(62)
            joiner = Joiner(self._me, group, tuple(contacts), nonce, settings, terms=terms, old=old)
            return JoinerHost(joiner, send, self)

        self._host = new_host(terms, old)
        if has_log:
            self._again = lambda: new_host(None, None)
        self._waiting: asyncio.TimerHandle | None = None
        self._begun = False

    def begin(self, after: float) -> None:
        """After so many seconds."""
        self._waiting = asyncio.get_running_loop().call_later(after, self._begin)

    def _begin(self) -> None:
        self._begun = True
        self._host.begin()

    def receive(self, unit: OutsideUnit, address: str) -> None:
        """A valid unit arrived from one that may be a member."""
        if self._begun:
            self._host.receive(unit, address)

    def withdraw(self) -> bool:
        """It does not want to return any more; True if it may be taken in all the same: then it is told of that."""
        if self._waiting is not None:
            self._waiting.cancel()
        return self._host.withdraw()

    def stop(self) -> None:
        """It does not return."""
        self._host.stop()
        if self._waiting is not None:
            self._waiting.cancel()

    # --- what becomes of it (joiner_host.JoinerOwner) ---

    def found_group(self, found: Found) -> None:
        """It knows the group; one that began anew has the same terms, but for the session."""
        self._found = found.terms

    def joined_group(self, welcome: Welcome) -> None:
        """It is a member again."""
        self._returned(self._me, welcome, self._found)

    def refused_by_group(self, why: str) -> None:
        """It cannot return, unless the group has begun anew, from its logs."""
        if self._again is not None and self._found != self._terms:
            self._host, self._again = self._again(), None
            self._host.begin()
        else:
            self._refused(why)
