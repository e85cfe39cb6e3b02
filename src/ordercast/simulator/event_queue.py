"""The event queue of a run, ordered by (time, running number): events of one instant happen as they were scheduled."""

from collections.abc import Sequence
from heapq import heappush

from ordercast.simulator.pending_events import PendingEvent


class EventQueue:
    """What is to happen, and when."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int, PendingEvent, int]] = []
        """Time, running number, node, event, transmission."""
        self._number = 0

    def schedule(self, time: int, node: int, what: PendingEvent, transmission: int = 0) -> int:
        """Adds an event, and returns its running number."""
        self._number += 1
        heappush(self.heap, (time, self._number, node, what, transmission))
        return self._number

    def schedule_at(self, nodes: Sequence[int], times: Sequence[int], what: PendingEvent, transmission: int) -> None:
        """Adds an event at several nodes, at each in its turn and at its own time: `times` has those of all nodes."""
        heap, number = self.heap, self._number
        for node in nodes:
            number += 1
            heappush(heap, (times[node], number, node, what, transmission))
        self._number = number

    def postpone(self, until: int, number: int, node: int, what: PendingEvent, transmission: int) -> None:
        """An event that is due happens later, in its turn."""
        heappush(self.heap, (until, number, node, what, transmission))
