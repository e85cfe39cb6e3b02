"""Busy polling: whether to look for the answer to a single message for a moment before the process sleeps.

Being woken takes longer than the answer to a single message. On idle cores polling halves the latency; where others
wait for a core it delays them. So both are timed, and polling is used where it pays. It occupies the event loop for
up to `POLL_SECONDS` at a time.
"""

import os

POLL_SECONDS = 80e-6
"""About what it costs to sleep and be woken."""
_PAYS_BELOW = 0.8  # of the latency without polling: for less it is not worth a core
_RETRY_EVERY = 32  # messages until the other way is timed again
_WEIGHT = 1 / 8  # of the latest latency in the average
_OUTLIER = 4  # times the average: what is beyond counts as much as this


class BusyPolling:
    """Decides for each single message, and learns from its latency."""

    def __init__(self, *, enabled: bool = True, cores: int | None = None) -> None:
        """`cores` that this process may use, default: as the system says; with one core there is no polling."""
        self._possible = enabled and (_cores() if cores is None else cores) > 1
        self._latencies: dict[bool, float] = {}  # on average, with polling and without
        self._messages = 0
        self._polls = False

    def begins(self) -> bool:
        """A single message is sent: True if its answer is to be polled for."""
        self._messages += 1
        without = self._latencies.get(False, 0.0)
        pays = self._latencies.get(True, 0.0) < _PAYS_BELOW * without
        self._polls = self._possible and pays != (self._messages % _RETRY_EVERY == 0)
        return self._polls

    def took(self, seconds: float) -> None:
        """The message has its place in the order after this time."""
        average = self._latencies.get(self._polls, seconds)
        self._latencies[self._polls] = average + _WEIGHT * (min(seconds, _OUTLIER * average) - average)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux has it, macOS does not
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
