"""Whether a run is complete: all messages are sent, and delivered wherever they must be."""

from ordercast.model.nodes import everybody, members
from ordercast.model.units import Packet


class Completion:
    """Counts packets due and packets delivered, by source and node."""

    def __init__(self, nodes: int, to_send: list[int], *, has_views: bool) -> None:
        """`to_send`: messages that each node will send. `has_views`: a run goes on without nodes that fail."""
        self._nodes, self._has_views = nodes, has_views
        self._unsent = to_send
        self._due = [[0] * nodes for _ in range(nodes)]  # packets, by source and destination
        self._delivered = [[0] * nodes for _ in range(nodes)]
        self._gone = 0
        self._aborted = 0

    def numbered(self, packet: Packet) -> None:
        """A packet was sent."""
        self._unsent[packet.source] -= len(packet.lengths)
        due = self._due[packet.source]
        for node in members(packet.destinations):
            due[node] += 1

    def has_sent_all(self, node: int) -> bool:
        """True if a node has nothing more to send."""
        return not self._unsent[node]

    def delivered(self, node: int, packet: Packet) -> None:
        """A packet was delivered at a node."""
        self._delivered[packet.source][node] += 1

    def left(self, node: int) -> None:
        """A node crashed, or was excluded from the view."""
        if self._has_views:
            self._gone |= 1 << node

    def aborted(self, node: int) -> None:
        """A node aborted; with views the others may go on without it."""
        self._aborted |= 1 << node

    def gone(self) -> tuple[int, ...]:
        """The nodes that left."""
        return members(self._gone)

    def aborted_nodes(self) -> tuple[int, ...]:
        """The nodes that aborted."""
        return members(self._aborted)

    def undelivered(self, node: int, sources: tuple[int, ...]) -> int:
        """How many packets of these sources were sent to a node and not delivered there. Not counted over views."""
        return sum(self._due[source][node] - self._delivered[source][node] for source in sources)

    def is_complete(self) -> bool:
        """True if the remaining nodes delivered all messages of each other, and the same messages of the others."""
        gone = self._gone | self._aborted if self._has_views else 0
        survivors = members(everybody(self._nodes) & ~gone)
        given_up = self._aborted and not self._has_views
        if given_up or not survivors or any(self._unsent[node] for node in survivors):
            return False
        for source, (due, delivered) in enumerate(zip(self._due, self._delivered, strict=True)):
            wanted = [delivered[survivors[0]]] * self._nodes if gone >> source & 1 else due
            if any(delivered[node] != wanted[node] for node in survivors):
                return False
        return True
