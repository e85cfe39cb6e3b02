"""What a group of three sends beside its relay: statuses that need no place in its order.

By the relay a status takes two hops, and one datagram more. A status without a number may be received anywhere after
what its sender had received, and may be lost. So it goes to each member directly, and names a **position**: how much of
the relay's order its sender had received. Whoever receives it handles it when it has come as far.

That is no channel of another kind. What is handled so could have been put into the relay's order at that position: it
is behind all that its sender had received, and whatever its sender had sent before by the relay is among that, since
else the status goes by the relay, too. A member that handles it later has lost it there, and received a copy of it
later. One channel with losses and late copies is what the protocols are made for.

What waits is not waited for: if it is the relay's datagram that is lost, the next one shows it.
"""

from collections import deque
from collections.abc import Iterator
from struct import Struct

POSITION = Struct(">QQ")
"""In front of the records: the relay's incarnation, and the first of its counters that the sender had not received."""
_MOST = 64  # of them wait: what comes later says what they say, too

Status = tuple[int, bytes]
"""A place, and the records that it has sent."""


class EarlyStatuses:
    """Of one member: those that wait until it has come as far in the relay's order as who sent them."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, int, Status]] = deque(maxlen=_MOST)  # incarnation, position, what

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, incarnation: int, position: int, status: Status) -> None:
        """One that names a position that this member has not reached. Of too many the first are lost."""
        self._waiting.append((incarnation, position, status))

    def take(self, incarnation: int, position: int) -> Iterator[Status]:
        """Those that need wait no more, as they came."""
        waiting, self._waiting = self._waiting, deque(maxlen=_MOST)
        for named, place, status in waiting:
            if named == incarnation and place <= position:
                yield status
            elif named >= incarnation:  # what names an earlier relay is of no use any more
                self._waiting.append((named, place, status))


class OnTheWay:
    """What a member has sent to the relay, and has not received back in its order."""

    def __init__(self, most: int, most_bytes: int) -> None:
        """How many datagrams are kept, and how many bytes of their records; of more the first count as lost."""
        self._most, self._most_bytes = most, most_bytes
        self._kept: deque[tuple[int, bytes]] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, number: int, records: bytes) -> None:
        """Sent in the datagram with this number."""
        self._kept.append((number, records))
        self._bytes += len(records)
        while self._bytes > self._most_bytes or len(self._kept) > self._most:
            self._forget_first()

    def back(self, number: int) -> bytes | None:
        """The one with this number is back; None: it was not on the way. What was sent before it is lost, or back."""
        kept = self._kept
        while kept and kept[0][0] < number:
            self._forget_first()
        return self._forget_first() if kept and kept[0][0] == number else None

    def came_back(self, records: bytes | memoryview) -> None:
        """The same for one that came back as it was sent."""
        for number, sent in self._kept:
            if sent == records:
                self.back(number)
                return

    def _forget_first(self) -> bytes:
        _, records = self._kept.popleft()
        self._bytes -= len(records)
        return records
