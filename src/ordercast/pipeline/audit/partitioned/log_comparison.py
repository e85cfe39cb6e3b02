"""Compares the receipt logs of all nodes position by position: one order, where everything goes to everybody.

Used for orders by priority, in which a message may be overtaken for so long that hardly any cut point is closed.
Positions tell which parts of the logs belong together.
"""

import msgspec
import numpy as np

from ordercast.audit.violations import Message
from ordercast.pipeline.audit.kernel.columns import CODES, kinds_of
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups, numbers_with_null
from ordercast.trace.schema import EVENT, NODE, SEQ, SOURCE, EventKind


class ComparisonTask(msgspec.Struct, frozen=True):
    """The positions from `start` to below `below` of all logs, and where their deliveries are."""

    nodes: int
    start: int
    below: int
    files: tuple[RowGroups, ...]
    """Those of one summary each."""
    before: tuple[tuple[int, ...], ...]
    """By row group and node: how many deliveries come before those in it."""


class Comparison(msgspec.Struct, frozen=True):
    """The result of a comparison."""

    differing: tuple[Message, ...]
    """The messages that two nodes delivered at the first position where they differ; empty if they do not."""


def compare(task: ComparisonTask) -> Comparison:
    """Compares the logs; each of them must reach to the end."""
    source = np.full((task.nodes, task.below - task.start), -1, np.int16)
    seq = np.full(source.shape, -1, np.int64)
    for file, before in zip(task.files, task.before, strict=True):
        batch = file.read((NODE, EVENT, SOURCE, SEQ))
        deliveries = kinds_of(batch.column(EVENT)) == CODES[EventKind.DELIVER]
        at, sources, seqs = (numbers_with_null(batch.column(name))[deliveries] for name in (NODE, SOURCE, SEQ))
        for node in range(task.nodes):
            (mine,) = np.nonzero(at == node)
            position = before[node] + np.arange(mine.size) - task.start
            inside = (position >= 0) & (position < source.shape[1])
            source[node, position[inside]] = sources[mine[inside]]
            seq[node, position[inside]] = seqs[mine[inside]]
    differs = (source != source[0]) | (seq != seq[0])
    positions = np.flatnonzero(differs.any(axis=0))
    if not positions.size:
        return Comparison(())
    other = int(np.argmax(differs[:, positions[0]]))
    return Comparison(tuple((int(source[node, positions[0]]), int(seq[node, positions[0]])) for node in (0, other)))
