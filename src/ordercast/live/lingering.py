"""Waiting awake for an answer: whoever sleeps has to be woken, which takes longer than the answer to a lone message.

A member that has sent a message by itself looks for the answer for a moment before it goes to sleep. Where answers do
not come so soon, it gives that up, but for a try now and then.
"""

import os

LONGEST = 80e-6
"""Seconds; about what it costs to fall asleep and be woken."""
_MOST_TRUST = 16
_RARELY = 256  # occasions from one try to the next where there is no trust


class Lingering:
    """Whether it pays."""

    def __init__(self, *, cores: int | None = None) -> None:
        """`cores` that this process may use; on one, whoever lingers keeps the others from answering."""
        self._pays = (_cores() if cores is None else cores) > 1
        self._trust = _MOST_TRUST // 2
        self._passed = 0  # occasions since the last try

    def is_worth_it(self) -> bool:
        """Asked on every occasion."""
        self._passed += 1
        return self._pays and (self._trust > 0 or self._passed >= _RARELY)

    def ended(self, *, answered: bool) -> None:
        """What came of it."""
        self._passed = 0
        self._trust = min(self._trust + 2, _MOST_TRUST) if answered else max(self._trust - 1, 0)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # which not every system has
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
