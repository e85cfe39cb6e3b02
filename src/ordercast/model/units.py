"""What travels: the protocol data units (the papers' PDUs), frozen and cheap to make.

A unit that carries data has two parts that live differently. Its **packet** is what the source numbered: it is the
same in every copy, for ever. Its **status** is what the sender knew when it transmitted: it is fresh each time, and
the newest one says everything that older ones said. A packet may carry several messages of one source to the same
destinations (a batch): the protocol's numbers count packets, the trace names messages.

Here is what all protocols share, and SPO's own; the others' units are in `reset_units` (ST) and their like. The
papers' symbols stand beside the field that carries them, here and nowhere else.
"""

import msgspec

from ordercast.model.nodes import name_of

FIXED_SIZE = 16  # version, kind, group and view, source, stamp, free
NUMBER_SIZE = 4  # a number in a vector
LENGTH_SIZE = 2  # the length of a message in a packet
_RANGE_SIZE = 10  # a missing range: source and two numbers


def header_size(nodes: int) -> int:
    """The bytes of a data unit without its messages: three vectors of 32-bit numbers, a bit for each node of a set."""
    return FIXED_SIZE + NUMBER_SIZE * (2 + 3 * nodes) + (nodes + 7) // 8


class Packet(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a source numbered: the part of a data unit that every copy repeats."""

    source: int
    """SRC."""
    destinations: int
    """DST, one bit for each node."""
    seq: int
    """TSEQ: its place in all that the source sent."""
    seq_to: tuple[int, ...]
    """PSEQ_j: its place in what the source sent to j; for a j that is no destination, that of the next that will be."""
    first: int
    """The source's message number of the first message in it."""
    lengths: tuple[int, ...]
    """The bytes of each message in it."""
    payload: bytes
    """DATA: the messages, one after the other; no protocol opens it."""
    priority: int = 0
    """PRI; used by the prioritised protocols only."""

    def body_size(self) -> int:
        """The bytes that its messages take on the network, with their lengths."""
        return LENGTH_SIZE * len(self.lengths) + len(self.payload)


class Status(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a node knew when it transmitted."""

    stamp: int
    """Counts all transmissions of the sender; of two statuses the one with the higher stamp is the newer."""
    expects: tuple[int, ...]
    """ACK_j: the seq that the sender expects next from j."""
    preacknowledged_below: tuple[int, ...] = ()
    """PACK_j: what j sent to the sender below this, the sender has pre-acknowledged."""
    free: int = 0
    """BUF: free places at the sender, for the source that has fewest."""
    epoch: int = 0
    """How many times the group has agreed on an order anew; only ST counts them."""


MessageId = tuple[int, int]
"""A packet by its source and its seq."""


class Unit(msgspec.Struct, frozen=True, gc=False, array_like=True, tag=0):
    """A protocol data unit. Its tag is its kind on the wire, where it is an array of the tag and the fields."""

    @property
    def source(self) -> int:
        """SRC: the node that sent it; most kinds have it as a field."""
        raise NotImplementedError

    def size(self) -> int:
        """The bytes that it takes on the network."""
        raise NotImplementedError

    def word(self) -> str:
        """What it is, in a word, for traces and pictures."""
        raise NotImplementedError

    def asks_for(self) -> str | None:
        """What it asks to be sent again, in words; None if nothing."""
        return None


class DataUnit(Unit, frozen=True, gc=False):
    """A unit that carries a packet."""

    packet: Packet

    def word(self) -> str:
        """Data; what is a copy is known to its sender only."""
        return "data"


class Data(DataUnit, frozen=True, gc=False, tag=1):
    """DT: a data unit."""

    status: Status

    @property
    def source(self) -> int:
        """SRC."""
        return self.packet.source

    def size(self) -> int:
        """With the vectors of its packet and its status."""
        return header_size(len(self.packet.seq_to)) + self.packet.body_size()


class Ready(Unit, frozen=True, gc=False, tag=2):
    """RR: receive-ready, a status without data. It consumes no number and is never repeated.

    With `missing` it is the request for retransmission (RETRANS), with `wants` a poll.
    """

    source: int
    next_seq: int
    """TSEQ of the next packet."""
    next_seq_to: tuple[int, ...]
    """PSEQ_j of the next packet."""
    status: Status
    wants: int = 0
    """The nodes whose status the sender waits for, one bit each."""
    missing: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    """By source of which the sender misses something: the ranges [start, stop) of seq_to[sender] that are missing."""

    def size(self) -> int:
        """As a data unit without data, and the ranges."""
        return header_size(len(self.next_seq_to)) + _RANGE_SIZE * sum(len(ranges) for _, ranges in self.missing)

    def word(self) -> str:
        """A poll, if it wants an answer."""
        return "poll" if self.wants else "status"

    def asks_for(self) -> str | None:
        """The missing ranges."""
        if not self.missing:
            return None  # as nearly always
        return ", ".join(
            f"{name_of(source)} {'+'.join(str(a) if b == a + 1 else f'{a}-{b - 1}' for a, b in ranges)}"
            for source, ranges in self.missing
        )


class RetransmitRequest(Unit, frozen=True, gc=False, tag=3):
    """RETRANS as printed: everything for me, from these numbers on. Only the `paper` rules send it."""

    source: int
    expects: tuple[int, ...]
    """ACK_j."""

    def size(self) -> int:
        """A vector."""
        return FIXED_SIZE + NUMBER_SIZE * len(self.expects)

    def word(self) -> str:
        """A request, whatever it asks for."""
        return "request"

    def asks_for(self) -> str | None:
        """Everything from some numbers on."""
        return f"all to me from {list(self.expects)} on"
