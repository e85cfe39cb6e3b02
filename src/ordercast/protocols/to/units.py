"""The units of total order broadcast on one channel (TO); delivery policies may add units of their own.

A data unit has two numbers. The packet's `seq` counts what its source submitted and never changes. The unit's `seq`,
in its heading, counts all **sequenced** units of its source, with or without data; units that a recovery discards are
renumbered. Acknowledgments travel in the heading.
"""

import msgspec

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit


class Heading(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What every unit of normal operation says about its sender."""

    source: int
    """SRC."""
    epoch: int
    """The number of recoveries so far."""
    seq: int
    """SEQ: its number among the sequenced units of the source; in a `UnorderedReady`, the number of the next one."""
    expects: tuple[int, ...]
    """ACK_j: the seq that the sender expects next from j; for itself too, since it receives its own units."""
    delivered: int
    """How many packets the sender has delivered. All deliver one sequence, so the count determines which (for BUF)."""
    wants: int = 0
    """NEED: the nodes that the sender wants an acknowledgment from, one bit each."""

    def size(self) -> int:
        """Epoch, seq and delivered, the vector, a bit for each node."""
        return FIXED_SIZE + NUMBER_SIZE * (3 + len(self.expects)) + (len(self.expects) + 7) // 8


class OrderedData(DataUnit, frozen=True, gc=False, tag=20):
    """DT: a sequenced unit with data."""

    heading: Heading

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """The heading, the packet's number, priority and messages."""
        return self.heading.size() + 2 * NUMBER_SIZE + self.packet.body_size()


class OrderedReady(Unit, frozen=True, gc=False, tag=21):
    """RR: a sequenced unit without data: its acknowledgment takes effect at the same position for all nodes."""

    heading: Heading

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """The heading alone."""
        return self.heading.size()

    def label(self) -> str:
        """Its kind in traces."""
        return "status"

    def can_wait(self) -> bool:
        """It only acknowledges."""
        return True


class PolicyUnit(Unit, frozen=True, gc=False):
    """A sequenced unit that a delivery policy sends, and interprets at its position in the common sequence."""

    heading: Heading

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """The heading; a unit with more fields adds to it."""
        return self.heading.size()


class UnorderedReady(Unit, frozen=True, gc=False, tag=23):
    """An acknowledgment outside the sequence: it has no number of its own, and its loss needs no recovery."""

    heading: Heading

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """The heading alone."""
        return self.heading.size()

    def label(self) -> str:
        """Its kind in traces: a poll if it wants an answer."""
        return "poll" if self.heading.wants else "status"

    def can_wait(self) -> bool:
        """It only acknowledges."""
        return True

    def needs_place(self) -> bool:
        """Only if it asks for something: it shows losses then."""
        return self.heading.wants != 0


class EpochVector(Unit, frozen=True, gc=False, tag=24):
    """RST: what a node had accepted when it stopped, which never changes. A node that receives it stops too."""

    source: int
    epoch: int
    """TARGET: the epoch that is to begin."""
    expects: tuple[int, ...]
    """VEC: REQ_j."""
    installed: bool
    """INST: the sender has the vectors of all, and has rolled back to the cut that follows from them."""
    wants: int
    """WANT: the nodes that the sender still waits for, one bit each."""

    def size(self) -> int:
        """The epoch, the vector, a bit for each node."""
        return FIXED_SIZE + NUMBER_SIZE * (1 + len(self.expects)) + (len(self.expects) + 7) // 8

    def label(self) -> str:
        """Its kind in traces."""
        return "done" if self.installed else "reset"


class CarryingVector(DataUnit, frozen=True, gc=False, tag=25):
    """RST that carries the sender's first unacknowledged packet: a node that has all vectors has that packet too."""

    vector: EpochVector
    seq: int
    """The seq that the packet had in the epoch that ends."""

    @property
    def source(self) -> int:
        """SRC."""
        return self.vector.source

    def size(self) -> int:
        """The vector, three numbers and the messages."""
        return self.vector.size() + 3 * NUMBER_SIZE + self.packet.body_size()


Sequenced = OrderedData | OrderedReady | PolicyUnit
"""Units with a position in the common sequence."""
Vector = EpochVector | CarryingVector
"""Units of epoch agreement."""


def vector_of(unit: Vector) -> EpochVector:
    """The vector of a unit, whether it carries a packet or not."""
    return unit.vector if isinstance(unit, CarryingVector) else unit
