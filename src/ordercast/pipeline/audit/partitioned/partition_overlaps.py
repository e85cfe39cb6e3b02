"""Overlaps of partitions: whether at each node the events of one partition come before those of the next."""

from collections.abc import Sequence

import numpy as np

from ordercast.pipeline.audit.kernel.columns import Flags, Numbers
from ordercast.pipeline.audit.partitioned.row_groups import LEAST, Ranges

Table = tuple[Numbers, Numbers]
"""The first and the last step, for each cell."""


class StepTables(Sequence[Table | None]):
    """By partition: the first and the last step, for each cell of a table; None if the partition could not be read.

    A table is made when it is asked for, since all together may be large.
    """

    def __init__(self, ranges: Sequence[Ranges | None]) -> None:
        self._ranges = ranges

    def __len__(self) -> int:
        return len(self._ranges)

    def __getitem__(self, number: int) -> Table | None:  # type: ignore[override]
        one = self._ranges[number]
        return None if one is None else one.tables()


def first_overlap(tables: Sequence[Table | None]) -> range | None:
    """From the first partition with a later step than some partition after it, through that one; None if none has."""
    latest: Numbers | None = None
    for number, table in enumerate(tables):
        if not table:
            continue
        lowest, highest = table
        if latest is not None and np.any(lowest <= latest):
            earlier = (one for one in range(number) if (known := tables[one]) and np.any(known[1] >= lowest))
            return range(next(earlier), number + 1)
        latest = highest if latest is None else np.maximum(latest, highest)
    return None


def first_number_missing(tables: Sequence[Table | None]) -> range | None:
    """From the partition with the last number of a cell through the next one that has any, if numbers are between."""
    highest: dict[int, tuple[int, int]] = {}
    for number, table in enumerate(tables):
        lowest, last = table or ((), ())
        for cell in np.flatnonzero(np.asarray(last) != LEAST).tolist():
            known, partition = highest.get(cell, (int(lowest[cell]) - 1, number))
            if int(lowest[cell]) != known + 1:
                return range(partition, number + 1)
            highest[cell] = int(last[cell]), number
    return None


def first_gap(missing: Sequence[Flags], present: Sequence[Flags]) -> range | None:
    """From the first partition of which a cell misses something, through a later one of which it has something."""
    before: Flags | None = None  # what any earlier partition misses
    for number, there in enumerate(present):
        if before is not None and there.size and np.any(before & there):
            earlier = (one for one in range(number) if missing[one].size and np.any(missing[one] & there))
            return range(next(earlier), number + 1)
        if missing[number].size:
            before = missing[number] if before is None else before | missing[number]
    return None
