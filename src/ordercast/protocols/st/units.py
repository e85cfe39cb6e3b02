"""The units of ST's recovery, of the sound rules and of the printed ones. In normal operation ST sends SPO's units."""

from ordercast.model.nodes import name_of
from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, PacketId, Unit


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
