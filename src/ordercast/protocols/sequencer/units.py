"""Units of the fixed-sequencer atomic broadcast.

Offers go to the sequencer, numbered broadcasts come from it, acknowledgments and status go both ways. When a node
fails, the others agree on the next view by ballots.

Sequence numbers count packets from 0, and every bound is exclusive: `received_below` is the next number expected, 0 if
nothing has been received. Every unit carries its sender's view number; units of other views are not processed.
"""

import msgspec

from ordercast.model.nodes import name_of
from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, PacketId, Unit

Ballot = tuple[int, int]
"""A ballot for the next view: its round and its coordinator, compared in this order."""

_PACKET_SIZE = FIXED_SIZE + 2 * NUMBER_SIZE  # the source's sequence number, and the number of its first message
_BALLOT_SIZE = 2 * NUMBER_SIZE
_RANGE_SIZE = 2 * NUMBER_SIZE


class Offer(DataUnit, frozen=True, gc=False, tag=40):
    """DATA: a packet for the sequencer to number.

    A large packet is broadcast by its sender; the sequencer then broadcasts only its number.
    """

    view: int
    received_below: int
    """Piggybacked acknowledgment."""
    direct: bool = False
    """True if the sender broadcast it to the whole group."""

    @property
    def source(self) -> int:
        """SenderID."""
        return self.packet.source

    def size(self) -> int:
        """A packet and two numbers."""
        return _PACKET_SIZE + 2 * NUMBER_SIZE + self.packet.body_size()


class Broadcast(DataUnit, frozen=True, gc=False, tag=41):
    """BROADCAST: a packet with its sequence number."""

    view: int
    source: int
    """The sequencer."""
    number: int
    """SequenceNr."""
    commit_below: int
    """Broadcasts that may be delivered: enough nodes hold them (resilience degree)."""
    stable_below: int
    """Broadcasts that every member has received."""

    def size(self) -> int:
        """A packet and five numbers."""
        return _PACKET_SIZE + 5 * NUMBER_SIZE + self.packet.body_size()


class NumberAnnouncement(Unit, frozen=True, gc=False, tag=42):
    """Sequence numbers, without the data, of packets that their senders broadcast (accept of the BB method)."""

    view: int
    source: int
    number: int
    """Of the first packet; the others have the numbers that follow."""
    packets: tuple[PacketId, ...]
    commit_below: int
    stable_below: int

    def size(self) -> int:
        """A pair for each packet."""
        return FIXED_SIZE + 4 * NUMBER_SIZE + 2 * NUMBER_SIZE * len(self.packets)

    def label(self) -> str:
        """As traces call it."""
        return "order"


class Acknowledgment(Unit, frozen=True, gc=False, tag=43):
    """Cumulative acknowledgment (the dummy message); with `missing` a retransmission request (RETRANS)."""

    view: int
    source: int
    received_below: int
    missing: tuple[tuple[int, int], ...] = ()
    """Ranges [start, stop) of missing numbers, as many as one request may ask for."""
    wants_status: bool = False
    """It asks for a `SequencerStatus` in reply."""

    def size(self) -> int:
        """A pair for each range."""
        return FIXED_SIZE + 2 * NUMBER_SIZE + _RANGE_SIZE * len(self.missing)

    def label(self) -> str:
        """A poll if it asks for a reply."""
        return "poll" if self.wants_status else "status"

    def asks_for(self) -> str | None:
        """The missing ranges."""
        return "+".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in self.missing) or None


class SequencerStatus(Unit, frozen=True, gc=False, tag=44):
    """STATUS and COMMIT: what the sequencer has numbered, what may be delivered, what is stable."""

    view: int
    source: int
    next_number: int
    commit_below: int
    stable_below: int
    reply_from: int = 0
    """Nodes that are to acknowledge, one bit each."""

    def size(self) -> int:
        """Five numbers."""
        return FIXED_SIZE + 5 * NUMBER_SIZE

    def label(self) -> str:
        """A poll if it asks for replies."""
        return "poll" if self.reply_from else "status"


class Synchronise(Unit, frozen=True, gc=False, tag=45):
    """PHASE1: the history is full, stop sending and acknowledge when nothing is missing. PHASE2: resume and reply."""

    view: int
    source: int
    round: int
    """Number of the synchronisation within the view."""
    phase: int
    """1 or 2."""
    next_number: int
    stable_below: int
    reply_from: int
    """Nodes that have not replied to this phase, one bit each."""

    def size(self) -> int:
        """Six numbers."""
        return FIXED_SIZE + 6 * NUMBER_SIZE

    def label(self) -> str:
        """It asks for replies."""
        return "poll"


class Synchronised(Unit, frozen=True, gc=False, tag=46):
    """ACK_COMMIT of phase 2: the node has resumed. That of phase 1 is an `Acknowledgment` of everything."""

    view: int
    source: int
    round: int
    received_below: int

    def size(self) -> int:
        """Three numbers."""
        return FIXED_SIZE + 3 * NUMBER_SIZE

    def label(self) -> str:
        """A phase is complete."""
        return "done"


class NextView(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The value that the members agree on when a node fails: the next view."""

    number: int
    members: int
    """Members of the new view, one bit each."""
    sequencer: int
    cut_below: int
    """Broadcasts below belong to the old view, for every member of the new one; the new view numbers from here."""
    why: str

    def size(self) -> int:
        """Its numbers and the sentence."""
        return 4 * NUMBER_SIZE + len(self.why.encode())


class Flush(Unit, frozen=True, gc=False, tag=47):
    """FLUSH: asks for a promise to stop and for a report of what was received. A PROPOSE implies it."""

    view: int
    source: int
    ballot: Ballot
    answered: int
    """Nodes that have replied and need not do so again, one bit each."""

    def size(self) -> int:
        """A ballot and two numbers."""
        return FIXED_SIZE + 2 * NUMBER_SIZE + _BALLOT_SIZE

    def label(self) -> str:
        """The beginning."""
        return "reset"


class Flushed(Unit, frozen=True, gc=False, tag=48):
    """FLUSH_OK: the sender has stopped; what it has received, and what it has accepted for the next view."""

    view: int
    source: int
    ballot: Ballot
    received_below: int
    accepted: tuple[Ballot, NextView] | None

    def size(self) -> int:
        """With the accepted view, if any."""
        more = _BALLOT_SIZE + self.accepted[1].size() if self.accepted else 0
        return FIXED_SIZE + 2 * NUMBER_SIZE + _BALLOT_SIZE + more

    def label(self) -> str:
        """A reply."""
        return "reply"


class Refused(Unit, frozen=True, gc=False, tag=49):
    """FLUSH_NO: the sender has promised to a later ballot."""

    view: int
    source: int
    ballot: Ballot
    """The refused ballot."""
    promised: Ballot

    def size(self) -> int:
        """Two ballots."""
        return FIXED_SIZE + NUMBER_SIZE + 2 * _BALLOT_SIZE

    def label(self) -> str:
        """A reply."""
        return "reply"


class Propose(Unit, frozen=True, gc=False, tag=50):
    """PROPOSE: the coordinator proposes the next view."""

    view: int
    source: int
    ballot: Ballot
    value: NextView
    answered: int
    """Nodes that have accepted it and need not reply again, one bit each."""

    def size(self) -> int:
        """A ballot, a view and two numbers."""
        return FIXED_SIZE + 2 * NUMBER_SIZE + _BALLOT_SIZE + self.value.size()

    def label(self) -> str:
        """It asks for replies."""
        return "poll"


class Accepted(Unit, frozen=True, gc=False, tag=51):
    """ACCEPTED: the sender holds every broadcast below the cut of the proposed view, and accepts it."""

    view: int
    source: int
    ballot: Ballot

    def size(self) -> int:
        """A ballot."""
        return FIXED_SIZE + NUMBER_SIZE + _BALLOT_SIZE

    def label(self) -> str:
        """Nothing is missing."""
        return "done"


class Install(Unit, frozen=True, gc=False, tag=52):
    """INSTALL: this view is decided. The unit's view number is that of the new view."""

    view: int
    source: int
    value: NextView

    def size(self) -> int:
        """A view."""
        return FIXED_SIZE + NUMBER_SIZE + self.value.size()

    def label(self) -> str:
        """The membership changes."""
        return "view"


class ViewRequest(Unit, frozen=True, gc=False, tag=53):
    """VIEWREQ: asks a node of a later view for that view."""

    view: int
    source: int

    def size(self) -> int:
        """A number."""
        return FIXED_SIZE + NUMBER_SIZE

    def label(self) -> str:
        """It asks for a reply."""
        return "poll"


class Fetch(Unit, frozen=True, gc=False, tag=54):
    """FETCH: requests broadcasts below the cut of a proposed view that the sender lacks."""

    view: int
    source: int
    ballot: Ballot
    missing: tuple[tuple[int, int], ...]
    """Ranges [start, stop) of numbers."""

    def size(self) -> int:
        """A pair for each range."""
        return FIXED_SIZE + NUMBER_SIZE + _BALLOT_SIZE + _RANGE_SIZE * len(self.missing)

    def label(self) -> str:
        """A request."""
        return "request"

    def asks_for(self) -> str | None:
        """The missing ranges, and of which ballot."""
        ranges = "+".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in self.missing)
        return f"{ranges} for ballot {self.ballot[0]} of {name_of(self.ballot[1])}"


class Supply(DataUnit, frozen=True, gc=False, tag=55):
    """SUPPLY: a broadcast in reply to FETCH."""

    view: int
    source: int
    number: int

    def size(self) -> int:
        """A packet and three numbers."""
        return _PACKET_SIZE + 3 * NUMBER_SIZE + self.packet.body_size()


ANSWERED_FROM_OLD_VIEWS = (Offer, Acknowledgment, Synchronised, Flush, Propose, ViewRequest, Fetch)
"""Units whose sender waits for a reply: if it is of an older view, it is sent the current one."""
