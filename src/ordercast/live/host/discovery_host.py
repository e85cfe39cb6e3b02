"""Discovery over a network: announcements go out and come in by multicast, and `session.discovery` decides.

The sockets become those of the group when it is found, and those who look for a group that was found already are still
answered. All the while the members of the group are asked whether it is running: then it is to be joined.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Sequence

from ordercast.live.host.running_group import GroupIsOpenError, RunningGroup
from ordercast.live.host.timers import Timers
from ordercast.live.session.discovery import Announce, AnnouncementReceived, Discovery, Found, Input, NotFound
from ordercast.live.session.events import Begin, SessionConfig
from ordercast.live.transport.addresses import Address, address_of, reachable, require_member_name
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.unit_addresses import has_addresses
from ordercast.live.why_not_open import describe_missing, describe_rejections
from ordercast.model.config import SECOND
from ordercast.model.errors import ConfigError, JoinError
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.protocols.membership import units as membership_units
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import Hello, HelloRejection
from ordercast.wire.datagram import HANDSHAKE, UNKNOWN, Rejection, pack_records, unpack_records
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal
from ordercast.wire.unit_validation import is_valid_outside

_ALL = "all"  # who listen at the multicast address are asked at once
_SETTLED = 0.15
"""Seconds that members of a running group have to answer, before those that are found open one."""
_GRACE = 2.0
"""Seconds that one for which there is no place among those that open the group waits for them to open it."""


class DiscoveryHost:
    """One process that looks for its group. Made and used inside one event loop."""

    def __init__(self, endpoint: Endpoint, seal: Seal, codec: Codec, discovery: Discovery) -> None:
        """`endpoint`: its multicast address is where all listen."""
        self._endpoint, self._seal, self._codec, self._discovery = endpoint, seal, codec, discovery
        self._tag = discovery.incarnation
        self._counter = 0
        self._timers = Timers(lambda name: self.handle(TimerFired(name)))
        self.dropped: Counter[str] = Counter()
        """Datagrams that were dropped, by reason."""
        self._loop = asyncio.get_running_loop()
        self._found: asyncio.Future[dict[str, str]] = self._loop.create_future()
        question = membership_units.Find(discovery.group, discovery.name, discovery.incarnation, 0)
        self._members: dict[str, str] | None = None  # once they are found
        self._running = RunningGroup(
            *(question, (), self._ask, self._found_running), others=[_ALL], settled=self._settled, within=_SETTLED
        )

    async def find(self) -> dict[str, str]:
        """The members with their addresses, in the order that all have.

        Raises `GroupIsOpenError` if the group is running, and `JoinError` if it is not found.
        """
        self._endpoint.start(self._receive, lambda: None, lambda: None)
        self.handle(Begin())
        self._running.begin()
        try:
            return await self._found
        except BaseException as error:
            self.stop()
            self._endpoint.close()
            is_plain = isinstance(error, JoinError) and not isinstance(error, GroupIsOpenError)
            hint = describe_rejections(self.dropped) if is_plain else ""
            if hint:
                raise JoinError(f"{error}; {hint}") from None
            raise
        finally:
            self._running.stop()

    def awaited(self) -> str:
        """What is missing, in words."""
        known, size = len(self._discovery.others) + 1, self._discovery.size
        return self._running.blocked or describe_missing(
            [f"{size - known} of {size} members"] if known < size else [], self.dropped
        )

    def receive(self, body: bytes) -> None:
        """The body of a datagram from a process that is not a member: it may look for a group, or know it."""
        records = unpack_records(body)
        for record in records if not isinstance(records, Rejection) else ():
            try:
                message = self._codec.decode(record)
            except Malformed:
                continue
            if isinstance(message, HelloRejection) or (isinstance(message, Hello) and _may_be_member(message)):
                self.handle(AnnouncementReceived(message))
            elif isinstance(message, Outside):
                self._receive_answer(message.unit, message.address)

    def _receive_answer(self, unit: membership_units.OutsideUnit, address: str) -> None:
        """A member of the running group may have answered."""
        if isinstance(unit, membership_units.Found) and is_valid_outside(unit) and has_addresses(unit):
            self._running.receive(unit, address)

    def stop(self) -> None:
        """Sends nothing any more."""
        self._timers.cancel_all()

    def handle(self, event: Input) -> None:
        """Gives the machine one input, and carries out what follows."""
        for output in self._discovery.handle(event):
            match output:
                case Announce(message=message):
                    self._send(message)
                case SetTimer():
                    self._timers.set(output)
                case CancelTimer():
                    self._timers.cancel(output)
                case Found(names=names, addresses=addresses):
                    self._members = dict(zip(names, addresses, strict=True))
                    if self._running.is_settled:
                        self._settled()
                case NotFound(why=why):
                    grace = _GRACE if self._discovery.rejected else 0
                    self._loop.call_later(grace, self._fail, JoinError(why))

    def _settled(self) -> None:
        """No running group has answered: the members that are found may open one."""
        if self._members is not None and not self._found.done():
            self._found.set_result(self._members)

    def _fail(self, error: JoinError) -> None:
        if not self._found.done():
            self._found.set_exception(error)

    def _found_running(self, contacts: Sequence[Address]) -> None:
        own = address_of(self._discovery.address)
        self._fail(GroupIsOpenError(self._discovery.name, own, contacts))

    def _receive(self, data: bytes | memoryview) -> None:
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self.dropped[datagram] += 1
        elif datagram.sender == UNKNOWN and datagram.flags & HANDSHAKE:
            self.receive(datagram.body)

    def _ask(self, unit: membership_units.OutsideUnit, address: str) -> None:
        del address
        self._send(Outside(self._discovery.address, unit))

    def _send(self, message: Hello | HelloRejection | Outside) -> None:
        counter, self._counter = self._counter, self._counter + 1
        body = pack_records([self._codec.encode(message)])
        self._endpoint.send_to_all(self._seal.seal(HANDSHAKE, UNKNOWN, self._tag, counter, body))


def new_discovery(group: str, name: str, address: Address, size: int, timeout: float) -> Discovery:
    """The machine of one incarnation of a process."""
    config = SessionConfig(handshake_timeout=int(timeout * SECOND))
    return Discovery(group, name, str(address), secrets.randbits(64) or 1, size, config)


def _may_be_member(hello: Hello) -> bool:
    try:
        require_member_name(hello.name)
        reachable(address_of(hello.address))
    except ConfigError:
        return False
    return True
