"""How many packets of each node were in flight at once: numbered, delivered by nobody here, accepted by nobody else.

Whatever an order counts in its window, these are counted in it.
"""

from ordercast.model.machine import Deliver, Level, Reached
from ordercast.model.units import Packet


class Flight:
    """By node: packets in flight."""

    def __init__(self, nodes: int) -> None:
        self.most = [0] * nodes
        """By node: the most at one time."""
        self._flying: list[set[int]] = [set() for _ in range(nodes)]  # first messages

    def number(self, node: int, packet: Packet) -> None:
        """A node sends a packet; one for itself alone is not in flight."""
        if packet.destinations & ~(1 << node):
            self._flying[node].add(packet.first)
            self.most[node] = max(self.most[node], len(self._flying[node]))

    def reach(self, node: int, output: Reached) -> None:
        """What a node knows of a packet rose."""
        packet = output.packet
        if output.level is Level.ACCEPTED and packet.source != node:
            self._flying[packet.source].discard(packet.first)

    def deliver(self, node: int, output: Deliver) -> None:
        """A packet was delivered."""
        if output.packet.source == node:
            self._flying[node].discard(output.packet.first)
