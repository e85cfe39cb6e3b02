"""The sending log (the papers' SL): what a source keeps because some destination may still ask for it."""

from collections import deque
from collections.abc import Iterable

from ordercast.model.nodes import members
from ordercast.model.units import Packet


class SendingLog:
    """Own packets that are not known to be accepted by all their destinations."""

    __slots__ = ("_lacking", "_me", "by_destination")

    def __init__(self, me: int, nodes: int) -> None:
        self._me = me
        self.by_destination: list[deque[Packet]] = [deque() for _ in range(nodes)]
        """What each is not known to have accepted, in the order of its own numbers (PSEQ)."""
        self._lacking: dict[int, int] = {}  # by seq: how many destinations are not known to have accepted it

    def __len__(self) -> int:
        return len(self._lacking)

    def append(self, packet: Packet) -> None:
        """Keeps a packet until all its destinations, other than ourselves, have accepted it."""
        lacking = 0
        for node in members(packet.destinations):
            if node != self._me:
                self.by_destination[node].append(packet)
                lacking += 1
        if lacking:
            self._lacking[packet.seq] = lacking

    def accepted(self, node: int, below: int) -> list[Packet]:
        """Notes that a node has accepted all below a seq; gives back what nobody lacks any more."""
        released: list[Packet] = []
        waiting = self.by_destination[node]
        while waiting and waiting[0].seq < below:
            packet = waiting.popleft()
            lacking = self._lacking[packet.seq] - 1
            if lacking:
                self._lacking[packet.seq] = lacking
            else:
                del self._lacking[packet.seq]
                released.append(packet)
        return released

    def find(self, node: int, ranges: Iterable[tuple[int, int]]) -> list[Packet]:
        """What a node may lack, by the ranges [start, stop) of its own numbers (PSEQ)."""
        waiting = self.by_destination[node]
        if not waiting:
            return []
        lowest, found = waiting[0].seq_to[node], []
        for start, stop in ranges:
            found += [waiting[at] for at in range(max(start - lowest, 0), min(stop - lowest, len(waiting)))]
        return found

    def blockers(self) -> int:
        """The nodes that are not known to have accepted something, as a set."""
        mask = 0
        for node, waiting in enumerate(self.by_destination):
            if waiting:
                mask |= 1 << node
        return mask

    def snapshot(self) -> tuple[tuple[Packet, ...], ...]:
        """By destination, what it is not known to have accepted."""
        return tuple(map(tuple, self.by_destination))

    def restore(self, snapshot: tuple[tuple[Packet, ...], ...]) -> None:
        """Back to the contents of a snapshot."""
        self.by_destination = [deque(packets) for packets in snapshot]
        self._lacking = {}
        for packets in snapshot:
            for packet in packets:
                self._lacking[packet.seq] = self._lacking.get(packet.seq, 0) + 1
