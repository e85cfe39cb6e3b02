"""Logs of packets that wait for the acknowledgments of all their destinations.

The papers compare, after every receipt and for every source, the head of a log with the minimum of the acknowledgments
of all its destinations (minAL, minPAL). Computing those minima takes n times n steps for a receipt. Here each head
remembers the first destination that has not acknowledged it, and is looked at again only when that node acknowledges
more. Acknowledgments never decrease, so destinations that were passed need no second look: in total a packet
costs one look at each of its destinations.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from ordercast.model.declared_state import DeclaredState, Derived
from ordercast.model.nodes import members
from ordercast.model.units import Packet

UNBOUNDED = 1 << 62
"""Above every sequence number."""


class PendingAcknowledgments(DeclaredState):
    """Several logs of packets, which leave them in order as all their destinations acknowledge them."""

    required: Final[int]
    """Nodes whose acknowledgment every packet needs, instead of its destinations'; 0: its destinations."""
    logs: list[deque[Packet]]
    """The packets that wait, in their order."""
    acknowledged_below: list[tuple[int, ...]]
    """By node and source: the node has acknowledged everything of the source below this seq."""
    waiting_for: Derived[list[list[int]]]
    """By node: the logs whose head waits for its acknowledgment."""
    # Where the check of each log's head stopped: at which of its destinations, and the lowest acknowledgment so far.
    _checked: Derived[list[int]]
    _lowest: Derived[list[int]]
    # The last complete check of each log: everything of this source to this set is acknowledged below this seq.
    _passed_source: Derived[list[int]]
    _passed_set: Derived[list[int]]
    _passed_below: Derived[list[int]]

    def __init__(self, logs: int, acknowledged_below: Iterable[tuple[int, ...]], required: int = 0) -> None:
        self.required = required
        self.logs = [deque() for _ in range(logs)]
        self.acknowledged_below = list(acknowledged_below)
        self.derive()

    def derive(self) -> None:
        """Checks all heads anew. None of them may be fully acknowledged: those were taken out before."""
        self.forget_checks()
        for log, packets in enumerate(self.logs):
            if packets:
                acknowledged = self.take_acknowledged(log)
                assert not acknowledged, "a state between transitions has no acknowledged packet at the head of a log"

    def forget_checks(self) -> None:
        """Packets were inserted or removed, or acknowledgments taken back: `take_acknowledged` follows, of each log."""
        logs = len(self.logs)
        self.waiting_for = [[] for _ in self.acknowledged_below]
        self._checked, self._lowest = [0] * logs, [UNBOUNDED] * logs
        self._passed_source, self._passed_set, self._passed_below = [-1] * logs, [0] * logs, [0] * logs

    def clear(self, acknowledged_below: Sequence[tuple[int, ...]]) -> None:
        """Drops all packets, and starts from these acknowledgments."""
        self.logs = [deque() for _ in self.logs]
        self.acknowledged_below = list(acknowledged_below)
        self.derive()

    def unblocked_by(self, node: int) -> list[int]:
        """The logs whose head waited for this node and is now acknowledged by it, ascending; they no longer wait."""
        blocked = self.waiting_for[node]
        if not blocked:
            return blocked
        below = self.acknowledged_below[node]
        unblocked: list[int] = []
        waiting: list[int] = []
        for log in blocked:
            head = self.logs[log][0]
            if below[head.source] > head.seq:
                unblocked.append(log)
            else:
                waiting.append(log)
        if unblocked:
            self.waiting_for[node] = waiting
            unblocked.sort()  # their order must not depend on when each began to wait
        return unblocked

    def take_acknowledged(self, log: int) -> list[Packet]:
        """Takes out the packets at the head of a log that all their destinations have acknowledged.

        To be called when the log got its first packet, and when it was unblocked.
        """
        packets = self.logs[log]
        acknowledged_below = self.acknowledged_below
        taken: list[Packet] = []
        while packets:
            packet = packets[0]
            seq = packet.seq
            source, wanted = packet.source, self.required or packet.destinations
            if seq >= self._passed_below[log] or wanted != self._passed_set[log] or source != self._passed_source[log]:
                nodes, lowest = members(wanted), self._lowest[log]
                for place in range(self._checked[log], len(nodes)):
                    below = acknowledged_below[nodes[place]][source]
                    if below <= seq:
                        self._checked[log], self._lowest[log] = place, lowest
                        self.waiting_for[nodes[place]].append(log)
                        return taken
                    if below < lowest:
                        lowest = below
                self._checked[log], self._lowest[log] = 0, UNBOUNDED
                self._passed_source[log], self._passed_set[log] = source, wanted
                self._passed_below[log] = lowest
            packets.popleft()
            taken.append(packet)
        return taken

    def blockers(self, log: int) -> int:
        """The nodes that have not acknowledged the head of a log, as a bit mask."""
        packets = self.logs[log]
        if not packets:
            return 0
        head, mask = packets[0], 0
        for node in members(self.required or head.destinations):
            if self.acknowledged_below[node][head.source] <= head.seq:
                mask |= 1 << node
        return mask
