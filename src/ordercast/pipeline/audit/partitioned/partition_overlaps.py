"""Overlaps of partitions: whether at each node the events of one partition come before those of the next."""

from collections.abc import Sequence

import numpy as np

from ordercast.pipeline.audit.kernel.columns import Flags, Numbers

StepTables = Sequence[tuple[Numbers, Numbers] | None]
"""By partition: the first and the last step, for each cell of a table; None if the partition could not be read."""


def first_overlap(tables: StepTables) -> range | None:
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


def first_gap(missing: Sequence[Flags], present: Sequence[Flags]) -> range | None:
    """From the first partition of which a cell misses something, through a later one of which it has something."""
    for number, there in enumerate(present):
        for earlier in range(number) if there.size else ():
            if missing[earlier].size and np.any(missing[earlier] & there):
                return range(earlier, number + 1)
    return None
