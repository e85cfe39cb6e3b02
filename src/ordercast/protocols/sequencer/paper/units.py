"""Units of the printed sequencer: the messages of the paper's table, each with the header fields that it uses.

The header (Figure 2) has a type, SequenceNr, MessageNr, SenderID and DestID; here the type is the class, and the host
handles the destination. The election's messages are not in the table: the paper's last section only sketches one.
"""

from msgspec.structs import replace

from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, Unit

_HEADER_SIZE = FIXED_SIZE + 2 * NUMBER_SIZE  # SequenceNr and MessageNr beside what all units have


class PaperData(DataUnit, frozen=True, gc=False):
    """DATA: a message for the sequencer to broadcast."""

    last: int
    """SequenceNr: LastSeqReceived of the sender, its acknowledgment."""
    message: int
    """MessageNr: the sender's PacketId for it."""

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
        """The same with NULLDATA: as many messages, all empty."""
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
    """SequenceNr: the sender's LastSeqReceived; from the sequencer, its last number."""

    def size(self) -> int:
        """A header."""
        return _HEADER_SIZE


class PaperRetransmit(PaperHeader, frozen=True, gc=False):
    """RETRANS: a request for everything from this number on."""

    def label(self) -> str:
        """A request."""
        return "request"

    def asks_for(self) -> str | None:
        """Everything from a number on."""
        return f"{self.number} and what follows"


class PaperDummy(PaperHeader, frozen=True, gc=False):
    """The dummy message: an acknowledgment of a node that has received much and sent nothing."""

    def label(self) -> str:
        """An acknowledgment."""
        return "status"


class PaperPhase(PaperHeader, frozen=True, gc=False):
    """PHASE1: the history is full, stop sending. PHASE2: everybody has everything, resume."""

    phase: int

    def label(self) -> str:
        """It asks for replies."""
        return "poll"


class PaperCommitted(PaperHeader, frozen=True, gc=False):
    """ACK_COMMIT: a phase is complete, without saying which."""

    def label(self) -> str:
        """A phase is complete."""
        return "done"


class PaperElection(PaperHeader, frozen=True, gc=False):
    """The sequencer seems to have failed; the number that the sender would continue with."""

    def label(self) -> str:
        """The beginning."""
        return "reset"


class PaperElected(PaperHeader, frozen=True, gc=False):
    """The sender has the highest number that it knows of, and is the sequencer from now on."""

    def label(self) -> str:
        """The membership changes."""
        return "view"
