"""Fragmentation: datagrams that are longer than the packets of the network travel as numbered fragments of one size.

Where it can, the system cuts a datagram into segments when it is sent, and merges them again when it is received
(Linux's `UDP_SEGMENT`, GSO, and `UDP_GRO`): many fragments then cost what one does. Nothing here is trusted: a datagram
is opened when it is complete, like any other, and fragments that a stranger adds spoil only that datagram. Each member
has room of its own for incomplete datagrams, and strangers share theirs: nobody can push out what another has begun,
except by sending under its address, which UDP does not prevent.

A datagram that lacks a fragment is given up, and no fragment is retransmitted by itself: the protocols repeat what was
in the datagram. (Large messages are cut above the protocols, by `host.batching`: their fragments are packets, each
retransmitted if lost; see `host.message_fragments`.)

Fragment, network byte order: u8 magic 0xC6, u8 spare, u32 datagram, u16 index, u16 fragments in all; then the piece.
"""

from collections import OrderedDict
from collections.abc import Iterable
from struct import Struct

from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

MAGIC = 0xC6
HEADING = Struct(">BxIHH")
MIN_SEGMENT_SIZE = 512
MAX_FRAGMENTS = -(-MAX_DATAGRAM_SIZE // (MIN_SEGMENT_SIZE - HEADING.size))
"""Of a datagram: what the largest needs in the smallest packets."""
MAX_PARTIAL = 64
"""Incomplete datagrams of one member, and of all strangers together; with more, the oldest is given up."""
MAX_PARTIAL_PER_STRANGER = 8

Source = object


def fragment(datagram: bytes, number: int, segment: int) -> list[bytes | memoryview]:
    """The fragments of a datagram: heading and piece alternate; each pair but the last has the segment's size."""
    size = segment - HEADING.size
    view = memoryview(datagram)
    count = -(-len(datagram) // size)
    parts: list[bytes | memoryview] = []
    for index in range(count):
        parts += [HEADING.pack(MAGIC, number & 0xFFFFFFFF, index, count), view[index * size : (index + 1) * size]]
    return parts


class _Partial:
    """A datagram that is not complete yet."""

    __slots__ = ("missing", "pieces", "size")

    def __init__(self, count: int) -> None:
        self.pieces: list[bytes | None] = [None] * count
        self.missing = count
        self.size = 0


_Partials = OrderedDict[tuple[Source, int, int], _Partial]


class DatagramReassembler:
    """Puts datagrams together, whatever the order of their fragments."""

    def __init__(self) -> None:
        self._strangers: _Partials = OrderedDict()
        self._members: dict[Source, _Partials] = {}
        self.given_up = 0
        """Datagrams that were never completed."""

    def knows(self, sources: Iterable[Source]) -> None:
        """These are members."""
        for source in sources:
            self._members.setdefault(source, OrderedDict())

    def take(self, data: memoryview, segment: int, source: Source) -> list[bytes | memoryview]:
        """The datagrams that these segments, merged by the system, are or complete."""
        if data[0] == MAGIC and len(data) > segment > HEADING.size:
            complete = _complete(data, segment)
            if complete is not None:
                return [complete]
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
        _, number, index, count = HEADING.unpack_from(part)
        if not (index < count <= MAX_FRAGMENTS):
            return None
        key = (source, number, count)
        partials = self._members.get(source, self._strangers)
        partial = partials.get(key)
        if partial is None:
            self._make_room(partials, source)
            partial = partials[key] = _Partial(count)
        if partial.pieces[index] is None:
            partial.pieces[index] = bytes(part[HEADING.size :])
            partial.missing -= 1
            partial.size += len(part) - HEADING.size
        if partial.size > MAX_DATAGRAM_SIZE:  # of a stranger, who would fill our memory
            del partials[key]
            self.given_up += 1
            return None
        if partial.missing:
            return None
        del partials[key]
        return b"".join(piece for piece in partial.pieces if piece is not None)

    def _make_room(self, partials: _Partials, source: Source) -> None:
        own = [key for key in partials if key[0] == source] if partials is self._strangers else []
        if len(own) >= MAX_PARTIAL_PER_STRANGER:
            del partials[own[0]]
            self.given_up += 1
        elif len(partials) >= MAX_PARTIAL:
            partials.popitem(last=False)
            self.given_up += 1


def _complete(data: memoryview, segment: int) -> bytes | None:
    """The datagram, if the segments are all its fragments in their order: as most are."""
    count = -(-len(data) // segment)
    _, number, _, of = HEADING.unpack_from(data)
    if of != count:
        return None
    pieces = []
    for index in range(count):
        start = index * segment
        if len(data) - start <= HEADING.size or HEADING.unpack_from(data, start) != (MAGIC, number, index, count):
            return None
        pieces.append(data[start + HEADING.size : start + segment])
    return b"".join(pieces)
