"""What is missing between what has come and what is known to exist."""

from collections.abc import Iterable


def missing_ranges(low: int, high: int, held: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The ranges [start, stop) of [low, high) in which no number is held."""
    ranges = []
    start = low
    for number in sorted(held):
        if number >= high:
            break
        if number > start:
            ranges.append((start, number))
        start = max(start, number + 1)
    if start < high:
        ranges.append((start, high))
    return tuple(ranges)
