"""The bytes of a log: segment headers, frames, records of packets, and the running hash. No file is touched here.

A segment is a header and frames. A frame is a header of `FRAME_SIZE` bytes and a body, padded to eight bytes:

    packets   a record for each packet, the length of each message, and the payloads one after the other
    view      the number and the members of a view
    note      bytes that the owner of the log wants to find again, the newest ones

What is agreed on by all members (records, lengths, payloads) goes into the running hash. How packets are gathered into
frames, times and checksums of frames differ between members and do not. All numbers are little-endian.
"""

from array import array
from collections.abc import Iterator, Sequence
from enum import IntEnum
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from sys import byteorder

import msgspec

from ordercast.log.checksum import crc32
from ordercast.model.errors import LogDamaged, LogError

VERSION = 1
HASH_SIZE = 16
NO_HASH = bytes(HASH_SIZE)
"""The running hash of a log in which nothing was written yet."""
NO_SEGMENT = 2**64 - 1

_SEGMENT_MAGIC = 0x4753434F  # "OCSG"
SNAPSHOT_MAGIC = 0x4E53434F  # "OCSN"
_FRAME_MAGIC = 0x5246434F  # "OCFR"
_MAGIC_BYTES = _FRAME_MAGIC.to_bytes(4, "little")
_SEGMENT = Struct("<IIIIQ16sQQqII")
"""Checksum, magic, version, salt, first, hash, previous, previous_size, time, flags, length of the context."""
_FRAME = Struct("<IIIIIIQQQq16sII")
"""Checksum, magic, and the fields of `FrameHeader`."""
_RECORD = Struct("<QIIIHBx")
"""First number of the source, count, checksum, payload size, source, priority."""
FRAME_SIZE = _FRAME.size
RECORD_SIZE = _RECORD.size
_LENGTH_SIZE = 4
_AFTER_GAP = 1


class View(msgspec.Struct, frozen=True, array_like=True):
    """The members of a view: a packet names its source by a place in this list."""

    number: int = 0
    members: tuple[str, ...] = ()


class Context(msgspec.Struct, frozen=True, array_like=True):
    """What holds at a place of the log: each segment begins with it, so that it can be read without those before."""

    group: str = ""
    """The name of the group whose messages these are."""
    view: View = View()
    note: bytes = b""
    """What the owner of the log noted last."""


class Packet(msgspec.Struct, frozen=True, gc=False):
    """Messages of one source that were delivered one after the other."""

    source: int
    """The place of the sender in the view."""
    first: int
    """The source's number of the first message."""
    lengths: Sequence[int]
    """The size of each message in bytes."""
    payload: bytes | memoryview
    """The messages one after the other."""
    priority: int = 0


class Kind(IntEnum):
    """What a frame holds."""

    PACKETS = 1
    VIEW = 2
    NOTE = 3


class SegmentHeader(msgspec.Struct, frozen=True):
    """The beginning of a segment, or of a snapshot."""

    first: int
    """The position of its first message."""
    hash: bytes
    """The running hash there."""
    salt: int
    """Random: a frame of another segment is not one of this."""
    context: Context
    previous: int = NO_SEGMENT
    """The first position of the segment before it, which must be there if it has not been dropped."""
    previous_size: int = 0
    """The size in bytes of the segment before it, which is complete."""
    time: int = 0
    """When it was begun: nanoseconds since 1970, by the clock of this machine."""
    after_gap: bool = False
    """It begins with a snapshot: messages between it and the segment before are not in this log."""
    size: int = 0
    """Of the header in bytes, when it was read."""


class FrameHeader(msgspec.Struct, frozen=True):
    """The beginning of a frame."""

    body_size: int
    kind: int
    packets: int
    messages: int
    first: int
    """The position of its first message, or of the next one if it has none."""
    view: int
    """The number of the view."""
    durable: int
    """When it was written, the segment was known to be on the disk below this offset."""
    time: int
    hash: bytes
    """The running hash before its packets."""
    columns_checksum: int
    data_size: int
    """Bytes of the body without its padding."""

    @property
    def size(self) -> int:
        """Bytes with the body."""
        return FRAME_SIZE + self.body_size

    @property
    def next(self) -> int:
        """The position after its last message."""
        return self.first + self.messages


_encode = msgspec.msgpack.encode
_context_decoder = msgspec.msgpack.Decoder(Context)
_view_decoder = msgspec.msgpack.Decoder(View)
_note_decoder = msgspec.msgpack.Decoder(bytes)


def encode_segment_header(header: SegmentHeader, magic: int = _SEGMENT_MAGIC) -> bytes:
    """Its bytes."""
    context = _encode(header.context)
    fields = (
        *(magic, VERSION, header.salt, header.first, header.hash, header.previous, header.previous_size),
        *(header.time, _AFTER_GAP if header.after_gap else 0, len(context)),
    )
    data = _padded(_SEGMENT.pack(0, *fields)[4:] + context, 4)
    return crc32(data).to_bytes(4, "little") + data


def decode_segment_header(data: bytes | memoryview, magic: int = _SEGMENT_MAGIC) -> SegmentHeader:
    """The header at the beginning of these bytes; raises `LogDamaged` with the reason if there is none.

    Raises `LogError` if it is of another version: nothing is wrong with it.
    """
    if len(data) < _SEGMENT.size:
        raise LogDamaged(f"its header has {len(data)} bytes instead of {_SEGMENT.size} or more")
    checksum, found, version, salt, first, hash_, previous, previous_size, time, flags, length = _SEGMENT.unpack_from(
        data
    )
    if found != magic:
        raise LogDamaged("it does not begin as a file of a log does")
    end = _SEGMENT.size + length
    size = end + -end % 8
    if len(data) < size or crc32(data[4:size]) != checksum:
        raise LogDamaged("the checksum of its header is wrong")
    if version != VERSION:
        raise LogError(f"it has version {version}, and this program reads version {VERSION}")
    try:
        context = _context_decoder.decode(data[_SEGMENT.size : end])
    except msgspec.MsgspecError as error:
        raise LogDamaged(f"its header has no context: {error}") from None
    return SegmentHeader(
        first, hash_, salt, context, previous, previous_size, time, after_gap=bool(flags & _AFTER_GAP), size=size
    )


def _padded(data: bytes, before: int = 0) -> bytes:
    """With zeros to a multiple of eight bytes, together with those before it."""
    return data + bytes(-(before + len(data)) % 8)


class FrameBuilder:
    """Makes the frames of one segment, and continues the running hash."""

    def __init__(self, salt: int, first: int, hash_: bytes) -> None:
        self._salt = salt
        self.next = first
        """The position of the next message."""
        self.hash = hash_

    def packets(
        self, packets: Sequence[Packet], *, view: int, durable: int, time: int
    ) -> tuple[list[bytes | memoryview], int]:
        """The parts of a frame with these packets, to be written one after the other, and its size."""
        records, lengths, payloads = [], [], []
        first, before, messages, size = self.next, self.hash, 0, 0
        running = before
        for packet in packets:
            sizes, payload = _lengths(packet.lengths), packet.payload
            checksum = crc32(payload, crc32(sizes))
            count, length = len(packet.lengths), len(payload)
            record = _RECORD.pack(packet.first, count, checksum, length, packet.source, packet.priority)
            running = blake2b(running + record, digest_size=HASH_SIZE).digest()
            records.append(record)
            lengths.append(sizes)
            payloads.append(payload)
            messages += count
            size += length
        columns = b"".join((*records, *lengths))
        size += len(columns)
        padding = -size % 8
        header = FrameHeader(
            *(size + padding, Kind.PACKETS, len(packets), messages, first, view, durable, time, before),
            *(crc32(columns, self._salt), size),
        )
        self.next, self.hash = first + messages, running
        parts = [encode_frame_header(header, self._salt), columns, *payloads]
        if padding:
            parts.append(bytes(padding))
        return parts, header.size

    def view(self, view: View, *, durable: int, time: int) -> tuple[list[bytes | memoryview], int]:
        """The parts of a frame that says that a view begins here."""
        return self._plain(Kind.VIEW, _encode(view), view.number, durable, time)

    def note(self, note: bytes, *, view: int, durable: int, time: int) -> tuple[list[bytes | memoryview], int]:
        """The parts of a frame with a note."""
        return self._plain(Kind.NOTE, _encode(note), view, durable, time)

    def _plain(
        self, kind: Kind, data: bytes, view: int, durable: int, time: int
    ) -> tuple[list[bytes | memoryview], int]:
        body = _padded(data)
        header = FrameHeader(
            *(len(body), kind, 0, 0, self.next, view, durable, time, self.hash),
            *(crc32(body, self._salt), len(data)),
        )
        return [encode_frame_header(header, self._salt), body], header.size


def _lengths(lengths: Sequence[int]) -> bytes:
    if lengths and lengths.count(lengths[0]) == len(lengths):  # so it mostly is, and that is ten times as fast
        return lengths[0].to_bytes(_LENGTH_SIZE, "little") * len(lengths)
    found = array("I", lengths)
    if byteorder == "big":
        found.byteswap()
    return found.tobytes()


def encode_frame_header(header: FrameHeader, salt: int) -> bytes:
    """Its bytes; the checksum begins with the salt of the segment."""
    fields = (
        *(header.body_size, header.kind, header.packets, header.messages, header.first, header.view, header.durable),
        *(header.time, header.hash, header.columns_checksum, header.data_size),
    )
    data = _FRAME.pack(0, _FRAME_MAGIC, *fields)[4:]
    return crc32(data, salt).to_bytes(4, "little") + data


def decode_frame_header(data: memoryview, at: int, salt: int) -> FrameHeader | None:
    """The header of a frame at this offset; None if there is none whose checksum is right."""
    end = at + FRAME_SIZE
    if end > len(data):
        return None
    checksum, magic, *fields = _FRAME.unpack_from(data, at)
    if magic != _FRAME_MAGIC or crc32(data[at + 4 : end], salt) != checksum:
        return None
    return FrameHeader(*fields)


def later_headers(data: memoryview, after: int, salt: int) -> Iterator[tuple[int, FrameHeader]]:
    """Every frame header with a right checksum from this offset on, wherever it begins."""
    text = data.obj if isinstance(data.obj, bytes) else bytes(data)
    at = text.find(_MAGIC_BYTES, after + 4)
    while at >= 0:
        header = decode_frame_header(data, at - 4, salt)
        if header is not None:
            yield at - 4, header
        at = text.find(_MAGIC_BYTES, at + 1)


class Frame(msgspec.Struct, frozen=True):
    """A frame whose checksums are right."""

    header: FrameHeader
    columns: memoryview
    """Records and lengths; the whole body of a frame without packets."""
    payloads: memoryview

    def view(self) -> View:
        """What a frame of the kind `VIEW` says."""
        return _view_decoder.decode(self.columns[: self.header.data_size])

    def note(self) -> bytes:
        """What a frame of the kind `NOTE` says."""
        return _note_decoder.decode(self.columns[: self.header.data_size])

    def records(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """For each packet: first number of the source, count, checksum, payload size, source, priority."""
        return _RECORD.iter_unpack(self.columns[: self.header.packets * RECORD_SIZE])

    def lengths(self) -> "array[int]":
        """The size of each message, those of all packets."""
        found = array("I", self.columns[self.header.packets * RECORD_SIZE :].tobytes())
        if byteorder == "big":
            found.byteswap()
        return found

    def packets(self) -> Iterator[Packet]:
        """Its packets; their payloads are parts of this frame."""
        lengths, message, offset = self.lengths(), 0, 0
        for first, count, _, size, source, priority in self.records():
            payload = self.payloads[offset : offset + size]
            yield Packet(source, first, lengths[message : message + count], payload, priority)
            message += count
            offset += size

    def places(self) -> Iterator[tuple[int, bytes]]:
        """After each packet: the position of the next message, and the running hash."""
        position, running = self.header.first, self.header.hash
        for at in range(self.header.packets):
            record = self.columns[at * RECORD_SIZE : (at + 1) * RECORD_SIZE]
            running = blake2b(running + record, digest_size=HASH_SIZE).digest()
            position += _RECORD.unpack(record)[1]
            yield position, running

    def messages(self) -> Iterator[tuple[int, int, bytes]]:
        """Each message: the place of its sender, its priority, its payload."""
        lengths, payloads = self.lengths(), self.payloads
        ends = list(accumulate(lengths, initial=0))
        message = 0
        for _, count, _, _, source, priority in self.records():
            for at in range(message, message + count):
                yield source, priority, payloads[ends[at] : ends[at + 1]].tobytes()
            message += count


def read_frame(data: memoryview, at: int, salt: int) -> Frame | str:
    """The frame at this offset if its checksums are right; else a sentence that says what is wrong."""
    header = decode_frame_header(data, at, salt)
    if header is None:
        left = len(data) - at
        if not any(data[at : at + FRAME_SIZE]):
            return "zeros instead of a frame"
        return f"{left} bytes, too few for a frame" if left < FRAME_SIZE else "the header of a frame is wrong"
    end = at + header.size
    if end > len(data):
        return f"a frame of {header.size} bytes, of which {len(data) - at} are there"
    body = data[at + FRAME_SIZE : end]
    columns_size = header.packets * RECORD_SIZE + header.messages * _LENGTH_SIZE if header.packets else len(body)
    columns = body[:columns_size]
    if crc32(columns, salt) != header.columns_checksum:
        return "the checksum of a frame's columns is wrong"
    frame = Frame(header, columns, body[columns_size:])
    return frame if _payloads_are_right(frame) else "the checksum of a packet is wrong"


def _payloads_are_right(frame: Frame) -> bool:
    lengths, payloads = frame.columns[frame.header.packets * RECORD_SIZE :], frame.payloads
    message = offset = 0
    if not frame.header.packets:
        return True
    for _, count, checksum, size, _, _ in frame.records():
        sizes = lengths[message : message + count * _LENGTH_SIZE]
        if crc32(payloads[offset : offset + size], crc32(sizes)) != checksum:
            return False
        message += count * _LENGTH_SIZE
        offset += size
    return not any(payloads[offset:])  # the padding
