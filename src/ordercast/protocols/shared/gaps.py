"""Gaps in a sequence of numbers."""

from collections.abc import Iterable


def missing_ranges(low: int, high: int, received: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """The ranges [start, stop) of [low, high) that contain no received number."""
    ranges = []
    start = low
    for number in sorted(received):
        if number >= high:
            break
        if number > start:
            ranges.append((start, number))
        start = max(start, number + 1)
    if start < high:
        ranges.append((start, high))
    return tuple(ranges)
