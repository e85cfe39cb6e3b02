"""Whether all nodes were given the same messages at the same places: one order, where everything goes to everybody.

Places tell by themselves which stretches of the logs belong together. That suits orders by priority, in which a message
may wait for so long that hardly any cut by numbers is closed. There is no Spark in here.
"""

import msgspec
import numpy as np

from ordercast.audit.violations import Message
from ordercast.pipeline.audit.kernel.columns import CODES, kinds_of
from ordercast.pipeline.audit.partitioned.partition import GroupsOfFile, values
from ordercast.trace.schema import EVENT, NODE, SEQ, SOURCE, EventKind


class StretchTask(msgspec.Struct, frozen=True):
    """The places from `start` to below `end` of all logs, and where their deliveries are."""

    nodes: int
    start: int
    end: int
    files: tuple[GroupsOfFile, ...]
    """One row group each."""
    before: tuple[tuple[int, ...], ...]
    """By row group and node: how many deliveries come before those in it."""


class Stretch(msgspec.Struct, frozen=True):
    """What was found of a stretch."""

    differing: tuple[Message, ...]
    """The messages that two nodes were given at the first place where they were given different ones, if any."""


def compare(task: StretchTask) -> Stretch:
    """Lays the logs side by side; each of them must reach to the end."""
    source = np.full((task.nodes, task.end - task.start), -1, np.int16)
    seq = np.full(source.shape, -1, np.int64)
    for file, before in zip(task.files, task.before, strict=True):
        batch = file.read((NODE, EVENT, SOURCE, SEQ))
        deliveries = kinds_of(batch.column(EVENT)) == CODES[EventKind.DELIVER]
        at, sources, seqs = (values(batch.column(name))[deliveries] for name in (NODE, SOURCE, SEQ))
        for node in range(task.nodes):
            (mine,) = np.nonzero(at == node)
            place = before[node] + np.arange(mine.size) - task.start
            inside = (place >= 0) & (place < source.shape[1])
            source[node, place[inside]] = sources[mine[inside]]
            seq[node, place[inside]] = seqs[mine[inside]]
    differs = (source != source[0]) | (seq != seq[0])
    places = np.flatnonzero(differs.any(axis=0))
    if not places.size:
        return Stretch(())
    other = int(np.argmax(differs[:, places[0]]))
    return Stretch(tuple((int(source[node, places[0]]), int(seq[node, places[0]])) for node in (0, other)))
