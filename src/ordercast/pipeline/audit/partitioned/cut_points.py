"""Cut points: where a long run is divided, so that in one order every node delivers one partition before the next.

A cut point is, for each source, the sequence number of its first message above it. It is *closed* if no node delivered
a message from above it before one from below. From any cut point the next closed one is found by taking in whatever a
node delivered before its last message from below, until nothing is left. For that only the row groups are read that
have something of both sides at one node, by tasks, each for some cut points; if what they took in concerns further row
groups, they are asked again. The audit does not rely on cut points being closed: `partition_overlaps` compares the
steps of the partitions.
"""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from ordercast.pipeline.audit.kernel.columns import CODES, Numbers, kinds_of
from ordercast.pipeline.audit.partitioned.row_group_index import Points, RowGroupIndex
from ordercast.pipeline.audit.partitioned.row_groups import LEAST, MOST, RowGroups, numbers_with_null
from ordercast.trace.schema import EVENT, NODE, SEQ, SOURCE, EventKind

_MOST_GROUPS = 48  # between the first and the last at one node: with more there is hardly a closed cut point nearby
_MOST_ROUNDS = 20
_AT_ONCE = 8  # cut points of a task


class OpenCut(msgspec.Struct, frozen=True):
    """A cut point, and the row groups that lie across it."""

    point: bytes
    files: tuple[RowGroups, ...]
    """In the order of time."""


class ClosingTask(msgspec.Struct, frozen=True):
    """Cut points to be closed, as far as some row groups tell."""

    nodes: int
    cuts: tuple[OpenCut, ...]


Close = Callable[[list[tuple[Numbers, list[int]]]], list[Numbers]]
"""Closes cut points as far as the row groups tell that are given with each of them."""


def cut_points(index: RowGroupIndex, partitions: int, close: Close | None) -> list[Numbers]:
    """The cut points of about so many partitions, increasing; all messages are below the last.

    `close`: None if they need not be closed.
    """
    points = index.delivered_before([number * index.groups // partitions for number in range(1, partitions)])
    if close is not None and len(points):
        points = _closed(index, points, close)
    found: list[Numbers] = []
    previous = np.full(index.nodes, LEAST)
    for point in points:
        if np.any(point > previous):
            found.append(point)
            previous = point
    return [*found, np.full(index.nodes, MOST)]


def _closed(index: RowGroupIndex, points: Points, close: Close) -> Points:
    """The next closed cut points; those that are far from any stay as they are.

    One stray message must not make half of the run one partition.
    """
    wanted, given_up = points.copy(), np.zeros(len(points), np.bool_)
    read: list[set[int]] = [set() for _ in points]
    for _ in range(_MOST_ROUNDS):
        asked: list[int] = []
        wanted = np.maximum.accumulate(wanted)  # what two closed ones have below is closed, too
        for number, ranges in enumerate(index.across(wanted)):
            if given_up[number]:
                continue
            if any(last - first >= _MOST_GROUPS for first, last in ranges):
                given_up[number] = True
                wanted[number] = points[number]
                continue
            groups = {group for first, last in ranges for group in range(first, last + 1)}
            if not groups <= read[number]:
                read[number] |= groups
                asked.append(number)
        if not asked:
            break
        answers = close([(wanted[number], sorted(read[number])) for number in asked])
        for number, answer in zip(asked, answers, strict=True):
            wanted[number] = answer
    else:
        wanted[asked] = points[asked]
    return np.maximum.accumulate(wanted)


def closing_tasks(nodes: int, cuts: Sequence[OpenCut]) -> list[ClosingTask]:
    """Tasks that close cut points, some in each."""
    return [ClosingTask(nodes, tuple(cuts[start : start + _AT_ONCE])) for start in range(0, len(cuts), _AT_ONCE)]


def close_cuts(task: ClosingTask) -> list[bytes]:
    """The cut points above all that nodes delivered in these row groups before their last message from below."""
    return [_closed_in(cut).tobytes() for cut in task.cuts]


def _closed_in(cut: OpenCut) -> Numbers:
    parts = [_deliveries(file) for file in cut.files]
    node, source, seq = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(node, kind="stable")
    node, source, seq = node[order], source[order], seq[order]
    point = np.frombuffer(cut.point, np.int64).copy()
    ends = np.append(np.flatnonzero(node[1:] != node[:-1]) + 1, node.size)
    starts = np.append(0, ends[:-1])
    while True:
        below = np.append(0, np.cumsum(seq < point[source]))
        # A node's last message from below is where the count of those has reached its end.
        last = np.searchsorted(below, below[ends], side="left")
        above = np.flatnonzero(seq >= point[source])
        from_above = above[above < np.repeat(last, ends - starts)[above]]
        if not from_above.size:
            return point
        np.maximum.at(point, source[from_above], seq[from_above] + 1)


def _deliveries(file: RowGroups) -> tuple[Numbers, Numbers, Numbers]:
    batch = file.read((NODE, EVENT, SOURCE, SEQ))
    node, source, seq = (numbers_with_null(batch.column(name)) for name in (NODE, SOURCE, SEQ))
    chosen = kinds_of(batch.column(EVENT)) == CODES[EventKind.DELIVER]
    return node[chosen].astype(np.int16), source[chosen], seq[chosen]
