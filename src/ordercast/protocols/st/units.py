"""The units of ST's recovery, of the sound rules and of the printed ones.

In normal operation ST sends SPO's units; with recovery by placing all of its units are of its own.
"""

import msgspec

from ordercast.model.nodes import name_of
from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, PacketId, Unit, header_size


class ResetReply(Unit, frozen=True, gc=False, tag=10):
    """RST_PAK: what a node held of an epoch when it stopped; it never changes.

    It serves as RST too: a node that receives it stops.
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

    def size(self) -> int:
        """A number for each node, and an entry for each packet."""
        entry = 2 * NUMBER_SIZE + (len(self.next_seq_to) + 7) // 8  # source and number, destinations
        return FIXED_SIZE + NUMBER_SIZE * (2 + len(self.next_seq_to)) + entry * (len(self.sent) + len(self.log))

    def label(self) -> str:
        """It answers a reset."""
        return "reply"


class ResetNeed(Unit, frozen=True, gc=False, tag=11):
    """What a node that has stopped still waits for."""

    source: int
    epoch: int
    has: int
    """The nodes whose replies it has, one bit each."""
    missing: tuple[PacketId, ...]
    """The packets that it lacks."""
    done: int
    """The nodes that it knows to lack nothing, one bit each."""
    backoff: int = 1
    """Its back-off: above 1 it has asked before without progress. Answers are then delayed."""

    def size(self) -> int:
        """A pair for each packet."""
        return FIXED_SIZE + 2 * NUMBER_SIZE * (1 + len(self.missing))

    def label(self) -> str:
        """It asks for answers."""
        return "poll"

    def asks_for(self) -> str | None:
        """The packets that it lacks."""
        return ", ".join(f"{name_of(source)} {seq}" for source, seq in self.missing) or None


class ResetDone(Unit, frozen=True, gc=False, tag=12):
    """RST_ACK: a node lacks nothing of an epoch."""

    source: int
    epoch: int

    def size(self) -> int:
        """The fixed part."""
        return FIXED_SIZE

    def label(self) -> str:
        """Its sender lacks nothing."""
        return "done"


class Reset(Unit, frozen=True, gc=False, tag=13):
    """RST as printed: the sender has lost a packet. Only the `paper` rules send it and the two units that follow."""

    source: int
    expects: tuple[int, ...]
    """TREQ_j."""

    def size(self) -> int:
        """A vector."""
        return FIXED_SIZE + NUMBER_SIZE * len(self.expects)

    def label(self) -> str:
        """It starts a recovery."""
        return "reset"


class ResetAgreement(Unit, frozen=True, gc=False, tag=14):
    """RST_PAK as printed: from these numbers on, the order in the sender's log may have to change."""

    source: int
    expects: tuple[int, ...]
    """TREQ_j as the procedure lowers it: where sorting begins, not what is expected."""

    def size(self) -> int:
        """A vector."""
        return FIXED_SIZE + NUMBER_SIZE * len(self.expects)

    def label(self) -> str:
        """It answers a reset."""
        return "reply"


class ResetOrder(Unit, frozen=True, gc=False, tag=15):
    """RST_ACK as printed: what all nodes must have found alike, and what the sender lacks and has sent."""

    source: int
    expects: tuple[int, ...]
    """TREQ_j as agreed."""
    expected_to_me: tuple[int, ...]
    """PREQ_j."""
    next_seq_to: tuple[int, ...]
    """PSEQ_j."""
    order: tuple[int, ...]
    """ORDR: the nodes in the order in which their RST_PAKs came."""

    def size(self) -> int:
        """Four vectors."""
        return FIXED_SIZE + NUMBER_SIZE * 4 * len(self.next_seq_to)

    def label(self) -> str:
        """It ends the agreement."""
        return "done"


# --- recovery by placing (`place`): no node stops, and the units of normal operation carry generations ---

Start = tuple[int, int]
"""A generation of a source, and the seq from which it sent its packets again in it."""
Wanted = tuple[int, int, tuple[tuple[int, int], ...], bool]
"""What is missing of a source: the source, its generation, ranges of its numbers to whoever asks, and whether that node
takes no copy of the first of them any more: the source must send it again in a new generation (the veto)."""


class PlacedStatus(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """SPO's status, and the generations in which it is meant."""

    stamp: int
    """Counts all transmissions of the sender, copies too."""
    expects: tuple[int, ...]
    """ACK_j, in the generation `generations[j]`."""
    preacknowledged_below: tuple[int, ...]
    """PACK_j, in the same generation."""
    free: int
    """BUF: free receive buffers of the sender."""
    generation: int = 0
    """GEN: how often the sender has sent packets again at new places."""
    generations: tuple[int, ...] = ()
    """GENV_j: the generation of each source that the sender knows; its own as the channel brought it back."""
    starts: tuple[Start, ...] = ()
    """Of the generations that some node may not know yet, ascending."""

    def size(self) -> int:
        """What generations take on the network: two bytes for each."""
        return NUMBER_SIZE // 2 * (1 + len(self.generations)) + 2 * NUMBER_SIZE * len(self.starts)


class PlacedData(DataUnit, frozen=True, gc=False, tag=16):
    """DT: a packet at its place on the channel, and the sender's status."""

    status: PlacedStatus

    @property
    def source(self) -> int:
        """SRC."""
        return self.packet.source

    def size(self) -> int:
        """With the vectors of its packet and its status."""
        return header_size(len(self.packet.seq_to)) + self.status.size() + self.packet.body_size()


class PlacedReady(Unit, frozen=True, gc=False, tag=17):
    """RR: a status without data; with `missing` also NACK, a request for copies."""

    source: int
    next_seq: int
    """TSEQ of the sender's next packet."""
    next_seq_to: tuple[int, ...]
    """PSEQ_j of the sender's next packet."""
    status: PlacedStatus
    wants: int = 0
    """The nodes that are asked for their status, a bit mask."""
    missing: tuple[Wanted, ...] = ()
    """Also of the sender's own packets, which did not come back to it: it lacks their places only."""
    witness: int = -1
    """The node that is asked for the places of the sender's own packets; -1: it lacks none."""

    def size(self) -> int:
        """That of a data unit without data, and the ranges."""
        ranges = sum(1 + len(wanted[2]) for wanted in self.missing)
        return header_size(len(self.next_seq_to)) + self.status.size() + 2 * NUMBER_SIZE * ranges

    def label(self) -> str:
        """A poll if it asks for statuses."""
        return "poll" if self.wants else "status"

    def can_wait(self) -> bool:
        """Unless it asks for something that is missing."""
        return not self.missing

    def asks_for(self) -> str | None:
        """The missing ranges; an exclamation mark: a copy is not enough."""
        if not self.missing:
            return None  # as nearly always
        return ", ".join(
            f"{name_of(source)} {'+'.join(str(a) if b == a + 1 else f'{a}-{b - 1}' for a, b in ranges)}{'!' * veto}"
            for source, _, ranges, veto in self.missing
        )


class PlacedCopy(DataUnit, frozen=True, gc=False, tag=18):
    """REP: a packet that some node lacks, and between what its source received it back. It has no place of its own."""

    stamp: int
    generation: int
    """GEN of the source."""
    generations: tuple[int, ...]
    """GENV_j: the generations in which the two vectors are meant."""
    low: tuple[int, ...]
    """LO_j: packets of E_j below are before this one on the channel."""
    high: tuple[int, ...]
    """HI_j: packets of E_j from this one on are after it; -1: not known yet."""

    @property
    def source(self) -> int:
        """SRC."""
        return self.packet.source

    def size(self) -> int:
        """It has no acknowledgments, but two vectors and the generations."""
        nodes = len(self.low)
        return header_size(nodes) + NUMBER_SIZE // 2 * (1 + nodes) + self.packet.body_size()


class PacketPosition(Unit, frozen=True, gc=False, tag=19):
    """Where a packet belongs that did not come back to its source, as another node has received it."""

    source: int
    """The witness."""
    of: PacketId
    """The packet."""
    stamp: int
    generations: tuple[int, ...]
    """GENV_j of the witness."""
    low: tuple[int, ...]
    """By source: its packets below are before that packet on the channel."""
    high: tuple[int, ...]
    """By source: its packets from this one on are after it; -1: not known."""

    def size(self) -> int:
        """Two vectors and the generations."""
        nodes = len(self.low)
        return FIXED_SIZE + (2 * nodes + 2) * NUMBER_SIZE + NUMBER_SIZE // 2 * nodes

    def label(self) -> str:
        """It answers a request."""
        return "reply"
