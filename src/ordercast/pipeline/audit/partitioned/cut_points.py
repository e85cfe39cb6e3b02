"""Cut points: where a long run is divided, so that in one order every node delivers one partition before the next.

A cut point is, for each source, the sequence number of its first message above it. It is *closed* if no node delivered
a message from above it before one from below. From any cut point the next closed one is found by taking in whatever a
node delivered before its last message from below, until nothing is left. Only row groups around the cut point are read.
The audit does not rely on cut points being closed: `partition_overlaps` compares the steps of the partitions.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ordercast.pipeline.audit.kernel.columns import CODES, Numbers, kinds_of
from ordercast.pipeline.audit.partitioned.row_group_index import RowGroupIndex
from ordercast.pipeline.audit.partitioned.row_groups import LEAST, MOST, numbers_with_null
from ordercast.trace.schema import EVENT, NODE, SEQ, SOURCE, EventKind

CUT_POINT_COLUMNS = (NODE, EVENT, SOURCE, SEQ)
_MOST_GROUPS = 48  # read for one cut point at one node: with more in between there is hardly a closed one nearby
_MOST_ROUNDS = 50

Read = Callable[[int], pa.RecordBatch]
"""The events of a row group, by its number."""


def cut_points(index: RowGroupIndex, partitions: int, read: Read, *, closed: bool) -> list[Numbers]:
    """The cut points of about so many partitions, increasing; all messages are below the last."""
    groups = index.lowest.shape[0]
    found: list[Numbers] = []
    previous = np.full(index.nodes, LEAST)
    for number in range(1, partitions):
        group = number * groups // partitions
        seen = index.last_delivered[:group].max(axis=(0, 1), initial=LEAST)
        point = np.where(seen == LEAST, seen, seen + 1)
        if closed:
            # Far from any closed one it stays open: one stray message must not make half the run one partition.
            found_closed = _closed(index, point, read)
            point = point if found_closed is None else found_closed
        if np.all(point >= previous) and np.any(point > previous):
            found.append(point)
            previous = point
    return [*found, np.full(index.nodes, MOST)]


def _closed(index: RowGroupIndex, point: Numbers, read: Read) -> Numbers | None:
    for _ in range(_MOST_ROUNDS):
        wider = point
        for node in range(index.nodes):
            grown = _widened(index, wider, node, read)
            if grown is None:
                return None
            wider = grown
        if np.array_equal(wider, point):
            return point
        point = wider
    return None


def _widened(index: RowGroupIndex, point: Numbers, node: int, read: Read) -> Numbers | None:
    """The cut point above all that the node delivered before its last message from below; None if that is too far."""
    above = np.flatnonzero((index.last_delivered[:, node] >= point).any(axis=1))
    below = np.flatnonzero((index.first_delivered[:, node] < point).any(axis=1))
    if not above.size or not below.size or below[-1] < above[0]:
        return point
    if below[-1] - above[0] >= _MOST_GROUPS:
        return None
    parts = [_deliveries(read(group), node) for group in range(above[0], below[-1] + 1)]
    source, seq = (np.concatenate(part) for part in zip(*parts, strict=True))
    (from_below,) = np.nonzero(seq < point[source])
    if not from_below.size:
        return point
    point = point.copy()
    last = from_below[-1] + 1
    np.maximum.at(point, source[:last], seq[:last] + 1)
    return point


def _deliveries(batch: pa.RecordBatch, node: int) -> tuple[Numbers, Numbers]:
    chosen = kinds_of(batch.column(EVENT)) == CODES[EventKind.DELIVER]
    chosen &= numbers_with_null(batch.column(NODE)) == node
    return numbers_with_null(batch.column(SOURCE))[chosen], numbers_with_null(batch.column(SEQ))[chosen]
