"""A log whose first entry waits until every node has passed it.

The papers ask after every receipt whether the top of a log lies below the minimum of what all nodes said (minAL_j,
minPAL_j). Here the top remembers the first node that still holds it back, and only news from that node make it look
again, from there on: what a node said never becomes less within an epoch. A new entry is held back by everybody: nobody
can have spoken of it here before it came.
"""

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class UnanimousLog(Generic[T]):
    """Entries (source, seq, what), in one order, that leave it in that order."""

    __slots__ = ("_passed_below", "columns", "entries", "holds_back")

    def __init__(self, columns: list[Sequence[int]]) -> None:
        self.entries: deque[tuple[int, int, T]] = deque()
        self.columns = columns
        """columns[node][source]: the node has passed everything of the source below this."""
        self.holds_back = 0
        """The first node that the top is not known to have been passed by; those before it have passed it."""
        self._passed_below = [0] * len(columns)
        """By source: everybody has passed everything below this, as far as was looked at."""

    def rise(self) -> list[T]:
        """Takes out all that stands at the top and that everybody has passed.

        To be called when the node that holds the top back has said more.
        """
        entries, columns, passed_below = self.entries, self.columns, self._passed_below
        risen: list[T] = []
        while entries:
            source, seq, what = entries[0]
            if seq >= passed_below[source]:
                for node in range(self.holds_back, len(columns)):
                    if columns[node][source] <= seq:
                        self.holds_back = node
                        return risen
                self.holds_back = 0
                passed_below[source] = min([column[source] for column in columns])
            entries.popleft()
            risen.append(what)
        return risen

    def blockers(self) -> int:
        """All the nodes that hold the top back, as a set."""
        if not self.entries:
            return 0
        source, seq, _ = self.entries[0]
        return sum(1 << node for node, column in enumerate(self.columns) if column[source] <= seq)

    def refill(self, entries: Sequence[tuple[int, int, T]], columns: Sequence[Sequence[int]]) -> None:
        """Makes the contents these; the top is looked at anew by the next `rise`."""
        self.entries = deque(entries)
        self.columns[:] = columns
        self.holds_back, self._passed_below = 0, [0] * len(self.columns)
