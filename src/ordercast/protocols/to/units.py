"""What the broadcasts in channel order send: TO, and PriTO and PriO on top of it.

Their units have a number besides that of the packet. The packet's `seq` counts what its source submitted and is the
same for ever; a unit's `seq` is its place in all that its source puts *in sequence*, with or without data, and is
given anew when the group goes back. What a unit says stands in its heading.
"""

import msgspec

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit


class Heading(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What every unit says that is sent while nothing is missing."""

    source: int
    """SRC."""
    epoch: int
    """How often the group has gone back."""
    seq: int
    """SEQ: its place in all that the source puts in sequence; in a standing, that of the next unit."""
    expects: tuple[int, ...]
    """ACK_j: the seq that the sender expects next from j; its own too, as the channel brought it back."""
    delivered: int
    """How many packets the sender has delivered. All deliver one sequence, so the number says which (for BUF)."""
    wants: int = 0
    """NEED: the nodes that the sender waits for, one bit each."""

    def size(self) -> int:
        """Epoch, seq and delivered, the vector, a bit for each node."""
        return FIXED_SIZE + NUMBER_SIZE * (3 + len(self.expects)) + (len(self.expects) + 7) // 8


class OrderedData(DataUnit, frozen=True, gc=False, tag=20):
    """DT: data, in sequence."""

    heading: Heading

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """The heading, the packet's number, priority and messages."""
        return self.heading.size() + 2 * NUMBER_SIZE + self.packet.body_size()


class OrderedReady(Unit, frozen=True, gc=False, tag=21):
    """RR: no data, but a place in the sequence: what it acknowledges counts at that place for everybody."""

    heading: Heading

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """Nothing but the heading."""
        return self.heading.size()

    def word(self) -> str:
        """What its sender has accepted."""
        return "status"


class RunMarker(Unit, frozen=True, gc=False, tag=22):
    """RUNSYNC: ends a priority run, at its place in the sequence and for everybody."""

    heading: Heading
    through: int
    """TOSEQ, as one number: of the common sequence of packets, those below this have waited too long."""

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """One number more."""
        return self.heading.size() + NUMBER_SIZE

    def word(self) -> str:
        """Where a run ends."""
        return "marker"


class Standing(Unit, frozen=True, gc=False, tag=23):
    """What a node has accepted, outside the sequence: it takes no number, and nobody goes back because it is lost."""

    heading: Heading

    @property
    def source(self) -> int:
        """SRC."""
        return self.heading.source

    def size(self) -> int:
        """Nothing but the heading."""
        return self.heading.size()

    def word(self) -> str:
        """A poll, if it wants an answer."""
        return "poll" if self.heading.wants else "status"


class EpochVector(Unit, frozen=True, gc=False, tag=24):
    """RST: what a node expected when it stopped; it never changes. Whoever hears it stops too."""

    source: int
    epoch: int
    """TARGET: the epoch that is to begin."""
    expects: tuple[int, ...]
    """VEC: REQ_j."""
    installed: bool
    """INST: the sender has the vectors of all, and keeps what is below all of them."""
    wants: int
    """WANT: the nodes that the sender still waits for, one bit each."""

    def size(self) -> int:
        """The epoch, the vector, a bit for each node."""
        return FIXED_SIZE + NUMBER_SIZE * (1 + len(self.expects)) + (len(self.expects) + 7) // 8

    def word(self) -> str:
        """The beginning, or the end."""
        return "done" if self.installed else "reset"


class CarryingVector(DataUnit, frozen=True, gc=False, tag=25):
    """RST with the sender's first packet that some may lack: who has the vectors of all then has that packet too."""

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


Sequenced = OrderedData | OrderedReady | RunMarker
"""What has a place in the sequence."""
Vector = EpochVector | CarryingVector
"""What is said while the group goes back."""


def vector_of(unit: Vector) -> EpochVector:
    """The vector, carrying or not."""
    return unit.vector if isinstance(unit, CarryingVector) else unit
