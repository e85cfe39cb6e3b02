"""Exponential back-off of whatever is repeated until it is answered, and when a silent node is given up.

Repeating what may have been lost is a departure from the papers: see the lists in `spo.machine` (3 and 4),
`st.machine` (4) and `to.machine` (4).
"""

from typing import Final

from ordercast.model.config import MILLISECOND
from ordercast.model.declared_state import DeclaredState
from ordercast.model.nodes import members

MAX_FACTOR = 4
"""Intervals double while there is no progress, up to this multiple of their duration."""
MAX_FACTOR_SILENT = 32
"""The same with views, if nothing at all is received from those that are waited for. They are probably gone, and the
failure detector takes thousands of short intervals to tell: all others would ask all the time."""
LONGEST_FOR_SILENT = 20 * MILLISECOND
"""But intervals longer than this do not grow: where most is lost, those that are waited for may well be there."""
SILENT_AFTER = 2
"""Requests in a row that such a node has left unanswered."""


def next_factor(factor: int, *, progress: bool, limit: int = MAX_FACTOR) -> int:
    """The next interval as a multiple of its duration: 1 after progress, else doubled up to the limit."""
    return 1 if progress else min(limit, 2 * factor)


class Backoff(DeclaredState):
    """How long to wait before a request is repeated, and how many of them each node has left unanswered.

    The machine sets `progress`, and `unanswered` of a node to 0 when anything is received from it.
    """

    most_for_silent: Final[int]
    """The largest multiple, if nothing is received from those that are waited for."""
    limit: Final[int]
    """The requests in a row that a node may leave unanswered; 0, with views: any number, of which few are counted."""
    factor: int
    """The current interval, as a multiple of its duration."""
    progress: bool
    """Something that this node waits for has happened since the last request."""
    unanswered: list[int]
    """By node: requests in a row that were due while this node waited for it and nothing was received from it."""
    silent: bool
    """With views: nothing is received from any of those that are waited for."""

    def __init__(self, nodes: int, limit: int, interval: int = 0) -> None:
        """`interval`: the longest that is multiplied, in nanoseconds."""
        self.limit = limit
        longest = LONGEST_FOR_SILENT // max(1, interval)
        self.most_for_silent = max(MAX_FACTOR, min(MAX_FACTOR_SILENT, longest))
        self.factor, self.progress, self.unanswered, self.silent = 1, False, [0] * nodes, False

    def restart(self) -> None:
        """Back to the shortest interval; what nodes have left unanswered stays counted."""
        self.factor, self.progress = 1, False

    def advance(self) -> bool:
        """When an interval ends: sets the factor of the next one; True if there was no progress in this one."""
        progress, self.progress = self.progress, False
        most = self.most_for_silent if self.silent else MAX_FACTOR
        self.factor = next_factor(self.factor, progress=progress, limit=most)
        return not progress

    def count_unanswered(self, nodes: int) -> int | None:
        """Counts one more unanswered request to each of these nodes; returns the first that exceeds the limit."""
        waited_for = members(nodes)
        if not self.limit:
            self.silent = bool(waited_for) and all(self.unanswered[node] == SILENT_AFTER for node in waited_for)
            for node in waited_for:
                self.unanswered[node] = min(SILENT_AFTER, self.unanswered[node] + 1)
            return None
        for node in waited_for:
            self.unanswered[node] += 1
            if self.unanswered[node] > self.limit:
                return node
        return None
