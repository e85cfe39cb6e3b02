"""Where a long run is cut into boxes: so that, if it has one order, every node has all of one box before the next.

A cut is, for each source, the number of its first message above. It is *closed* if no node was given a message from
above it before one from below. From any cut, the next closed one is found by taking in whatever some node was
given before its last message from below, until there is no more of that. Only the row groups around the cut are read.
Nothing is trusted to be closed: `long_runs` compares the steps that boxes tell of.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from ordercast.pipeline.audit.kernel.columns import CODES, Numbers, kinds_of
from ordercast.pipeline.audit.partitioned.partition import values
from ordercast.trace.schema import EVENT, NODE, SEQ, SOURCE, EventKind

CUT_COLUMNS = (NODE, EVENT, SOURCE, SEQ)
_MOST_GROUPS = 48  # that are read for one cut, at one node: with more in between there is hardly a closed cut nearby
_MOST_ROUNDS = 50

Read = Callable[[int], pa.RecordBatch]
"""The events of a row group, by its number."""


class Survey:
    """What is known of all row groups, in the order of time: numbers by row group, node and source."""

    def __init__(
        self, nodes: int, numbers: Sequence[tuple[Numbers, Numbers]], delivered: Sequence[tuple[Numbers, Numbers]]
    ):
        shape = (len(numbers), nodes, nodes)
        self.nodes = nodes
        self.lowest, self.highest = (np.concatenate(part).reshape(shape) for part in zip(*numbers, strict=True))
        self.first_delivered, self.last_delivered = (
            np.concatenate(part).reshape(shape) for part in zip(*delivered, strict=True)
        )

    def groups_of(self, start: Numbers, end: Numbers) -> list[int]:
        """The row groups that may have events of a box."""
        touched = (self.lowest < end) & (self.highest >= start)
        found: list[int] = np.flatnonzero(touched.any(axis=(1, 2))).tolist()
        return found


def cuts(survey: Survey, wanted: int, read: Read, *, closed: bool) -> list[Numbers]:
    """The ends of about so many boxes, rising; all messages are below the last."""
    groups = survey.lowest.shape[0]
    everything = np.full(survey.nodes, np.iinfo(np.int64).max)
    found: list[Numbers] = []
    below = np.full(survey.nodes, np.iinfo(np.int64).min)
    for number in range(1, wanted):
        group = number * groups // wanted
        seen = survey.last_delivered[:group].max(axis=(0, 1), initial=np.iinfo(np.int64).min)
        cut = np.where(seen == np.iinfo(np.int64).min, seen, seen + 1)
        if closed:
            # Far from any closed one it stays open: one message that strays must not make half the run one box.
            found_closed = _closed(survey, cut, read)
            cut = cut if found_closed is None else found_closed
        if np.all(cut >= below) and np.any(cut > below):
            found.append(cut)
            below = cut
    return [*found, everything]


def _closed(survey: Survey, cut: Numbers, read: Read) -> Numbers | None:
    for _ in range(_MOST_ROUNDS):
        wider = cut
        for node in range(survey.nodes):
            grown = _taken_in(survey, wider, node, read)
            if grown is None:
                return None
            wider = grown
        if np.array_equal(wider, cut):
            return cut
        cut = wider
    return None


def _taken_in(survey: Survey, cut: Numbers, node: int, read: Read) -> Numbers | None:
    """The cut with all that the node was given before its last message from below; None if that is too far away."""
    above = np.flatnonzero((survey.last_delivered[:, node] >= cut).any(axis=1))
    below = np.flatnonzero((survey.first_delivered[:, node] < cut).any(axis=1))
    if not above.size or not below.size or below[-1] < above[0]:
        return cut
    if below[-1] - above[0] >= _MOST_GROUPS:
        return None
    parts = [_deliveries(read(group), node) for group in range(above[0], below[-1] + 1)]
    source, seq = (np.concatenate(part) for part in zip(*parts, strict=True))
    (from_below,) = np.nonzero(seq < cut[source])
    if not from_below.size:
        return cut
    cut = cut.copy()
    last = from_below[-1] + 1
    np.maximum.at(cut, source[:last], seq[:last] + 1)
    return cut


def _deliveries(batch: pa.RecordBatch, node: int) -> tuple[Numbers, Numbers]:
    chosen = (kinds_of(batch.column(EVENT)) == CODES[EventKind.DELIVER]) & (values(batch.column(NODE)) == node)
    return values(batch.column(SOURCE))[chosen], values(batch.column(SEQ))[chosen]
