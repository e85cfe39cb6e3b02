"""Packets of finished epochs, until every node is known to have finished that epoch too.

A unit of a later epoch proves that its sender has finished the one before, and so lacks no packet of it.
"""

from collections import deque
from collections.abc import Iterable

from ordercast.model.declared_state import DeclaredState
from ordercast.model.units import Packet, PacketId


class FinishedEpochs(DeclaredState):
    """What recoveries left to be acknowledged, in the agreed order."""

    packets: deque[tuple[int, Packet]]
    """Each with its epoch."""
    epoch_seen: list[int]
    """By node: the highest epoch of the units received from it."""
    delivered: set[PacketId]
    """Of these packets, those that were delivered here when they were pre-acknowledged (`delivers_stable`)."""

    def __init__(self, nodes: int) -> None:
        self.packets, self.epoch_seen, self.delivered = deque(), [0] * nodes, set()

    def is_due(self, packet: Packet, node: int) -> bool:
        """Whether a packet is to be delivered to this node, and was not."""
        return bool(packet.destinations >> node & 1) and (packet.source, packet.seq) not in self.delivered

    def all_due(self, node: int) -> list[Packet]:
        """The packets that are to be delivered to this node, and were not."""
        packets = [packet for _, packet in self.packets if packet.destinations >> node & 1]
        return [packet for packet in packets if self.is_due(packet, node)] if self.delivered else packets

    def extend(self, epoch: int, packets: Iterable[Packet]) -> None:
        """Appends packets of an epoch that this node has finished."""
        self.packets.extend((epoch, packet) for packet in packets)

    def take_acknowledged(self) -> list[Packet]:
        """Takes out the packets of all epochs that every node has finished."""
        finished_below, taken = min(self.epoch_seen), []
        while self.packets and self.packets[0][0] < finished_below:
            taken.append(self.packets.popleft()[1])
        return taken

    def blockers(self) -> int:
        """The nodes that are not known to have finished the epoch of the first packet, as a bit mask."""
        if not self.packets:
            return 0
        return sum(1 << node for node, seen in enumerate(self.epoch_seen) if seen <= self.packets[0][0])
