"""The sending log (the papers' SL): the source's retransmission buffer."""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from ordercast.model.declared_state import DeclaredState, Derived
from ordercast.model.nodes import members
from ordercast.model.units import Packet


class SendingLog(DeclaredState):
    """Own packets that are not known to be accepted by all their destinations."""

    me: Final[int]
    by_destination: list[deque[Packet]]
    """What each node has not acknowledged, in the order of the numbers to it (PSEQ)."""
    lacking: Derived[dict[int, int]]
    """By seq, ascending: the number of destinations that have not acknowledged it."""

    def __init__(self, me: int, nodes: int) -> None:
        self.me = me
        self.by_destination = [deque() for _ in range(nodes)]
        self.lacking = {}

    def derive(self) -> None:
        """Counts the destinations of each packet."""
        self.lacking = dict(sorted(Counter([packet.seq for log in self.by_destination for packet in log]).items()))

    def __len__(self) -> int:
        return len(self.lacking)

    def lowest(self, default: int) -> int:
        """The lowest seq that is kept."""
        return next(iter(self.lacking), default)

    def append(self, packet: Packet) -> None:
        """Keeps a packet until all its destinations, other than this node, have accepted it."""
        lacking = 0
        for node in members(packet.destinations):
            if node != self.me:
                self.by_destination[node].append(packet)
                lacking += 1
        if lacking:
            self.lacking[packet.seq] = lacking

    def acknowledge(self, node: int, below: int) -> list[Packet]:
        """Notes that a node has accepted everything below a seq; returns what all destinations have accepted now."""
        released: list[Packet] = []
        waiting = self.by_destination[node]
        while waiting and waiting[0].seq < below:
            packet = waiting.popleft()
            lacking = self.lacking[packet.seq] - 1
            if lacking:
                self.lacking[packet.seq] = lacking
            else:
                del self.lacking[packet.seq]
                released.append(packet)
        return released

    def find(self, node: int, ranges: Iterable[tuple[int, int]]) -> list[Packet]:
        """Unacknowledged packets to a node, by ranges [start, stop) of the numbers to it (PSEQ)."""
        waiting = self.by_destination[node]
        if not waiting:
            return []
        lowest, found = waiting[0].seq_to[node], []
        for start, stop in ranges:
            found += [waiting[at] for at in range(max(start - lowest, 0), min(stop - lowest, len(waiting)))]
        return found

    def blockers(self) -> int:
        """The nodes that have not acknowledged something, as a bit mask."""
        mask = 0
        for node, waiting in enumerate(self.by_destination):
            if waiting:
                mask |= 1 << node
        return mask
