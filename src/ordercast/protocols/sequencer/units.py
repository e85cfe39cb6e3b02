"""What the sequencer's broadcast sends.

Offers go to the sequencer, numbered broadcasts come from it, and words about what has come go both ways. When a node
fails, the others agree on the next view by ballots.

Numbers of broadcasts count packets from 0, and every bound is exclusive: `received_below` is the next one expected, and
0 says that nothing has come yet. Every unit names its sender's view, which shuts out whoever is of another one.
"""

import msgspec

from ordercast.model.nodes import name_of
from ordercast.model.units import FIXED_SIZE, NUMBER_SIZE, DataUnit, MessageId, Unit

Ballot = tuple[int, int]
"""A try to agree on the next view: its round, and the node that tries."""

_PACKET_SIZE = FIXED_SIZE + 2 * NUMBER_SIZE  # its source's number for it, and of its first message
_BALLOT_SIZE = 2 * NUMBER_SIZE
_RANGE_SIZE = 2 * NUMBER_SIZE


class Offer(DataUnit, frozen=True, gc=False, tag=40):
    """DATA: a packet for the sequencer to number. A large one goes to everybody, and then only its number does."""

    view: int
    received_below: int
    """The acknowledgment that rides on it."""
    direct: bool = False
    """It went to everybody."""

    @property
    def source(self) -> int:
        """SenderID."""
        return self.packet.source

    def size(self) -> int:
        """A packet and two numbers."""
        return _PACKET_SIZE + 2 * NUMBER_SIZE + self.packet.body_size()


class Broadcast(DataUnit, frozen=True, gc=False, tag=41):
    """BROADCAST: a packet with its number."""

    view: int
    source: int
    """The sequencer."""
    number: int
    """SequenceNr."""
    commit_below: int
    """What may be delivered."""
    stable_below: int
    """What everybody has."""

    def size(self) -> int:
        """A packet and five numbers."""
        return _PACKET_SIZE + 5 * NUMBER_SIZE + self.packet.body_size()


class Order(Unit, frozen=True, gc=False, tag=42):
    """The numbers of packets that their senders broadcast themselves (the BB method's accept)."""

    view: int
    source: int
    number: int
    """Of the first; the others follow."""
    packets: tuple[MessageId, ...]
    commit_below: int
    stable_below: int

    def size(self) -> int:
        """A pair for each."""
        return FIXED_SIZE + 4 * NUMBER_SIZE + 2 * NUMBER_SIZE * len(self.packets)

    def word(self) -> str:
        """It says where things stand."""
        return "order"


class Have(Unit, frozen=True, gc=False, tag=43):
    """What a node has, told to the sequencer: the dummy message; with `missing` the request for more (RETRANS)."""

    view: int
    source: int
    received_below: int
    missing: tuple[tuple[int, int], ...] = ()
    """The ranges [start, stop) of numbers that it lacks, as far as one answer can fill them."""
    asks: bool = False
    """It wants to hear how things stand."""

    def size(self) -> int:
        """A pair for each range."""
        return FIXED_SIZE + 2 * NUMBER_SIZE + _RANGE_SIZE * len(self.missing)

    def word(self) -> str:
        """A poll, if it wants an answer."""
        return "poll" if self.asks else "status"

    def asks_for(self) -> str | None:
        """The missing ranges."""
        return "+".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in self.missing) or None


class Bulletin(Unit, frozen=True, gc=False, tag=44):
    """How things stand, told by the sequencer: STATUS; and COMMIT, when that is the news."""

    view: int
    source: int
    next_number: int
    commit_below: int
    stable_below: int
    wants: int = 0
    """The nodes that are to say what they have, one bit each."""

    def size(self) -> int:
        """Five numbers."""
        return FIXED_SIZE + 5 * NUMBER_SIZE

    def word(self) -> str:
        """A poll, if it wants answers."""
        return "poll" if self.wants else "status"


class Synchronise(Unit, frozen=True, gc=False, tag=45):
    """PHASE1 and PHASE2: the history is full: stop, and say when you have everything; go on, and say so."""

    view: int
    source: int
    round: int
    """Counts the synchronisations of a view."""
    phase: int
    """1 or 2."""
    next_number: int
    stable_below: int
    wants: int
    """Those that have not answered, one bit each."""

    def size(self) -> int:
        """Six numbers."""
        return FIXED_SIZE + 6 * NUMBER_SIZE

    def word(self) -> str:
        """It wants answers."""
        return "poll"


class Synchronised(Unit, frozen=True, gc=False, tag=46):
    """ACK_COMMIT of the second phase: a node goes on. That of the first is a `Have` of everything."""

    view: int
    source: int
    round: int
    received_below: int

    def size(self) -> int:
        """Three numbers."""
        return FIXED_SIZE + 3 * NUMBER_SIZE

    def word(self) -> str:
        """It has it."""
        return "done"


class NextView(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is agreed on when a node fails. It says all that one who joins would have to know, but the ids."""

    number: int
    members: int
    """Those that go on, one bit each."""
    sequencer: int
    cut_below: int
    """The broadcasts below are the old view's, for all that go on; those from it on will be the new one's."""
    why: str

    def size(self) -> int:
        """Its numbers and the sentence."""
        return 4 * NUMBER_SIZE + len(self.why.encode())


class Flush(Unit, frozen=True, gc=False, tag=47):
    """FLUSH: promise me to stop, and say what you have. PROPOSE does the same to those who missed it."""

    view: int
    source: int
    ballot: Ballot
    heard: int
    """Those that have answered; they need not do so again."""

    def size(self) -> int:
        """A ballot and two numbers."""
        return FIXED_SIZE + 2 * NUMBER_SIZE + _BALLOT_SIZE

    def word(self) -> str:
        """The beginning."""
        return "reset"


class Flushed(Unit, frozen=True, gc=False, tag=48):
    """FLUSH_OK: I have stopped; this is what I have, and what I have accepted for the next view."""

    view: int
    source: int
    ballot: Ballot
    received_below: int
    accepted: tuple[Ballot, NextView] | None

    def size(self) -> int:
        """With the view that was accepted."""
        more = _BALLOT_SIZE + self.accepted[1].size() if self.accepted else 0
        return FIXED_SIZE + 2 * NUMBER_SIZE + _BALLOT_SIZE + more

    def word(self) -> str:
        """What it has."""
        return "reply"


class Refused(Unit, frozen=True, gc=False, tag=49):
    """FLUSH_NO: I have promised myself to a later ballot."""

    view: int
    source: int
    ballot: Ballot
    """The one refused."""
    promised: Ballot

    def size(self) -> int:
        """Two ballots."""
        return FIXED_SIZE + NUMBER_SIZE + 2 * _BALLOT_SIZE

    def word(self) -> str:
        """An answer."""
        return "reply"


class Propose(Unit, frozen=True, gc=False, tag=50):
    """PROPOSE: this is to be the next view."""

    view: int
    source: int
    ballot: Ballot
    value: NextView
    heard: int
    """Those that have accepted it; they need not say so again."""

    def size(self) -> int:
        """A ballot, a view and two numbers."""
        return FIXED_SIZE + 2 * NUMBER_SIZE + _BALLOT_SIZE + self.value.size()

    def word(self) -> str:
        """It wants answers."""
        return "poll"


class Accept(Unit, frozen=True, gc=False, tag=51):
    """ACCEPT: I hold every broadcast that the proposed view takes over, and accept it."""

    view: int
    source: int
    ballot: Ballot

    def size(self) -> int:
        """A ballot."""
        return FIXED_SIZE + NUMBER_SIZE + _BALLOT_SIZE

    def word(self) -> str:
        """It lacks nothing."""
        return "done"


class Install(Unit, frozen=True, gc=False, tag=52):
    """INSTALL: this view is agreed on. Its number is the unit's view."""

    view: int
    source: int
    value: NextView

    def size(self) -> int:
        """A view."""
        return FIXED_SIZE + NUMBER_SIZE + self.value.size()

    def word(self) -> str:
        """The membership changes."""
        return "view"


class ViewRequest(Unit, frozen=True, gc=False, tag=53):
    """VIEWREQ: you are of a later view than I; tell me about it."""

    view: int
    source: int

    def size(self) -> int:
        """A number."""
        return FIXED_SIZE + NUMBER_SIZE

    def word(self) -> str:
        """It wants an answer."""
        return "poll"


class Fetch(Unit, frozen=True, gc=False, tag=54):
    """FETCH: these broadcasts I lack of what a next view takes over."""

    view: int
    source: int
    ballot: Ballot
    missing: tuple[tuple[int, int], ...]
    """Ranges [start, stop) of numbers."""

    def size(self) -> int:
        """A pair for each range."""
        return FIXED_SIZE + NUMBER_SIZE + _BALLOT_SIZE + _RANGE_SIZE * len(self.missing)

    def word(self) -> str:
        """A request."""
        return "request"

    def asks_for(self) -> str | None:
        """The missing ranges, and of which ballot."""
        ranges = "+".join(str(a) if b == a + 1 else f"{a}-{b - 1}" for a, b in self.missing)
        return f"{ranges} for ballot {self.ballot[0]} of {name_of(self.ballot[1])}"


class Supply(DataUnit, frozen=True, gc=False, tag=55):
    """SUPPLY: one of them."""

    view: int
    source: int
    number: int

    def size(self) -> int:
        """A packet and three numbers."""
        return _PACKET_SIZE + 3 * NUMBER_SIZE + self.packet.body_size()


OLD_VIEW = (Offer, Have, Synchronised, Flush, Propose, ViewRequest, Fetch)
"""Whoever sends these from an older view wants an answer, and is told the view that is."""
