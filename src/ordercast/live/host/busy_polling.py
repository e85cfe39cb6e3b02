"""Waiting awake for an answer: whoever sleeps has to be woken, which takes longer than the answer to a lone message.

A member that has sent a message by itself can look for the answer for a moment before it goes to sleep. On idle cores
that halves the time; where others wait for a core it keeps them from answering. So both are timed, and it is done
where it pays.
"""

import os

LONGEST = 80e-6
"""Seconds; about what it costs to fall asleep and be woken."""
_PAYS = 0.8  # of the time without it: for less it is not worth a core
_OTHERWISE = 32  # messages until the way that is not taken is timed again
_WEIGHT = 1 / 8  # of the latest in an average
_OUTLIER = 4  # times the average: whatever it was, it says no more


class BusyPolling:
    """Which way lone messages take: awake, or asleep."""

    def __init__(self, *, enabled: bool = True, cores: int | None = None) -> None:
        """`enabled`: False never polls; `cores` that this process may use: with one there is no choice."""
        self._possible = enabled and (_cores() if cores is None else cores) > 1
        self._times: dict[bool, float] = {}  # on average, awake and asleep
        self._messages = 0
        self._awake = False

    def begins(self) -> bool:
        """A lone message is sent: whether to stay awake for it."""
        self._messages += 1
        asleep = self._times.get(False, 0.0)
        pays = self._times.get(True, 0.0) < _PAYS * asleep
        self._awake = self._possible and pays != (self._messages % _OTHERWISE == 0)
        return self._awake

    def took(self, seconds: float) -> None:
        """So long until it had its place in the order."""
        average = self._times.get(self._awake, seconds)
        self._times[self._awake] = average + _WEIGHT * (min(seconds, _OUTLIER * average) - average)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # which not every system has
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
