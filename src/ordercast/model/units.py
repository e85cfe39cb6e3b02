"""What the units of all protocols share: packets, the base class of protocol data units (PDUs), sizes on the network.

A unit that carries data has two parts. Its **packet** is what the source numbered: the same in every copy. The rest
is control information, made anew for each transmission. A packet may carry several messages of one source to the same
destinations (a batch): protocols number packets, traces name messages.

Each protocol's own units are in its package (`protocols/<name>/units.py`). The papers' symbols are given beside the
field that carries them.
"""

import msgspec

FIXED_SIZE = 16
"""Bytes of a unit's fixed part: version, kind, group and view, source, stamp, free."""
NUMBER_SIZE = 4
"""Bytes of a number in a vector."""
LENGTH_SIZE = 2
"""Bytes of a message's length in a packet."""


def header_size(nodes: int) -> int:
    """Bytes of a data unit without its messages: three vectors of 32-bit numbers, and a bit mask of nodes."""
    return FIXED_SIZE + NUMBER_SIZE * (2 + 3 * nodes) + (nodes + 7) // 8


class Packet(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The part of a data unit that its source numbered and that every copy repeats."""

    source: int
    """SRC."""
    destinations: int
    """DST, a bit mask of nodes."""
    seq: int
    """TSEQ: its sequence number among all packets of the source."""
    seq_to: tuple[int, ...]
    """PSEQ_j: its number among the packets of the source to j; if j is no destination, the next packet's number."""
    first: int
    """The source's message number of its first message."""
    lengths: tuple[int, ...]
    """The length of each message in bytes."""
    payload: bytes
    """DATA: the messages one after the other; no protocol reads it."""
    priority: int = 0
    """PRI; only prioritised protocols use it."""

    def body_size(self) -> int:
        """Bytes that its messages and their lengths take on the network."""
        return LENGTH_SIZE * len(self.lengths) + len(self.payload)

    def without_messages(self) -> "Packet":
        """Its numbers alone, for a log that outlives its messages."""
        if not self.payload:
            return self
        return Packet(self.source, self.destinations, self.seq, self.seq_to, self.first, (), b"", self.priority)


PacketId = tuple[int, int]
"""A packet by its source and its seq."""


class Unit(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=0):
    """A protocol data unit. On the wire it is an array of its tag, which identifies its class, and its fields."""

    @property
    def source(self) -> int:
        """SRC: the node that sent it; most kinds have it as a field."""
        raise NotImplementedError

    def size(self) -> int:
        """Bytes that it takes on the network."""
        raise NotImplementedError

    def label(self) -> str:
        """Its kind in one word, for traces and diagrams."""
        raise NotImplementedError

    def asks_for(self) -> str | None:
        """What it asks to be retransmitted, as text; None if nothing."""
        return None

    def can_wait(self) -> bool:
        """True if it only acknowledges: nothing follows from it before the others have acknowledged, too."""
        return False

    def needs_place(self) -> bool:
        """False if nothing follows from its place among other units, nor from its loss.

        It has no number, asks for nothing, and may arrive any time after what its sender had received.
        """
        return True


class DataUnit(Unit, frozen=True, gc=False):
    """A unit that carries a packet."""

    packet: Packet

    def label(self) -> str:
        """The same for an original and for a copy: only the sender knows which it is."""
        return "data"
