"""Exponential back-off of polls, and how many of them each node has left unanswered."""

from typing import Final

from ordercast.model.nodes import members
from ordercast.model.state import DeclaredState

MAX_FACTOR = 4
"""Intervals double while there is no progress, up to this many times their duration."""


class Backoff(DeclaredState):
    """How long to wait until the next poll, and when to give a silent node up."""

    polls_to_abort: Final[int]
    progress: bool
    """Something that this node waits for has happened since the last poll."""
    factor: int
    """The next interval, as a multiple of its duration."""
    unanswered: list[int]
    """By node: polls in a row that were due while this node waited for it and nothing came from it."""

    def __init__(self, nodes: int, polls_to_abort: int) -> None:
        self.polls_to_abort = polls_to_abort
        self.progress, self.factor = False, 1
        self.unanswered = [0] * nodes

    def restart(self) -> None:
        """Back to the shortest interval."""
        self.factor, self.progress = 1, False

    def lengthen(self, blockers: int) -> int | None:
        """No progress since the last poll: doubles the interval; returns a node that left too many unanswered."""
        self.factor = min(MAX_FACTOR, 2 * self.factor)
        for node in members(blockers):
            self.unanswered[node] += 1
            if self.unanswered[node] > self.polls_to_abort:
                return node
        return None
