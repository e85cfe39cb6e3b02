"""Datagrams that are longer than the network's packets travel as trains: segments of one size, each with its place.

The system cuts a train for us when it is sent, and couples it again when it is received, where it can (Linux's
`UDP_SEGMENT` and `UDP_GRO`): many segments then cost what one does. Nothing here is trusted: a train is opened like any
datagram when it is whole, and what a stranger adds to one spoils only that train. Each member has room of its own for
trains that are not whole yet, and strangers have theirs: nobody can push out what another has begun, unless it sends
in that one's name, which the addresses of UDP do not prevent.

Segment, network byte order: u8 magic 0xC6, u8 spare, u32 train, u16 place, u16 segments in all; then the piece.
"""

from collections import OrderedDict
from collections.abc import Iterable
from struct import Struct

from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

MAGIC = 0xC6
HEADING = Struct(">BxIHH")
MIN_SEGMENT_SIZE = 512
MAX_FRAGMENTS = -(-MAX_DATAGRAM_SIZE // (MIN_SEGMENT_SIZE - HEADING.size))
"""Of a train: what the largest datagram needs in the smallest packets."""
MAX_PARTIAL = 64
"""Of one member, and of all strangers together, that are not whole yet; what stands longest is given up for more."""
MAX_PARTIAL_PER_STRANGER = 8

Source = object


def cut(datagram: bytes, train: int, segment: int) -> list[bytes | memoryview]:
    """The segments of a datagram: heading and piece in turn, all together of the size but the last."""
    piece = segment - HEADING.size
    view = memoryview(datagram)
    count = -(-len(datagram) // piece)
    found: list[bytes | memoryview] = []
    for place in range(count):
        found += [HEADING.pack(MAGIC, train & 0xFFFFFFFF, place, count), view[place * piece : (place + 1) * piece]]
    return found


class _Train:
    __slots__ = ("lacking", "pieces", "size")

    def __init__(self, count: int) -> None:
        self.pieces: list[bytes | None] = [None] * count
        self.lacking = count
        self.size = 0


_Trains = OrderedDict[tuple[Source, int, int], _Train]


class Reassembler:
    """Puts trains together, whatever the order of their segments."""

    def __init__(self) -> None:
        self._strangers: _Trains = OrderedDict()
        self._members: dict[Source, _Trains] = {}
        self.given_up = 0
        """Trains that never became whole."""

    def knows(self, sources: Iterable[Source]) -> None:
        """These are members."""
        for source in sources:
            self._members.setdefault(source, OrderedDict())

    def held(self) -> int:
        """Trains that are not whole."""
        return len(self._strangers) + sum(map(len, self._members.values()))

    def take(self, data: memoryview, segment: int, source: Source) -> list[bytes | memoryview]:
        """The datagrams that these segments, coupled by the system, are or complete."""
        if data[0] == MAGIC and len(data) > segment > HEADING.size:
            whole = _whole(data, segment)
            if whole is not None:
                return [whole]
        found: list[bytes | memoryview] = []
        for start in range(0, len(data), segment):
            part = data[start : start + segment]
            datagram = self._add(part, source) if part[0] == MAGIC else part
            if datagram is not None:
                found.append(datagram)
        return found

    def _add(self, part: memoryview, source: Source) -> bytes | None:
        if len(part) <= HEADING.size:
            return None
        _, number, place, count = HEADING.unpack_from(part)
        if not (place < count <= MAX_FRAGMENTS):
            return None
        name = (source, number, count)
        trains = self._members.get(source, self._strangers)
        train = trains.get(name)
        if train is None:
            self._make_room(trains, source)
            train = trains[name] = _Train(count)
        if train.pieces[place] is None:
            train.pieces[place] = bytes(part[HEADING.size :])
            train.lacking -= 1
            train.size += len(part) - HEADING.size
        if train.size > MAX_DATAGRAM_SIZE:  # of a stranger, who would fill our memory
            del trains[name]
            self.given_up += 1
            return None
        if train.lacking:
            return None
        del trains[name]
        return b"".join(piece for piece in train.pieces if piece is not None)

    def _make_room(self, trains: _Trains, source: Source) -> None:
        own = [name for name in trains if name[0] == source] if trains is self._strangers else []
        if len(own) >= MAX_PARTIAL_PER_STRANGER:
            del trains[own[0]]
            self.given_up += 1
        elif len(trains) >= MAX_PARTIAL:
            trains.popitem(last=False)
            self.given_up += 1


def _whole(data: memoryview, segment: int) -> bytes | None:
    """The datagram, if the segments are all of one train in their order: as most are."""
    count = -(-len(data) // segment)
    _, number, _, of = HEADING.unpack_from(data)
    if of != count:
        return None
    pieces = []
    for place in range(count):
        start = place * segment
        if len(data) - start <= HEADING.size or HEADING.unpack_from(data, start) != (MAGIC, number, place, count):
            return None
        pieces.append(data[start + HEADING.size : start + segment])
    return b"".join(pieces)
