"""Repeatable random numbers, equal on every machine to the last bit.

Each use has a stream of its own, derived from the run's seed and the name of the use, so that one more draw in one
place changes nothing elsewhere. The C library's logarithm is not used: its last bit differs between machines, and one
bit is enough to make two traces differ.
"""

from decimal import Decimal
from functools import lru_cache
from random import Random

_STEPS = 1024
_UNIT = 1 << 20


def stream(seed: int, use: str) -> Random:
    """The random stream of one use."""
    return Random(f"{seed}/{use}")


@lru_cache(maxsize=1)
def _exponential_table() -> list[int]:
    """−ln(1 − u) at the middle of each of 1,024 equal steps of u, in units of 2⁻²⁰."""
    return [int(-(Decimal(2 * _STEPS - 2 * step - 1) / (2 * _STEPS)).ln() * _UNIT) for step in range(_STEPS)]


def exponential(random: Random, mean: int) -> int:
    """A draw from the exponential distribution with this mean, without its longest thousandth."""
    return mean * _exponential_table()[random.getrandbits(10)] // _UNIT
