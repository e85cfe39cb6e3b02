"""The index of a long run: where the events of each partition may be, and which row groups lie across a cut point.

It is made of the summaries of all row groups, which are in the order of time. Everything here takes time in proportion
to the summaries and to what is found, however many partitions there are.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ordercast.pipeline.audit.kernel.columns import Numbers
from ordercast.pipeline.audit.partitioned.row_group_summary import Spans
from ordercast.pipeline.audit.partitioned.row_groups import LEAST

Points = npt.NDArray[np.int64]
"""Cut points, by their number and source; each source's numbers do not decrease."""


class RowGroupIndex:
    """Which numbers of which sources are in which row groups."""

    def __init__(self, nodes: int, spans: Sequence[Spans]) -> None:
        self.nodes = nodes
        self.groups = len(spans)
        self._lateness = [np.frombuffer(one.lateness, np.int8) for one in spans]
        cells = [np.frombuffer(one.cells, np.int32) for one in spans]
        # The numbers are the largest that a driver holds of a long run of many nodes: no wider than they need be.
        self._group = np.repeat(np.arange(self.groups, dtype=np.int32), [part.size for part in cells])
        self._ends = np.cumsum([part.size for part in cells])
        cell = np.concatenate(cells) if cells else np.empty(0, np.int32)
        self._class, self._source = (cell // nodes).astype(np.int8), (cell % nodes).astype(np.int16)
        self._by_source = np.argsort(self._source, kind="stable").astype(np.int32)
        self._bounds = np.searchsorted(self._source[self._by_source], np.arange(nodes + 1))
        self._lowest, self._highest, self._first, self._last = (
            np.frombuffer(b"".join(getattr(one, name) for one in spans), np.int64)
            for name in ("lowest", "highest", "first_delivered", "last_delivered")
        )

    def groups_of(self, start: Numbers, below: Numbers) -> list[int]:
        """The row groups that may contain events of a partition."""
        start, below = start[self._source], below[self._source]
        touched = (self._lowest < below) & (self._highest >= start) & (start < below)
        found: list[int] = np.unique(self._group[touched]).tolist()
        return found

    def groups_of_all(self, points: Points) -> list[list[int]]:
        """The same for all partitions, which end below these cut points."""
        first = self._number_of(points, self._lowest)
        last = np.minimum(self._number_of(points, self._highest), len(points) - 1)
        counts = np.maximum(last - first + 1, 0)
        entry = np.repeat(np.arange(counts.size), counts)
        partition = first[entry] + np.arange(entry.size) - (np.cumsum(counts) - counts)[entry]
        source = self._source[entry]
        start = np.where(partition > 0, points[partition - 1, source], LEAST)
        something = points[partition, source] > start
        named = np.unique(partition[something].astype(np.int64) * max(1, self.groups) + self._group[entry][something])
        ends = np.searchsorted(named // max(1, self.groups), np.arange(len(points) + 1))
        groups = named % max(1, self.groups)
        return [groups[ends[number] : ends[number + 1]].tolist() for number in range(len(points))]

    def delivered_before(self, groups: Sequence[int]) -> Points:
        """Above the last number of each source that was delivered before some row groups, given in their order."""
        found = np.full((len(groups), self.nodes), LEAST)
        latest, done = np.full(self.nodes, LEAST), 0
        for number, group in enumerate(groups):
            end = int(self._ends[group - 1]) if group else 0
            np.maximum.at(latest, self._source[done:end], self._last[done:end])
            done = end
            found[number] = np.where(latest == LEAST, LEAST, latest + 1)
        return found

    def across(self, points: Points) -> list[list[tuple[int, int]]]:
        """For each cut point the row groups in which some node may deliver what is above it before what is below.

        These are ranges, from the first through the last row group, one for each node that has any, without repetition.
        """
        cuts = len(points)
        holds = self._last > LEAST
        below = np.where(holds, self._number_of(points, self._first), cuts)  # the first cut that leaves some below
        above = np.where(holds, self._number_of(points, self._last) - 1, -1)  # the last that leaves some above
        last_below = np.full((self.nodes, cuts + 1), -1, np.int32)
        first_above = np.full((self.nodes, cuts + 1), self.groups, np.int32)
        classes = self._group.astype(np.int64) * _MOST_CLASSES + self._class
        named, starts = np.unique(classes, return_index=True)  # entries are sorted so
        if not named.size:
            return [[] for _ in range(cuts)]
        begins = np.minimum.reduceat(below, starts).tolist()
        ends = np.maximum.reduceat(above, starts).tolist()
        members = [(int(one) // _MOST_CLASSES, int(one) % _MOST_CLASSES) for one in named]
        for (group, lateness), begin in zip(members, begins, strict=True):
            last_below[self._lateness[group] == lateness, begin] = group
        for (group, lateness), end in zip(reversed(members), reversed(ends), strict=True):
            first_above[self._lateness[group] == lateness, end] = group  # of -1: in the last column, which is not read
        last_below = np.maximum.accumulate(last_below[:, :cuts], axis=1)
        first_above = np.minimum.accumulate(first_above[:, :cuts][:, ::-1], axis=1)[:, ::-1]
        found: list[list[tuple[int, int]]] = []
        for cut in range(cuts):
            mixed = first_above[:, cut] <= last_below[:, cut]
            pairs = zip(first_above[mixed, cut].tolist(), last_below[mixed, cut].tolist(), strict=True)
            found.append(sorted(set(pairs)))
        return found

    def _number_of(self, points: Points, numbers: Numbers) -> npt.NDArray[np.int32]:
        """For a number of each entry: how many cut points are not above it."""
        found = np.empty(numbers.size, np.int32)
        for source in range(self.nodes):
            mine = self._by_source[self._bounds[source] : self._bounds[source + 1]]
            found[mine] = np.searchsorted(points[:, source], numbers[mine], side="right")
        return found


_MOST_CLASSES = 128  # of lateness
