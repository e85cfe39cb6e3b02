"""A log whose first entry leaves when every node has acknowledged it; `shared.pending_acknowledgments` has several.

The paper compares the top of a log, after every receipt, with the minimum of what all nodes acknowledged (minAL_j,
minPAL_j). Here the log remembers the first node that has not acknowledged its top. Only an acknowledgment from that
node makes it look again, from that node on: within an epoch acknowledgments never decrease. A new entry waits for every
node, since no acknowledgment of it can have been received before it.
"""

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

from ordercast.model.declared_state import DeclaredState, Derived

T = TypeVar("T")


class UnanimousLog(DeclaredState, Generic[T]):
    """Entries (source, seq, item) that leave in the order in which they were appended."""

    entries: deque[tuple[int, int, T]]
    """What not all nodes are known to have acknowledged, in the order in which it came."""
    acknowledged_below: list[tuple[int, ...]]
    """By node and source: the node has acknowledged everything of the source below this."""
    waiting_for: Derived[int]
    """The first node that is not known to have acknowledged the top; all nodes before it have."""
    _passed_below: Derived[list[int]]
    """By source: all nodes are known to have acknowledged everything below this."""

    def __init__(self, nodes: int, first: tuple[int, ...]) -> None:
        """`first`: by source, its first number."""
        self.entries, self.acknowledged_below = deque(), [first] * nodes
        self.waiting_for, self._passed_below = 0, [0] * nodes

    def take_acknowledged(self) -> list[T]:
        """Removes and returns the entries from the top on that all nodes have acknowledged.

        Call it when the acknowledgments of the node `waiting_for` have changed.
        """
        entries, columns, passed_below = self.entries, self.acknowledged_below, self._passed_below
        taken: list[T] = []
        while entries:
            source, seq, item = entries[0]
            if seq >= passed_below[source]:
                for node in range(self.waiting_for, len(columns)):
                    if columns[node][source] <= seq:
                        self.waiting_for = node
                        return taken
                self.waiting_for = 0
                passed_below[source] = min([column[source] for column in columns])
            entries.popleft()
            taken.append(item)
        return taken

    def blockers(self) -> int:
        """The set of all nodes that have not acknowledged the top."""
        if not self.entries:
            return 0
        source, seq, _ = self.entries[0]
        return sum(1 << node for node, column in enumerate(self.acknowledged_below) if column[source] <= seq)

    def refill(self, entries: Sequence[tuple[int, int, T]], acknowledged_below: Sequence[tuple[int, ...]]) -> None:
        """Replaces the contents; the next `take_acknowledged` looks at the top from the first node on."""
        self.entries = deque(entries)
        self.acknowledged_below[:] = acknowledged_below
        self.waiting_for, self._passed_below = 0, [0] * len(self.acknowledged_below)

    def derive(self) -> None:
        """Finds the node that the top waits for."""
        self.waiting_for, self._passed_below = 0, [0] * len(self.acknowledged_below)
        if self.entries:
            taken = self.take_acknowledged()
            assert not taken, "a state between transitions has no acknowledged entry at the top"
