"""Finding the members of a group by multicast, over a network: hellos go out, hellos come in, `discovery` decides.

What was used to find each other is used on: the sockets become those of the group, and who looks for a group that was
found is still answered.
"""

import asyncio
import secrets
from collections import Counter

from ordercast.live.session.discovery import (
    Announce,
    AnnouncementReceived,
    Begin,
    Discovery,
    Found,
    Input,
    NotFound,
    TimerFired,
)
from ordercast.live.session.events import SessionConfig
from ordercast.live.transport.addresses import Address, address_of, reachable, require_member_name
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.waiting import describe_missing, describe_rejections
from ordercast.model.config import SECOND
from ordercast.model.errors import ConfigError, JoinError
from ordercast.model.machine import CancelTimer, SetTimer
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import Hello, HelloRejection
from ordercast.wire.datagram import OPENING, UNKNOWN, Rejection, pack_records, unpack_records
from ordercast.wire.sealing import Seal


class DiscoveryHost:
    """One process that looks for its group; made inside an event loop."""

    def __init__(self, endpoint: Endpoint, seal: Seal, codec: Codec, discovery: Discovery) -> None:
        """`endpoint`: its multicast address is where all listen."""
        self._endpoint, self._seal, self._codec, self._discovery = endpoint, seal, codec, discovery
        self._tag = discovery.incarnation
        self._counter = 0
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.dropped: Counter[str] = Counter()
        """Datagrams that were not understood, by reason."""
        self._found: asyncio.Future[dict[str, str]] = self._loop.create_future()

    async def find(self) -> dict[str, str]:
        """The members with their addresses, in the order that all have; raises `JoinError` if they do not come."""
        self._endpoint.start(self._receive, lambda: None)
        self._tell(Begin())
        try:
            return await self._found
        except BaseException as error:
            self.end()
            self._endpoint.close()
            hint = describe_rejections(self.dropped) if isinstance(error, JoinError) else ""
            if hint:
                raise JoinError(f"{error}; {hint}") from None
            raise

    def awaited(self) -> str:
        """For whom we wait."""
        known, size = len(self._discovery.others) + 1, self._discovery.size
        return describe_missing([f"{size - known} of {size} members"] if known < size else [], self.dropped)

    def hear(self, body: bytes) -> None:
        """Somebody who is no member says something: it may look for a group."""
        records = unpack_records(body)
        for record in records if not isinstance(records, Rejection) else ():
            try:
                said = self._codec.decode(record)
            except Malformed:
                continue
            if isinstance(said, HelloRejection) or (isinstance(said, Hello) and _may_be_member(said)):
                self._tell(AnnouncementReceived(said))

    def end(self) -> None:
        """Says nothing any more."""
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()

    def _receive(self, datagram: bytes | memoryview) -> None:
        said = self._seal.open(datagram)
        if isinstance(said, Rejection):
            self.dropped[said] += 1
        elif said.sender == UNKNOWN and said.flags & OPENING:
            self.hear(said.body)

    def _tell(self, event: Input) -> None:
        for output in self._discovery.handle(event):
            match output:
                case Announce(message=message):
                    self._say(message)
                case SetTimer(name=name, after=after):
                    self._cancel(name)
                    self._timers[name] = self._loop.call_later(after / SECOND, self._fire, name)
                case CancelTimer(name=name):
                    self._cancel(name)
                case Found(names=names, addresses=addresses):
                    if not self._found.done():
                        self._found.set_result(dict(zip(names, addresses, strict=True)))
                case NotFound(why=why):
                    if not self._found.done():
                        self._found.set_exception(JoinError(why))

    def _say(self, message: Hello | HelloRejection) -> None:
        counter, self._counter = self._counter, self._counter + 1
        body = pack_records([self._codec.encode(message)])
        self._endpoint.send_to_all(self._seal.seal(OPENING, UNKNOWN, self._tag, counter, body))

    def _cancel(self, name: str) -> None:
        handle = self._timers.pop(name, None)
        if handle is not None:
            handle.cancel()

    def _fire(self, name: str) -> None:
        del self._timers[name]
        self._tell(TimerFired(name))


def new_discovery(group: str, name: str, address: Address, size: int, timeout: float) -> Discovery:
    """The machine of one life of a process."""
    config = SessionConfig(opening=int(timeout * SECOND))
    return Discovery(group, name, str(address), secrets.randbits(64) or 1, size, config)


def _may_be_member(hello: Hello) -> bool:
    try:
        require_member_name(hello.name)
        reachable(address_of(hello.address))
    except ConfigError:
        return False
    return True
