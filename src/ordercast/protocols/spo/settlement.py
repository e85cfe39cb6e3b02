"""What SPO and PO do besides when their group is a view of a changing group (`GroupConfig.views`).

A source says in every status below which number *all* its packets are with all their destinations (`settled_below`).
A packet is pre-acknowledged only when its source has said so of everything before it. Destinations know only of the
packets to them; without this, a view may have to end behind a packet that a member was given and before one that
another member never got (docs/explanation/view-changes.md). In return
 - a source keeps its packets until they are settled, and its window counts those that are not;
 - it owes a status when more is settled than it said, and it has sent packets that wait for this;
 - whoever waits for a source's word polls it.

With `views` off nothing here is used.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.units import Packet
from ordercast.protocols.shared.sending_log import SendingLog


class Settlement(DeclaredState):
    """What is settled, and what waits for it."""

    me: Final[int]

    settled_below: list[int]
    """By source: all its packets below are with all their destinations. It said so; or this member pre-acknowledged the
    last of them, and so knows it of that one by its destinations, and of all before."""
    said_below: int
    """What I said of my own packets in my last transmission."""
    last_to_others: int
    """The last of my packets that had other destinations than me; -1: none."""
    unsettled: deque[Packet]
    """Own packets that are not settled."""
    to_all: deque[int]
    """The seqs of those that were submitted to all."""
    held: list[deque[Packet]]
    """By source: accepted by all their destinations, and not known to be behind settled packets only."""

    def __init__(self, me: int, first: Sequence[int]) -> None:
        self.me, self.settled_below, self.said_below, self.last_to_others = me, list(first), first[me], -1
        self.unsettled, self.to_all, self.held = deque(), deque(), [deque() for _ in first]

    def in_window(self, next_seq: int) -> int:
        """How many own packets are not settled, and those behind them."""
        return next_seq - self.settled_below[self.me]

    def keep(self, packet: Packet, *, to_all: bool) -> None:
        """An own packet is sent."""
        self.unsettled.append(packet)
        if to_all:
            self.to_all.append(packet.seq)
        if packet.destinations != 1 << self.me:
            self.last_to_others = packet.seq

    def settle_own(self, sent: SendingLog, next_seq: int) -> bool:
        """Own packets were accepted or sent: what is settled now. True if it is more than before."""
        below = sent.lowest(next_seq)
        if below <= self.settled_below[self.me]:
            return False
        self.settled_below[self.me] = below
        while self.unsettled and self.unsettled[0].seq < below:
            self.unsettled.popleft()
        while self.to_all and self.to_all[0] < below:
            self.to_all.popleft()
        return True

    def owes_status(self) -> bool:
        """True if a destination may wait for a number that I have not said."""
        return self.said_below < min(self.settled_below[self.me], self.last_to_others)

    def hear(self, source: int, below: int) -> bool:
        """A source's word; True if a held packet waited for it."""
        if below <= self.settled_below[source]:
            return False
        self.settled_below[source] = below
        held = self.held[source]
        return bool(held) and held[0].seq <= below

    def release(self, source: int, packets: list[Packet]) -> list[Packet]:
        """Adds packets that all their destinations have accepted; takes out those that wait for nothing more."""
        held, below = self.held[source], self.settled_below[source]
        if packets and not held and (last := packets[-1].seq) <= below:  # nothing is lost: none of them waits
            if last == below:
                self.settled_below[source] = last + 1
            return packets
        released = []
        held.extend(packets)
        while held and held[0].seq <= below:
            packet = held.popleft()
            below = max(below, packet.seq + 1)
            released.append(packet)
        self.settled_below[source] = below
        return released

    def blockers(self) -> list[int]:
        """By source: the source, as a bit mask, if a packet waits for its word."""
        return [1 << source if held else 0 for source, held in enumerate(self.held)]
