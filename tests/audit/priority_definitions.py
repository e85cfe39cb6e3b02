"""The papers' definitions of priority runs (section 3) that the audit does not need as such."""

from collections.abc import Sequence
from itertools import chain, pairwise

from ordercast.audit.logs import Sent
from ordercast.audit.priorities import priority_equivalent, priority_ordered, priority_runs


def is_run(part: Sequence[Sent], log: Sequence[Sent]) -> bool:
    """A priority run of a log: a contiguous section of it, ordered by priority."""
    return _start(part, log) is not None and priority_ordered(part)


def is_connected(part: Sequence[Sent], before: Sequence[Sent], log: Sequence[Sent]) -> bool:
    """True if a section of a log begins right where another ends."""
    start, start_before = _start(part, log), _start(before, log)
    return start is not None and start_before is not None and start == start_before + len(before)


def is_run_partition(parts: Sequence[Sequence[Sent]], log: Sequence[Sent]) -> bool:
    """Run-partition: runs, each connected to the one before it, that are the whole log."""
    return list(chain.from_iterable(parts)) == list(log) and all(is_run(part, log) for part in parts)


def is_maximum_run_partition(parts: Sequence[Sequence[Sent]], log: Sequence[Sent]) -> bool:
    """True if the priority rises from each run to the next, so that no two of them can be merged."""
    return is_run_partition(parts, log) and all(
        before[-1].priority < after[0].priority for before, after in pairwise(parts)
    )


def run_equivalent(one: Sequence[Sent], other: Sequence[Sent]) -> bool:
    """Run-equivalent: as many runs in the maximum run-partitions of both, and the runs priority-equivalent in pairs."""
    runs, others = priority_runs(one), priority_runs(other)
    return len(runs) == len(others) and all(map(priority_equivalent, runs, others))


def _start(part: Sequence[Sent], log: Sequence[Sent]) -> int | None:
    """The position of a section in a log; None if it is not in it, or empty."""
    if not part or part[0] not in log:
        return None
    start = log.index(part[0])
    return start if list(log[start : start + len(part)]) == list(part) else None
