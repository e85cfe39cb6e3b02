"""What a relay passes on together: acknowledgments of many members in one datagram.

Nothing follows from an acknowledgment before those of all members are there. So the relay holds acknowledgments
without data until every member has sent one, or for a while; then all of them go to each member in one datagram: two
datagrams for each member and round instead of one for each pair of members. Data are never held, and take along what
is: so everything is passed on in the order in which it came.
"""

import asyncio
import zlib
from collections.abc import Callable
from struct import Struct

from ordercast.model.config import SECOND
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

GATHERED = 0xFFFD
"""As the origin of what a relay passes on: it is of several members, each part behind its origin and length."""
COMPRESSED = 0xFFFC
"""The same, compressed."""
_PART = Struct(">HH")
_COMPRESSED_FROM = 256  # bytes; with less it saves nothing that matters
_FAST = 1  # of zlib's levels
_MAX_GATHERED = 32_000  # bytes that wait; more go at once, since a lost datagram loses all of them

Parts = list[tuple[int, bytes | memoryview]]
"""Origins and their records, in the order in which they came."""


class Gathering:
    """What waits at one relay. Used inside one event loop."""

    def __init__(self, members: int, hold: int, send: Callable[[Parts, bool, int | None], None]) -> None:
        """`hold`: nanoseconds that something waits at most; `send`: passes on, in one datagram if it fits.

        It is told whether there are only acknowledgments, and the number of the last part.
        """
        self._everybody, self._hold, self._send = (1 << members) - 1, hold / SECOND, send
        self.pace = 1.0
        """Waiting times are multiplied by it."""
        self._waiting: Parts = []
        self._size = 0
        self._spoke = 0  # members whose acknowledgments wait, or went with data
        self.timer: asyncio.TimerHandle | None = None

    def add(self, origin: int, records: bytes | memoryview, *, waits: bool, number: int | None = None) -> None:
        """Something to be passed on; `waits`: it may wait for the others; `number`: see `Relay.pass_on`."""
        self._waiting.append((origin, bytes(records) if waits else records))
        self._size += len(records) + _PART.size
        if not waits:
            self.release(with_data=True, number=number)
            return
        self.spoke(origin)
        if self._waiting and self._size > _MAX_GATHERED:
            self.release()
        elif self._waiting and self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(self._hold * self.pace, self.release)

    def spoke(self, member: int) -> None:
        """A member's acknowledgment is known to all: nobody need wait for another one."""
        self._spoke |= 1 << member
        if self._spoke & self._everybody == self._everybody:
            self.release()

    def release(self, *, with_data: bool = False, number: int | None = None) -> None:
        """Passes on all that waits."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        waiting, self._waiting, self._size, self._spoke = self._waiting, [], 0, 0
        if waiting:
            self._send(waiting, not with_data, number)

    def close(self) -> None:
        """Passes on nothing any more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self._waiting, self._size, self._spoke = [], 0, 0


def joined(parts: Parts) -> bytes:
    """Several parts as one body."""
    pieces: list[bytes | memoryview] = []
    for origin, records in parts:
        pieces += (_PART.pack(origin, len(records)), records)
    return b"".join(pieces)


def compressed(body: bytes) -> bytes | None:
    """Such a body, compressed; None: that would gain nothing."""
    if len(body) < _COMPRESSED_FROM:
        return None
    smaller = zlib.compress(body, _FAST)
    return smaller if len(smaller) < len(body) else None


def decompressed(body: memoryview) -> memoryview | None:
    """The opposite; None if it is none, or longer than any datagram."""
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(body, MAX_DATAGRAM_SIZE)
    except zlib.error:
        return None
    return memoryview(found) if reader.eof and not reader.unused_data else None


def separated(body: memoryview) -> Parts | None:
    """The parts of such a body; None if it is none."""
    parts: Parts = []
    at, end = 0, len(body)
    while at < end:
        if at + _PART.size > end:
            return None
        origin, length = _PART.unpack_from(body, at)
        at += _PART.size
        if not length or at + length > end:
            return None
        parts.append((origin, body[at : at + length]))
        at += length
    return parts
