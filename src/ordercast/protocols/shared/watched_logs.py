"""Logs whose first entries wait until every destination has said enough.

The papers ask, after every receipt and for every source, whether the top of a log lies below the minimum of what
all its destinations said (minAL, minPAL). Computing those minima costs n times n for a receipt. Here a top
remembers the first destination that still blocks it, and only news from that node make it look again, from there
on: what a node said never becomes less, so those before it have passed for good. All in all a packet costs one
look at each of its destinations.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from ordercast.model.nodes import members
from ordercast.model.units import Packet

UNBOUNDED = 1 << 62
"""Above every number that a protocol reaches."""


class WatchedLogs:
    """Several logs, one a row, of packets that wait for what the nodes say about their sources."""

    __slots__ = (
        "_by_all", "_passed_below", "_passed_set", "_passed_source", "_place", "_so_far", "columns", "rows", "watchers"
    )  # fmt: skip

    def __init__(self, rows: int, columns: list[Sequence[int]], by_all: int = 0) -> None:
        """`by_all`: a set of nodes that every packet waits for, instead of its destinations."""
        self._by_all = by_all
        self.rows: list[deque[Packet]] = [deque() for _ in range(rows)]
        self.columns = columns
        """columns[node][source]: node has said that it has passed everything of source below this."""
        self.watchers: list[list[int]] = [[] for _ in columns]
        """By node: the rows whose top waits for it."""
        # The look at a row's top that was broken off: at which of its destinations, and the lowest said until then.
        self._place = [0] * rows
        self._so_far = [UNBOUNDED] * rows
        # The last look that came through: everything of this source to this set has passed below this.
        self._passed_source = [-1] * rows
        self._passed_set = [0] * rows
        self._passed_below = [0] * rows

    def wake(self, node: int) -> list[int]:
        """The rows whose top was waiting for what this node has now said, ascending; they no longer watch it."""
        watchers = self.watchers[node]
        if not watchers:
            return watchers
        column = self.columns[node]
        woken: list[int] = []
        waiting: list[int] = []
        for row in watchers:
            top = self.rows[row][0]
            if column[top.source] > top.seq:
                woken.append(row)
            else:
                waiting.append(row)
        if woken:
            self.watchers[node] = waiting
            woken.sort()  # the order of waking must not depend on how the rows came to watch
        return woken

    def rise(self, row: int) -> list[Packet]:
        """Takes out all that stands at the top of a row and that every destination has passed.

        To be called when the row got its first entry, and when it was woken.
        """
        log = self.rows[row]
        columns = self.columns
        risen: list[Packet] = []
        while log:
            packet = log[0]
            seq = packet.seq
            source, wanted = packet.source, self._by_all or packet.destinations
            if seq >= self._passed_below[row] or wanted != self._passed_set[row] or source != self._passed_source[row]:
                nodes, lowest = members(wanted), self._so_far[row]
                for place in range(self._place[row], len(nodes)):
                    said = columns[nodes[place]][source]
                    if said <= seq:
                        self._place[row], self._so_far[row] = place, lowest
                        self.watchers[nodes[place]].append(row)
                        return risen
                    if said < lowest:
                        lowest = said
                self._place[row], self._so_far[row] = 0, UNBOUNDED
                self._passed_source[row], self._passed_set[row] = source, wanted
                self._passed_below[row] = lowest
            log.popleft()
            risen.append(packet)
        return risen

    def blockers(self, row: int) -> int:
        """All the nodes that the top of a row still waits for, as a set."""
        log = self.rows[row]
        if not log:
            return 0
        top, mask = log[0], 0
        for node in members(self._by_all or top.destinations):
            if self.columns[node][top.source] <= top.seq:
                mask |= 1 << node
        return mask

    def refill(self, rows: Iterable[Iterable[Packet]], columns: Sequence[Sequence[int]]) -> None:
        """Makes the contents these; tops are looked at anew, and none of them may be ready to rise."""
        self.columns[:] = columns
        for row, packets in enumerate(rows):
            self.rows[row] = deque(packets)
            self._place[row], self._so_far[row] = 0, UNBOUNDED
            self._passed_source[row], self._passed_set[row], self._passed_below[row] = -1, 0, 0
        self.watchers = [[] for _ in self.columns]
        for row in range(len(self.rows)):
            risen = self.rise(row)
            assert not risen, "a snapshot is taken between transitions, when all that could rise has risen"
