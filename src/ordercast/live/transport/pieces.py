"""Pieces: what a link sends in one packet of the network, a part of a datagram or all of it.

Piece, network byte order: u8 magic 0xC7, u8 spare, u32 stream, u64 number, u64 datagram, u16 index, u16 pieces in all;
then the bytes. The stream is the low half of the view's tag. Each transmission has a number of its own, also one that
repeats a piece: so an acknowledgment says which of them arrived. Datagrams of a stream are counted from 0.

Nothing of it is authenticated: a datagram is opened when it is complete, and acknowledgments travel in datagrams.
"""

from collections.abc import Iterator
from struct import Struct

MAGIC = 0xC7
HEADING = Struct(">BxIQQHH")
HEADING_SIZE = HEADING.size
NUMBERS_BELOW = 1 << 64

Heading = tuple[int, int, int, int, int, int]
"""Magic, stream, number, datagram, index, pieces in all."""


def read_train(data: memoryview, segment: int) -> tuple[Heading, list[memoryview]] | None:
    """The first heading, and the bytes of all, if these segments are pieces of one datagram that were sent together.

    As most are that the system has merged; None: they must be read one by one.
    """
    if segment <= HEADING_SIZE or 0 < len(data) % segment <= HEADING_SIZE:
        return None
    heading: Heading = HEADING.unpack_from(data)
    magic, stream, number, datagram, index, count = heading
    starts = range(0, len(data), segment)
    if magic != MAGIC or index + len(starts) > count:
        return None
    for place, start in enumerate(starts):
        if HEADING.unpack_from(data, start) != (magic, stream, number + place, datagram, index + place, count):
            return None
    return heading, [data[start + HEADING_SIZE : start + segment] for start in starts]


def read_pieces(data: memoryview, segment: int) -> Iterator[tuple[Heading, memoryview]]:
    """Headings and bytes of the pieces among these segments, which the system may have merged."""
    for start in range(0, len(data), segment):
        yield from one_piece(data[start : start + segment])


def one_piece(part: memoryview) -> tuple[tuple[Heading, memoryview], ...]:
    """Heading and bytes, if it is a piece."""
    if part[0] != MAGIC or len(part) <= HEADING_SIZE:
        return ()
    heading: Heading = HEADING.unpack_from(part)
    return ((heading, part[HEADING_SIZE:]),) if heading[4] < heading[5] else ()


def pieces_of(size: int, segment: int) -> int:
    """How many pieces a datagram of this size needs in packets of that size."""
    return -(-size // (segment - HEADING_SIZE))


def add_range(ranges: list[list[int]], number: int, most: int) -> bool:
    """Adds a number to ascending ranges (first, last), of which the last `most` are kept; True if it was new."""
    if not ranges:
        ranges.append([number, number])
        return True
    last = ranges[-1]
    if number == last[1] + 1:  # as most are
        last[1] = number
        return True
    if number > last[1]:
        ranges.append([number, number])
        if len(ranges) > most:
            del ranges[0]
        return True
    return _insert(ranges, number, most)


def _insert(ranges: list[list[int]], number: int, most: int) -> bool:
    """The same for one that comes late."""
    for at in range(len(ranges) - 1, -1, -1):
        first, last = ranges[at]
        if number > last + 1:
            ranges.insert(at + 1, [number, number])
            break
        if number >= first:
            if number <= last:
                return False
            ranges[at][1] = number
            break
        if number == first - 1:
            ranges[at][0] = number
            if at and ranges[at - 1][1] == number - 1:
                ranges[at][0] = ranges[at - 1][0]
                del ranges[at - 1]
            return True
    else:
        if len(ranges) >= most:
            return False  # too old to tell
        ranges.insert(0, [number, number])
        return True
    if len(ranges) > most:
        del ranges[0]
    return True
