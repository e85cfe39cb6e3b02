"""Discovery over a network: announcements go out and come in by multicast, and `session.discovery` decides.

The sockets become those of the group when it is found, and those who look for a group that was found already are still
answered.
"""

import asyncio
import secrets
from collections import Counter

from ordercast.live.host.timers import Timers
from ordercast.live.session.discovery import Announce, AnnouncementReceived, Discovery, Found, Input, NotFound
from ordercast.live.session.events import Begin, SessionConfig
from ordercast.live.transport.addresses import Address, address_of, reachable, require_member_name
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.waiting import describe_missing, describe_rejections
from ordercast.model.config import SECOND
from ordercast.model.errors import ConfigError, JoinError
from ordercast.model.machine import CancelTimer, SetTimer, TimerFired
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import Hello, HelloRejection
from ordercast.wire.datagram import HANDSHAKE, UNKNOWN, Rejection, pack_records, unpack_records
from ordercast.wire.seal import Seal


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
        self._found: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def find(self) -> dict[str, str]:
        """The members with their addresses, in the order that all have; raises `JoinError` if they are not found."""
        self._endpoint.start(self._receive, lambda: None, lambda: None)
        self.handle(Begin())
        try:
            return await self._found
        except BaseException as error:
            self.stop()
            self._endpoint.close()
            hint = describe_rejections(self.dropped) if isinstance(error, JoinError) else ""
            if hint:
                raise JoinError(f"{error}; {hint}") from None
            raise

    def awaited(self) -> str:
        """What is missing, in words."""
        known, size = len(self._discovery.others) + 1, self._discovery.size
        return describe_missing([f"{size - known} of {size} members"] if known < size else [], self.dropped)

    def receive(self, body: bytes) -> None:
        """The body of a datagram from a process that is not a member: it may look for a group."""
        records = unpack_records(body)
        for record in records if not isinstance(records, Rejection) else ():
            try:
                message = self._codec.decode(record)
            except Malformed:
                continue
            if isinstance(message, HelloRejection) or (isinstance(message, Hello) and _may_be_member(message)):
                self.handle(AnnouncementReceived(message))

    def stop(self) -> None:
        """Sends nothing any more."""
        self._timers.cancel_all()

    def handle(self, event: Input) -> None:
        """Gives the machine one input, and carries out what follows."""
        for output in self._discovery.handle(event):
            match output:
                case Announce(message=message):
                    self._announce(message)
                case SetTimer():
                    self._timers.set(output)
                case CancelTimer():
                    self._timers.cancel(output)
                case Found(names=names, addresses=addresses):
                    if not self._found.done():
                        self._found.set_result(dict(zip(names, addresses, strict=True)))
                case NotFound(why=why):
                    if not self._found.done():
                        self._found.set_exception(JoinError(why))

    def _receive(self, data: bytes | memoryview) -> None:
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self.dropped[datagram] += 1
        elif datagram.sender == UNKNOWN and datagram.flags & HANDSHAKE:
            self.receive(datagram.body)

    def _announce(self, message: Hello | HelloRejection) -> None:
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
