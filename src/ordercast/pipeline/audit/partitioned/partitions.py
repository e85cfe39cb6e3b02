"""The boxes of a long run together: whether they come one after the other. There is no Spark in here."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ordercast.audit.order import sender_order_kept
from ordercast.audit.priorities import sender_order_kept_by_priority
from ordercast.audit.services import PROMISES
from ordercast.pipeline.audit.kernel.columns import Flags, Numbers
from ordercast.pipeline.audit.partitioned.explain import Interval
from ordercast.pipeline.audit.partitioned.long_run import LongRun
from ordercast.pipeline.audit.partitioned.partition import LEAST, MOST, BoxJudged, Range

_MOST_ROWS_TOGETHER = 6_000_000  # of boxes that overlap and are judged as one

Tables = Sequence[tuple[Numbers, Numbers] | None]
"""By box: the least and the greatest step, for each cell of a table; None if a box could not be read."""


class Boxes:
    """The boxes of a run, and what was found of them. `closed`: with one order, nodes have all of one box first."""

    def __init__(self, run: LongRun, ends: list[Numbers], *, closed: bool) -> None:
        self.run = run
        self.ends = ends
        self.closed = closed
        self.judged: list[BoxJudged | None] = [None] * len(ends)
        self._promises = PROMISES[run.service]

    def start(self, box: int) -> Numbers:
        """By source: the least number in a box."""
        return self.ends[box - 1] if box else np.full(self.run.nodes, LEAST)

    def interval(self, box: int) -> Interval:
        """A box as tasks take it."""
        return Interval(tuple(self.start(box).tolist()), tuple(self.ends[box].tolist()))

    def judge(self) -> range | None:
        """Judges all boxes that were not yet; the first overlap that keeps the order from being known, if any."""
        missing = [box for box, judged in enumerate(self.judged) if judged is None]
        tasks = [self.run.task(box, self.start(box), self.ends[box]) for box in missing]
        for answer in self.run.each("judge", tasks):
            judged = msgspec.msgpack.decode(answer, type=BoxJudged)
            self.judged[judged.number] = judged
        return self._order_overlap() if self.closed else None

    def all_acquitted(self) -> bool:
        """Whether no box breaks anything by itself. Else there is no need to know more of what they are together."""
        return all(judged is not None and judged.acquitted for judged in self.judged)

    def merge(self, overlap: range) -> bool:
        """Makes one box of some; False if it would be too large."""
        rows = sum(judged.rows for judged in self.judged[overlap[0] : overlap[-1] + 1] if judged is not None)
        if rows > _MOST_ROWS_TOGETHER:
            return False
        self.ends[overlap[0] : overlap[-1]] = []
        self.judged[overlap[0] : overlap[-1] + 1] = [None]
        self.judged = [
            None if judged is None else msgspec.structs.replace(judged, number=box)
            for box, judged in enumerate(self.judged)
        ]
        return True

    def cover_everything(self) -> bool:
        """Whether each event is in a box, and each source's messages were sent box by box."""
        rows = sum(judged.rows for judged in self.judged if judged is not None)
        return rows == self.run.rows and _first_overlap(self._tables("sent")) is None

    def go_on_after_a_stop(self) -> bool:
        """Whether a node that stopped was given something of a box after one of which it was not given everything.

        Asked if the run is uniform: then what it was given is to be a beginning of what the others were given.
        """
        going_on = [node for node in range(self.run.nodes) if node not in self.run.stopped]
        given = [np.frombuffer(judged.given, np.int64) for judged in self.judged if judged is not None and judged.given]
        return _first_gap([one < one[going_on].max() for one in given], [one > 0 for one in given]) is not None

    def guilty(self) -> tuple[list[list[int]], bool]:
        """The boxes to look into: those that were not acquitted, and those that overlap where they must not.

        And whether there are any of these, which only the first is looked into of.
        """
        found = [[box] for box, judged in enumerate(self.judged) if judged is None or not judged.acquitted]
        overlaps = [overlap for overlap in self._overlaps() if overlap is not None]
        for overlap in overlaps:
            both = {overlap[0], overlap[-1]}
            for group in [group for group in found if both & set(group)]:  # nothing is to be counted twice
                both |= set(group)
                found.remove(group)
            found.insert(0, sorted(both))
        return found, bool(overlaps)

    def _overlaps(self) -> Iterator[range | None]:
        if self.closed:
            yield self._order_overlap()
        if sender_order_kept in self._promises:
            yield _first_overlap(self._tables("delivered"))
        if sender_order_kept_by_priority in self._promises:
            for priority in {priority for judged in self.judged if judged for priority in judged.by_priority}:
                ranges = [judged.by_priority.get(priority) if judged else None for judged in self.judged]
                yield _first_overlap([None if one is None else one.tables() for one in ranges])
        if self.run.levels:
            accepted = self._tables("accepted")
            yield _first_overlap(accepted)
            lacking = [np.frombuffer(judged.unaccepted if judged else b"", np.bool_) for judged in self.judged]
            has = [np.empty(0, np.bool_) if one is None else one[1] != LEAST for one in accepted]
            yield _first_gap(lacking, has)

    def _order_overlap(self) -> range | None:
        return _first_overlap([_by_node(self.run.nodes, judged) for judged in self.judged])

    def _tables(self, what: str) -> Tables:
        ranges: list[Range | None] = [getattr(judged, what) for judged in self.judged]
        return [None if one is None else one.tables() for one in ranges]


def _by_node(nodes: int, judged: BoxJudged | None) -> tuple[Numbers, Numbers] | None:
    """Between which steps each node was given messages of a box."""
    if judged is None or judged.delivered is None:
        return None
    lowest, highest = (table.reshape(nodes, nodes) for table in judged.delivered.tables())
    return lowest.min(axis=1, initial=MOST), highest.max(axis=1, initial=LEAST)


def _first_overlap(tables: Tables) -> range | None:
    """From the first box that has a higher step than some box after it, to that box; None if there are none such."""
    latest: Numbers | None = None
    for box, table in enumerate(tables):
        if not table:
            continue
        lowest, highest = table
        if latest is not None and np.any(lowest <= latest):
            earlier = (one for one in range(box) if (known := tables[one]) and np.any(known[1] >= lowest))
            return range(next(earlier), box + 1)
        latest = highest if latest is None else np.maximum(latest, highest)
    return None


def _first_gap(lacking: Sequence[Flags], has: Sequence[npt.NDArray[np.bool_]]) -> range | None:
    """From the first box in which a cell lacks something, to a later one of which it has something."""
    for box, there in enumerate(has):
        for earlier in range(box) if there.size else ():
            if lacking[earlier].size and np.any(lacking[earlier] & there):
                return range(earlier, box + 1)
    return None
