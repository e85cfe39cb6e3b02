"""The events of one run, read row group by row group as they are asked for.

The index of a run is made from the statistics of the Parquet files alone: which row groups it has, how many rows, and
from when until when. Rows are read when a tile or a question needs them, and kept while there is room.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import RLock

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.model.errors import TraceError
from ordercast.trace.reader import Part
from ordercast.trace.schema import NODE, RUN, SEQ, TIME
from ordercast.viewer.event_arrays import FULL, NARROW, Events, Texts, full_arrays, joined, narrow_arrays

MOST_KEPT = 6_000_000
"""Rows that are kept in memory, all columns of them; about 55 bytes each."""
_SECOND = 1_000_000_000
Range = tuple[int, int]
Narrow = tuple[npt.NDArray[np.int64], npt.NDArray[np.int16], npt.NDArray[np.uint8]]
"""Time, node and kind."""


@dataclass(frozen=True)
class RowGroup:
    """A row group that has events of the run, and what its statistics say."""

    part: Part
    group: int
    rows: int
    times: Range
    """The earliest and the latest."""
    nodes: Range | None
    seqs: Range | None
    alone: bool
    """No other run has rows in it."""


class RunEvents:
    """The events of one run. May be used by several threads."""

    def __init__(self, run: str, groups: Sequence[RowGroup], texts: Texts | None = None) -> None:
        self.run = run
        self.groups = sorted(groups, key=lambda group: group.times)
        self._origin: int | None = None
        self.texts = texts or Texts()
        self._full: OrderedDict[int, Events] = OrderedDict()
        self._narrow: OrderedDict[int, Narrow] = OrderedDict()
        self._lock = RLock()

    @property
    def rows(self) -> int:
        """How many events there are; an upper bound, if row groups hold several runs."""
        return sum(group.rows for group in self.groups)

    @property
    def times(self) -> Range:
        """The earliest and the latest time; (0, 0) without events."""
        if not self.groups:
            return 0, 0
        return min(group.times[0] for group in self.groups), max(group.times[1] for group in self.groups)

    @property
    def origin(self) -> int:
        """The time that the page calls 0: that of the trace, if it counts from the beginning of the run.

        It stays when the run grows: the page knows times since then only.
        """
        if self._origin is None and self.groups:
            first, last = self.times
            self._origin = 0 if 0 <= first <= max(last - first, _SECOND) else first
        return self._origin or 0

    def add(self, groups: Iterable[RowGroup]) -> None:
        """More row groups, of a trace that grows; what is kept of the others stays."""
        with self._lock:
            self.groups = [*self.groups, *groups]

    def places(self, begin: int, end: int) -> list[int]:
        """The row groups that may have events from a time, inclusive, until another, exclusive."""
        found = enumerate(self.groups)
        return [place for place, group in found if group.times[0] < end and group.times[1] >= begin]

    def rows_at(self, places: Iterable[int]) -> int:
        """The rows of some row groups."""
        return sum(self.groups[place].rows for place in places)

    def full(self, place: int) -> Events:
        """All columns of a row group."""
        with self._lock:
            if place not in self._full:
                events = full_arrays(self._batch(self.groups[place], FULL), self.texts)
                self._full[place] = events
                self._narrow.pop(place, None)
                self._evict(self._full)
            self._full.move_to_end(place)
            return self._full[place]

    def narrow(self, place: int) -> Narrow:
        """Time, node and kind of a row group's events, in any order."""
        with self._lock:
            if place in self._full:
                events = self._full[place]
                return events.time, events.node, events.kind
            if place not in self._narrow:
                self._narrow[place] = narrow_arrays(self._batch(self.groups[place], NARROW))
                self._evict(self._narrow, 4)
            self._narrow.move_to_end(place)
            return self._narrow[place]

    def between(self, begin: int, end: int) -> Events:
        """All events from a time, inclusive, until another, exclusive."""
        return joined([self.full(place).between(begin, end) for place in self.places(begin, end)])

    def first_between(self, begin: int, end: int, most: int) -> tuple[Events, int]:
        """The first events of a span, and about how many more there are; row groups behind them are not read."""
        found: list[Events] = []
        places = sorted(self.places(begin, end), key=lambda place: self.groups[place].times)
        for read, place in enumerate(places):
            found.append(self.full(place).between(begin, end))
            later = self.groups[places[read + 1]].times[0] if read + 1 < len(places) else end
            known = joined(found)
            if len(known.between(begin, later)) >= most:
                return known.take(slice(0, most)), len(known) - most + self.rows_at(places[read + 1 :])
        known = joined(found)
        return known.take(slice(0, most)), max(0, len(known) - most)

    def having(self, seq: int) -> list[int]:
        """The row groups that may name a message of this number."""
        found = enumerate(self.groups)
        return [place for place, group in found if group.seqs is None or group.seqs[0] <= seq <= group.seqs[1]]

    def _batch(self, group: RowGroup, columns: Sequence[str]) -> "pq.RecordBatch":
        wanted = [*columns] if group.alone else [*columns, RUN]
        known = {field.name: field for field in group.part.fields}
        part = replace(
            group.part,
            fields=tuple(known[name] for name in wanted),
            stored=frozenset(name for name in wanted if name in group.part.stored),
        )
        batch = part.read_groups([group.group])
        return batch if group.alone else batch.filter(pc.equal(batch.column(RUN), self.run))

    def _evict(self, kept: "OrderedDict[int, Events] | OrderedDict[int, Narrow]", times: int = 1) -> None:
        while len(kept) > 1 and self.rows_at(kept) > times * MOST_KEPT:
            kept.popitem(last=False)


def groups_by_run(parts: Iterable[Part]) -> dict[str, list[RowGroup]]:
    """The row groups of each run, from the statistics of the files; a row group without statistics is read."""
    found: dict[str, list[RowGroup]] = {}
    for part in parts:
        opened = part.opened()
        for group, runs in enumerate(part.runs_by_group()):
            entry = _described(part, opened, group, alone=len(runs) == 1)
            for run in runs if entry.rows else ():
                found.setdefault(run, []).append(entry)
    return found


def _described(part: Part, opened: pq.ParquetFile, group: int, *, alone: bool) -> RowGroup:
    metadata = opened.metadata.row_group(group)
    ranges: dict[str, Range] = {}
    for index in range(metadata.num_columns):
        column = metadata.column(index)
        statistics = column.statistics if column.is_stats_set else None
        if column.path_in_schema in {TIME, NODE, SEQ} and statistics is not None and statistics.has_min_max:
            ranges[column.path_in_schema] = int(statistics.min), int(statistics.max)
    if TIME not in ranges and metadata.num_rows:
        times, _, _ = narrow_arrays(part.read_groups([group], opened))
        ranges[TIME] = int(np.min(times)), int(np.max(times))
    return RowGroup(part, group, metadata.num_rows, ranges.get(TIME, (0, 0)), ranges.get(NODE), ranges.get(SEQ), alone)


def require_run(known: Iterable[str], run: str) -> None:
    """Raises `TraceError` if a run is not there."""
    names = list(known)
    if run not in names:
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        raise TraceError(f"there is no run {run!r}; the trace has: {shown}")
