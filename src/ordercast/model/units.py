"""What travels: the protocol data units (the papers' PDUs), frozen and cheap to make.

A unit has two parts that live differently. Its **packet** is what the source numbered: it is the same in every
copy, for ever. Its **status** is what the sender knew when it transmitted: it is fresh each time, and the newest
one says everything that older ones said. A packet may carry several messages of one source to the same
destinations (a batch): the protocol's numbers count packets, the trace names messages.

The papers' symbols stand beside the field that carries them, here and nowhere else.
"""

import msgspec


class Packet(msgspec.Struct, frozen=True, gc=False):
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


class Status(msgspec.Struct, frozen=True, gc=False):
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


class Data(msgspec.Struct, frozen=True, gc=False, tag=True):
    """DT: a data unit."""

    packet: Packet
    status: Status

    @property
    def source(self) -> int:
        """SRC."""
        return self.packet.source


class Ready(msgspec.Struct, frozen=True, gc=False, tag=True):
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


class RetransmitRequest(msgspec.Struct, frozen=True, gc=False, tag=True):
    """RETRANS as printed: everything for me, from these numbers on. Only the `paper` rules send it."""

    source: int
    expects: tuple[int, ...]
    """ACK_j."""


MessageId = tuple[int, int]
"""A packet by its source and its seq."""


class ResetReply(msgspec.Struct, frozen=True, gc=False, tag=True):
    """RST_PAK: what a node holds of an epoch at the moment at which it stopped; it never changes.

    It does the work of RST too: whoever hears it stops.
    """

    source: int
    epoch: int
    next_seq: int
    """TSEQ."""
    next_seq_to: tuple[int, ...]
    """PSEQ_j."""
    sent: tuple[tuple[int, int], ...]
    """Own packets that some node may lack: seq and destinations."""
    log: tuple[tuple[int, int, int], ...]
    """All that it received of the epoch, in the order of the channel: source, seq and destinations."""
    preacknowledged: int
    """How many of these, from the first on, it has pre-acknowledged."""


class ResetNeed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """What a node that has stopped still waits for."""

    source: int
    epoch: int
    has: int
    """The nodes whose replies it has, one bit each."""
    missing: tuple[MessageId, ...]
    """The packets that it lacks."""
    done: int
    """The nodes that it knows to lack nothing, one bit each."""


class ResetDone(msgspec.Struct, frozen=True, gc=False, tag=True):
    """RST_ACK: a node lacks nothing of an epoch any more."""

    source: int
    epoch: int


class Reset(msgspec.Struct, frozen=True, gc=False, tag=True):
    """RST as printed: I have lost something. Only the `paper` rules send it, and the two that follow."""

    source: int
    expects: tuple[int, ...]
    """TREQ_j."""


class ResetAgreement(msgspec.Struct, frozen=True, gc=False, tag=True):
    """RST_PAK as printed: from these numbers on, the order in my log may have to change."""

    source: int
    expects: tuple[int, ...]
    """TREQ_j as the procedure lowers it: where sorting begins, not what is expected."""


class ResetOrder(msgspec.Struct, frozen=True, gc=False, tag=True):
    """RST_ACK as printed: what all nodes must have found alike, and what I lack and have sent."""

    source: int
    expects: tuple[int, ...]
    """TREQ_j as agreed."""
    expected_to_me: tuple[int, ...]
    """PREQ_j."""
    next_seq_to: tuple[int, ...]
    """PSEQ_j."""
    order: tuple[int, ...]
    """ORDR: the nodes in the order in which their RST_PAKs came."""


Unit = Data | Ready | RetransmitRequest | ResetReply | ResetNeed | ResetDone | Reset | ResetAgreement | ResetOrder

_FIXED = 16  # version, kind, group and view, source, stamp, free
_NUMBER = 4  # a number in a vector
LENGTH_SIZE = 2  # the length of a message in a packet
_RANGE = 10  # a missing range: source and two numbers


def header_size(nodes: int) -> int:
    """The bytes of a data unit without its messages: three vectors of 32-bit numbers, a bit for each node of a set."""
    return _FIXED + _NUMBER * (2 + 3 * nodes) + (nodes + 7) // 8


def size_on_wire(unit: Unit) -> int:
    """The bytes that a unit takes on the network."""
    if type(unit) is Data:  # most are, and a match would ask for each
        packet = unit.packet
        return header_size(len(packet.seq_to)) + LENGTH_SIZE * len(packet.lengths) + len(packet.payload)
    size = _FIXED
    match unit:
        case Ready(next_seq_to=next_seq_to, missing=missing):
            size = header_size(len(next_seq_to)) + _RANGE * sum(len(ranges) for _, ranges in missing)
        case RetransmitRequest(expects=expects) | Reset(expects=expects) | ResetAgreement(expects=expects):
            size = _FIXED + _NUMBER * len(expects)
        case ResetReply(next_seq_to=next_seq_to, sent=sent, log=log):
            entry = 2 * _NUMBER + (len(next_seq_to) + 7) // 8  # source and number, destinations
            size = _FIXED + _NUMBER * (2 + len(next_seq_to)) + entry * (len(sent) + len(log))
        case ResetNeed(missing=missing_ids):
            size = _FIXED + 2 * _NUMBER * (1 + len(missing_ids))
        case ResetOrder(next_seq_to=next_seq_to):
            size = _FIXED + _NUMBER * 4 * len(next_seq_to)
    return size
