"""Whether a run is complete: nothing is left to send, and everybody was given what it must be given."""

from ordercast.model.nodes import everybody, members
from ordercast.model.units import Packet


class Completion:
    """Counts what is due and what was delivered, by source and node."""

    def __init__(self, nodes: int, to_send: list[int], *, has_views: bool) -> None:
        """`to_send` says how many messages each node will send; with views, a run goes on without those that fail."""
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
        """Whether a node has nothing more to send."""
        return not self._unsent[node]

    def delivered(self, node: int, packet: Packet) -> None:
        """A node was given a packet."""
        self._delivered[packet.source][node] += 1

    def left(self, node: int) -> None:
        """A node stopped for ever, or the others shut it out."""
        if self._has_views:
            self._gone |= 1 << node

    def aborted(self, node: int) -> None:
        """A node gave the group up; with views the others may go on without it."""
        self._aborted |= 1 << node

    def gone(self) -> tuple[int, ...]:
        """The nodes that left."""
        return members(self._gone)

    def any_aborted(self) -> bool:
        """Whether a node gave the group up."""
        return self._aborted != 0

    def is_complete(self) -> bool:
        """Of those that are left, each was given all that each sent to it, and all alike what the others sent."""
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
