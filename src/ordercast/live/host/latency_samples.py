"""How long own messages take to each level: one message at a time is followed, which costs the others a comparison."""

from collections import deque

from ordercast.wire.inspection import Latency

_KEPT = 256  # samples of each level
_OVERDUE = 10_000_000_000  # nanoseconds after which a message is given up, and another one is followed
LEVELS = ("accepted", "preacknowledged", "acknowledged", "delivered")
DELIVERED = LEVELS.index("delivered")


class LatencySamples:
    """From the number of a message to the levels that it reaches at its sender."""

    __slots__ = ("_begun", "_ends", "_reached", "_samples", "followed")

    def __init__(self) -> None:
        self.followed = -1
        """The number of the message that is followed; -1: none."""
        self._begun = self._reached = self._ends = 0
        self._samples: tuple[deque[int], ...] = tuple(deque(maxlen=_KEPT) for _ in LEVELS)

    def numbered(self, first: int, ends: int, now: int) -> None:
        """An own message has its number: it is followed, unless another one is. `ends`: the levels that end that."""
        if self.followed < 0 or now - self._begun > _OVERDUE:
            self.followed, self._begun, self._reached, self._ends = first, now, 0, ends

    def reached(self, level: int, now: int) -> None:
        """The message that is followed reached a level, by its place in `LEVELS`."""
        if not self._reached >> level & 1:
            self._reached |= 1 << level
            self._samples[level].append(now - self._begun)
            if not self._ends & ~self._reached:
                self.followed = -1

    def summary(self) -> tuple[Latency, ...]:
        """By level, over the latest messages."""
        return tuple(map(_summary, self._samples))


def _summary(samples: deque[int]) -> Latency:
    if not samples:
        return Latency(0)
    ordered = sorted(samples)
    return Latency(len(ordered), ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100])
