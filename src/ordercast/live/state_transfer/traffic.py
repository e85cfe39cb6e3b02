"""Whether a donor has so much traffic that the state of the application gives way to it."""

from collections.abc import Callable

IDLE_RATE = 200
"""Datagrams a second, at most, that arrive at a member of a group that has little to say; heartbeats are some twenty.

A group that has much to say may send large datagrams, and then not many more.
"""
WINDOW = 0.01  # seconds over which they are counted, at least


class Traffic:
    """What arrives at one member. `look` is called now and then, so that it knows how things are when it is asked."""

    def __init__(self, arrived: Callable[[], int], clock: Callable[[], float]) -> None:
        """`arrived`: datagrams until now; `clock` in seconds."""
        self._arrived, self._clock = arrived, clock
        self._looked_at, self._count = clock(), arrived()
        self._is_much = False

    @property
    def is_much(self) -> bool:
        """More than a group sends that has little to say, in the last window."""
        self.look()
        return self._is_much

    def look(self) -> None:
        """Counts what has arrived since the last time, if that is long enough ago."""
        passed = self._clock() - self._looked_at
        if passed >= WINDOW:
            count = self._arrived()
            self._is_much = count - self._count > IDLE_RATE * passed
            self._looked_at, self._count = self._looked_at + passed, count
