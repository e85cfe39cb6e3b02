"""The event queue of a run, ordered by (time, running number): events of one instant happen as they were scheduled."""

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

    def postpone(self, until: int, number: int, node: int, what: PendingEvent, transmission: int) -> None:
        """An event that is due happens later, in its turn."""
        heappush(self.heap, (until, number, node, what, transmission))
