"""Retransmission of unanswered statuses and requests: exponential back-off, and when a silent node is given up."""

from ordercast.model.nodes import members
from ordercast.model.state import DeclaredState

MAX_BACKOFF = 4
"""Statuses and requests back off by doubling while there is no progress, up to this many times their duration."""


class Retry(DeclaredState):
    """How long to wait before repeating something, and how often each node has left it unanswered."""

    backoff: int  # the factor by which timers are longer now
    progress: bool  # something that was waited for has come since the last time
    unanswered: list[int]  # in a row, by node

    def __init__(self, nodes: int) -> None:
        self.backoff, self.progress, self.unanswered = 1, False, [0] * nodes

    def restart(self) -> None:
        """Waits for something new."""
        self.backoff, self.progress = 1, False

    def back_off(self) -> bool:
        """Before repeating something: True if there was no progress, so that the next wait is longer."""
        if self.progress:
            self.restart()
            return False
        self.backoff = min(MAX_BACKOFF, 2 * self.backoff)
        return True

    def count_unanswered(self, nodes: int, limit: int) -> int | None:
        """Counts one more unanswered question to these nodes; returns the first of them that exceeds the limit."""
        for node in members(nodes):
            self.unanswered[node] += 1
            if self.unanswered[node] > limit:
                return node
        return None
