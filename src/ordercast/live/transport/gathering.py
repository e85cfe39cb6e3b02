"""What a relay passes on together: acknowledgments of many members in one datagram.

Nothing follows from an acknowledgment before those of all members are there. So the relay holds acknowledgments
without data until every member has sent one, or for a while; then all of them go to each member in one datagram: two
datagrams for each member and round instead of one for each pair of members. Data are never held, and take along what
is: so everything is passed on in the order in which it came.
"""

import asyncio
from collections.abc import Callable
from struct import Struct

from ordercast.model.config import SECOND

GATHERED = 0xFFFD
"""As the origin of what a relay passes on: it is of several members, each part behind its origin and length."""
_PART = Struct(">HH")
_MAX_GATHERED = 16_384  # bytes that wait; more go at once, since a lost datagram loses all of them

Parts = list[tuple[int, bytes | memoryview]]
"""Origins and their records, in the order in which they came."""


class Gathering:
    """What waits at one relay. Used inside one event loop."""

    def __init__(self, members: int, hold: int, send: Callable[[Parts], None]) -> None:
        """`hold`: nanoseconds that something waits at most; `send`: passes on, in one datagram if it fits."""
        self._everybody, self._hold, self._send = (1 << members) - 1, hold / SECOND, send
        self._waiting: Parts = []
        self._size = 0
        self._spoke = 0  # members whose acknowledgments wait, or went with data
        self._timer: asyncio.TimerHandle | None = None

    def add(self, origin: int, records: bytes | memoryview, *, waits: bool) -> None:
        """Something to be passed on; `waits`: it may wait for the others."""
        self._waiting.append((origin, bytes(records) if waits else records))
        self._size += len(records) + _PART.size
        if not waits:
            self.release()
            return
        self.spoke(origin)
        if self._waiting and self._size > _MAX_GATHERED:
            self.release()
        elif self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._hold, self.release)

    def spoke(self, member: int) -> None:
        """A member's acknowledgment is known to all: nobody need wait for another one."""
        self._spoke |= 1 << member
        if self._spoke & self._everybody == self._everybody:
            self.release()

    def release(self) -> None:
        """Passes on all that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting, self._size, self._spoke = self._waiting, [], 0, 0
        if waiting:
            self._send(waiting)

    def close(self) -> None:
        """Passes on nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting, self._size, self._spoke = [], 0, 0


def joined(parts: Parts) -> bytes:
    """Several parts as one body."""
    pieces: list[bytes | memoryview] = []
    for origin, records in parts:
        pieces += (_PART.pack(origin, len(records)), records)
    return b"".join(pieces)


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
