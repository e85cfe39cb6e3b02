"""The receiving half of a link: pieces in any order become datagrams in the order in which they were sent.

Pieces are not authenticated. Whoever forges a member's address can spoil datagrams, which is a loss like any other; but
the stream goes on: pieces that contradict each other end their datagram, and it is handed over empty.
"""

from ordercast.live.transport.pieces import Heading, add_range
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

MAX_RANGES = 32
"""Ranges of numbers that an acknowledgment names: the latest."""
MAX_AHEAD = 1 << 14
"""Datagrams that may be ahead of the next one: what is beyond is not ours."""
MAX_NUMBERS_AHEAD = 1 << 20
"""Transmissions that may be ahead of the latest that arrived, likewise."""
MAX_HELD_BYTES = 64 << 20
"""Bytes of pieces that wait for others, of one link."""
ACKNOWLEDGE_AFTER = 24
"""Pieces after which an acknowledgment does not wait any more."""


class _Incoming:
    """A datagram of which pieces arrived."""

    __slots__ = ("missing", "pieces", "size")

    def __init__(self, count: int) -> None:
        self.pieces: list[bytes | None] = [None] * count
        self.missing, self.size = count, 0


class LinkReceiver:
    """From one member, in one view."""

    def __init__(self) -> None:
        self._next = 0  # the datagram that is handed over next
        self._held: dict[int, _Incoming] = {}
        self._held_bytes = 0
        self._ranges: list[list[int]] = []  # numbers that arrived
        self._latest, self._latest_at = -1, 0.0
        self.unacknowledged = 0
        """Pieces that arrived since the last acknowledgment."""
        self.since = 0.0
        """When the first of them arrived."""
        self.is_urgent = False
        """Something is missing, which the sender should hear at once."""
        self.said_closed = False
        """The last acknowledgment said that there is no room."""

    def take(self, number: int, datagram: int, index: int, count: int, piece: memoryview, now: float) -> list[bytes]:
        """The datagrams that are complete with this piece, in their order."""
        ahead = datagram - self._next  # negative: it was handed over
        if not self._is_possible(number, ahead):
            return []
        if number == self._latest + 1 and self._ranges:  # as most are
            if not self.unacknowledged:
                self.since = now
            self.unacknowledged += 1
            self._latest, self._latest_at = number, now
            self._ranges[-1][1] = number
        else:
            self._note(number, now)
        if ahead < 0:
            return []
        if count == 1 and not ahead:
            self._next += 1
            return [bytes(piece), *self._following()] if self._held else [bytes(piece)]
        complete = self._hold(datagram, index, count, piece)
        return self._following() if complete and not ahead else []

    def take_train(self, heading: Heading, pieces: list[memoryview], now: float) -> list[bytes]:
        """The same for pieces of one datagram whose numbers follow each other, from this heading on."""
        _, _, number, datagram, index, count = heading
        if number == self._latest + 1 and self._ranges and index + len(pieces) <= count:
            ahead = datagram - self._next
            if not self._is_possible(number, ahead):
                return []
            if not self.unacknowledged:
                self.since = now
            self.unacknowledged += len(pieces)
            self._latest, self._latest_at = number + len(pieces) - 1, now
            self._ranges[-1][1] = self._latest
            if ahead < 0:
                return []
            if len(pieces) == count and not ahead and datagram not in self._held:
                self._next += 1
                return [b"".join(pieces), *self._following()] if self._held else [b"".join(pieces)]
            complete = [self._hold(datagram, at, count, piece) for at, piece in enumerate(pieces, index)]
            return self._following() if complete[-1] and not ahead else []
        found: list[bytes] = []
        for at, piece in enumerate(pieces):
            found += self.take(number + at, datagram, index + at, count, piece, now)
        return found

    def _is_possible(self, number: int, ahead: int) -> bool:
        """Whether a member may have sent this; what needs more memory than there is counts as lost."""
        if ahead > 0 and (ahead > MAX_AHEAD or self._held_bytes > MAX_HELD_BYTES):
            return False
        return number <= self._latest + MAX_NUMBERS_AHEAD or not self._ranges

    def _hold(self, datagram: int, index: int, count: int, piece: memoryview) -> bool:
        """Keeps a piece until all of its datagram are there: True if that is so."""
        held = self._held.get(datagram)
        if held is None:
            held = self._held[datagram] = _Incoming(count)
        if len(held.pieces) != count or held.size > MAX_DATAGRAM_SIZE:  # some were forged
            self._held_bytes -= held.size
            held.pieces, held.missing, held.size = [], 0, 0
        elif held.pieces[index] is None:
            held.pieces[index] = bytes(piece)
            held.missing -= 1
            held.size += len(piece)
            self._held_bytes += len(piece)
        return not held.missing

    def acknowledgment(self, now: float) -> tuple[tuple[int, ...], int, int]:
        """The numbers that arrived, as ranges (first, last, first, last, …), and µs since the latest of them.

        And the datagram that is handed over next.
        """
        self.unacknowledged, self.is_urgent = 0, False
        ranges = tuple([number for pair in self._ranges for number in pair])
        return ranges, max(0, int((now - self._latest_at) * 1e6)), self._next

    @property
    def heard(self) -> bool:
        """Anything arrived."""
        return bool(self._ranges)

    def _note(self, number: int, now: float) -> None:
        if not self.unacknowledged:
            self.since = now
        self.unacknowledged += 1
        if number != self._latest + 1:
            self.is_urgent = True
        if number > self._latest:
            self._latest, self._latest_at = number, now
        add_range(self._ranges, number, MAX_RANGES)

    def _following(self) -> list[bytes]:
        found = []
        while (held := self._held.get(self._next)) is not None and not held.missing:
            del self._held[self._next]
            self._held_bytes -= held.size
            self._next += 1
            found.append(b"".join([piece for piece in held.pieces if piece is not None]))
        return found
