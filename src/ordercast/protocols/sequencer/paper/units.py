"""What the printed sequencer sends: the messages of the paper's table, each with the fields of its header that it uses.

The header (Figure 2) has a type, SequenceNr, MessageNr, SenderID and DestID; here the type is the class, and the
destination is the host's business. An election is not in the table: it is what the paper's last section hints at.
"""

from msgspec.structs import replace

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit

_HEADER_SIZE = FIXED_SIZE + 2 * NUMBER_SIZE  # SequenceNr and MessageNr beside what all units have


class PaperData(DataUnit, frozen=True, gc=False):
    """DATA: what is to be broadcast, on its way to the sequencer."""

    last: int
    """SequenceNr: LastSeqReceived of the sender, its acknowledgment."""
    message: int
    """MessageNr: the sender's MessageId for it."""

    @property
    def source(self) -> int:
        """SenderID."""
        return self.packet.source

    def size(self) -> int:
        """A header and the data."""
        return _HEADER_SIZE + self.packet.body_size()


class PaperBroadcast(DataUnit, frozen=True, gc=False):
    """BROADCAST: a message with its number; without data (NULLDATA) when it answers a duplicate."""

    source: int
    """The sequencer; SenderID is the packet's."""
    number: int
    """SequenceNr."""
    message: int
    """MessageNr."""

    def without_data(self) -> "PaperBroadcast":
        """Its header, and NULLDATA: as many messages, all empty."""
        nothing = replace(self.packet, lengths=(0,) * len(self.packet.lengths), payload=b"")
        return replace(self, packet=nothing)

    def size(self) -> int:
        """A header and the data."""
        return _HEADER_SIZE + self.packet.body_size()


class PaperHeader(Unit, frozen=True, gc=False):
    """A header alone."""

    source: int
    """SenderID."""
    number: int
    """SequenceNr: what the sender has, in the sense of LastSeqReceived; from the sequencer, its last number."""

    def size(self) -> int:
        """A header."""
        return _HEADER_SIZE


class PaperRetransmit(PaperHeader, frozen=True, gc=False):
    """RETRANS: a request for everything from this number on."""

    def word(self) -> str:
        """A request."""
        return "request"

    def asks_for(self) -> str | None:
        """Everything from a number on."""
        return f"{self.number} and what follows"


class PaperDummy(PaperHeader, frozen=True, gc=False):
    """The dummy message of a node that has received much and sent nothing."""

    def word(self) -> str:
        """What it has."""
        return "status"


class PaperPhase(PaperHeader, frozen=True, gc=False):
    """PHASE1 or PHASE2: the history is full, stop; everybody has everything, go on."""

    phase: int

    def word(self) -> str:
        """It wants answers."""
        return "poll"


class PaperCommitted(PaperHeader, frozen=True, gc=False):
    """ACK_COMMIT: a phase has been completed, whichever."""

    def word(self) -> str:
        """It is."""
        return "done"


class PaperElection(PaperHeader, frozen=True, gc=False):
    """The sequencer seems to have failed; this is the number that the sender would go on with."""

    def word(self) -> str:
        """The beginning."""
        return "reset"


class PaperElected(PaperHeader, frozen=True, gc=False):
    """The sender has the highest number that it knows of, and is the sequencer now."""

    def word(self) -> str:
        """The membership changes."""
        return "view"
