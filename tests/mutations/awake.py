"""How long a process could have worked: real time without that in which it was stopped, or waited for a processor.

A limit in real time would take a test for endless because the machine has other things to do, or because somebody
stopped the run for a while. What is left is what the process used, and what it waited for of its own accord.
"""

import time
from contextlib import suppress
from pathlib import Path

TICK = 0.5
"""Seconds at most between two looks: what is longer was no choice of the process that looks."""


class Awake:
    """Adds up the time of one process, at each look at it."""

    def __init__(self, process: int | str = "self") -> None:
        self.seconds = 0.0
        self._threads = Path(f"/proc/{process}/task")
        self._looked = time.monotonic()
        self._delay = self._delayed()

    def look(self, longest: float = TICK) -> float:
        """All seconds so far. Of those since the last look, `longest` at most count."""
        now, delay = time.monotonic(), self._delayed()
        self.seconds += max(0.0, min(now - self._looked, longest) - max(0.0, delay - self._delay))
        self._looked, self._delay = now, delay
        return self.seconds

    def _delayed(self) -> float:
        """Seconds in which its threads waited for a processor; 0 where the system does not say."""
        nanoseconds = 0
        with suppress(OSError):
            for thread in self._threads.iterdir():
                with suppress(OSError, IndexError, ValueError):  # it has ended by now
                    nanoseconds += int((thread / "schedstat").read_text().split()[1])
        return nanoseconds / 1e9
