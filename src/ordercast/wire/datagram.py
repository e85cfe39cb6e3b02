"""Datagrams: 24 bytes of header, then a body of records, each behind its length. All numbers are big-endian.

Anybody who can reach our port can send any bytes, so reading returns a `Rejection` and raises nothing. Flags are plain
integers: `enum.Flag` would cost more than the rest of the header.
"""

from collections.abc import Iterable
from enum import StrEnum
from struct import Struct

import msgspec

MAGIC = 0xC5
VERSION = 1

ENCRYPTED = 1
"""Flag: the body is encrypted. Set and removed by the seal; nobody else sees it."""
HANDSHAKE = 2
"""Flag: of the discovery or the handshake; the tag is the sender's incarnation. Without it, it is the session."""
TO_RELAY = 4
"""Flag: for the relay, to pass it on."""
FROM_RELAY = 8
"""Flag: a relay passed it on."""
CAN_WAIT = 16
"""Flag: for the relay, which may hold it until others have sent such, too: it has acknowledgments only."""
BESIDE_RELAY = 32
"""Flag: of a member that usually sends by a relay, and not by it: to be handled behind a place in the relay's order."""
_KNOWN_FLAGS = ENCRYPTED | HANDSHAKE | TO_RELAY | FROM_RELAY | CAN_WAIT | BESIDE_RELAY

RELAY = 0xFFFF
"""The sender number of a relay."""
ECHO = 0xFFFB
"""The same, of what it sends to one member instead of that member's own records, under the counter that these have for
all others: a sender of its own has a key of its own, under which no counter is used twice.
"""
UNKNOWN = 0xFFFE
"""The sender number of a process that does not know its index among the members yet."""

UNORDERED = 0x8000
"""In a sender's number: control messages and membership units, which have counters of their own.

Most go to one member only; if they were counted with the units of the order, all others would miss something.
"""

TO_ALL = 0
"""The destination: all members. Any other number is one more than the index of the member that it is for."""

HEADER = Struct(">BBBBHHQQ")
"""Magic, version, flags, key id, sender, to, tag, counter."""
FLAGS_AT = 2
"""The offset of the flags."""
MAX_DATAGRAM_SIZE = 65_507
"""The bytes of the largest datagram that UDP over IPv4 carries."""
_LENGTH = Struct(">H")
LENGTH_SIZE = _LENGTH.size
"""The bytes of each record's length."""


class Rejection(StrEnum):
    """Why a datagram is dropped."""

    NOT_ORDERCAST = "not_ordercast"
    """It does not begin with our magic byte."""
    TRUNCATED = "truncated"
    """It is shorter than its fixed parts."""
    VERSION = "version"
    """Its version, or one of its flags, is unknown."""
    PLAINTEXT = "plaintext"
    """Our group encrypts, and it is not encrypted."""
    CIPHERTEXT = "ciphertext"
    """Our group does not encrypt, and it is encrypted."""
    KEY = "key"
    """It was encrypted with a key that we do not have."""
    GROUP = "group"
    """It is not encrypted and is of another group."""
    REPLAYED = "replayed"
    """Its counter was received already, or is too far behind the latest to tell."""
    FORGED = "forged"
    """It was not encrypted with our key and for our group, or was changed on its way."""
    MALFORMED = "malformed"
    """Its body does not end where a record ends, or has an empty one."""


class Datagram(msgspec.Struct, frozen=True, gc=False):
    """A datagram that was opened."""

    flags: int
    sender: int
    tag: int
    counter: int
    body: bytes
    to: int = TO_ALL


Header = tuple[int, int, int, int, int, int]
"""Flags, key id, sender, to, tag and counter."""


def write_header(flags: int, key_id: int, sender: int, to: int, tag: int, counter: int) -> bytes:
    """The 24 bytes in front of a body."""
    return HEADER.pack(MAGIC, VERSION, flags, key_id, sender, to, tag, counter)


def read_header(datagram: bytes | memoryview, mode: int, smallest: int) -> Header | Rejection:
    """The header of a datagram of this mode (`ENCRYPTED`, or 0) and of at least this size."""
    if not datagram or datagram[0] != MAGIC:
        return Rejection.NOT_ORDERCAST
    if len(datagram) < HEADER.size:
        return Rejection.TRUNCATED
    _, version, flags, key_id, sender, to, tag, counter = HEADER.unpack_from(datagram)
    if version != VERSION or flags & ~_KNOWN_FLAGS:
        return Rejection.VERSION
    if flags & ENCRYPTED != mode:
        return Rejection.PLAINTEXT if mode else Rejection.CIPHERTEXT
    if len(datagram) < smallest:
        return Rejection.TRUNCATED
    return flags, key_id, sender, to, tag, counter


def pack_records(records: Iterable[bytes]) -> bytes:
    """The body with these records, none of which is empty."""
    pieces = []
    for record in records:
        assert record, "a record has at least one byte"
        pieces.append(_LENGTH.pack(len(record)))
        pieces.append(record)
    return b"".join(pieces)


def unpack_records(body: bytes | memoryview) -> list[memoryview] | Rejection:
    """The records of a body, as views into it."""
    records = []
    whole = memoryview(body)
    at, end = 0, len(body)
    while at + LENGTH_SIZE <= end:
        (length,) = _LENGTH.unpack_from(body, at)
        if not length:
            return Rejection.MALFORMED
        start = at + LENGTH_SIZE
        at = start + length
        records.append(whole[start:at])
    return records if at == end else Rejection.MALFORMED
