"""Chance that can be repeated, on every machine to the last bit.

Each use of chance has a stream of its own, derived from the run's seed and the use's name, so that one draw more in
one place moves nothing elsewhere. Nothing here asks the C library for a logarithm: its last bit differs between
machines, and one bit is enough to make two traces differ.
"""

from decimal import Decimal
from functools import lru_cache
from random import Random

_STEPS = 1024
_UNIT = 1 << 20


def stream(seed: int, use: str) -> Random:
    """The stream of chance for one use."""
    return Random(f"{seed}/{use}")


@lru_cache(maxsize=1)
def _exponential_table() -> list[int]:
    """−ln(1 − u) at the middle of each of 1,024 equal steps of u, in units of 2⁻²⁰."""
    return [int(-(Decimal(2 * _STEPS - 2 * step - 1) / (2 * _STEPS)).ln() * _UNIT) for step in range(_STEPS)]


def exponential(chance: Random, mean: int) -> int:
    """A draw around a mean, exponentially distributed but for its longest thousandth, which it cuts off."""
    return mean * _exponential_table()[chance.getrandbits(10)] // _UNIT
