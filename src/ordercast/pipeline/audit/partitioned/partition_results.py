"""What was found about each partition of a long run, and whether they come one after the other."""

from collections.abc import Iterator

import numpy as np

from ordercast.audit.numbering import key_order_kept, numbers_dense
from ordercast.audit.order import sender_order_kept
from ordercast.audit.priorities import sender_order_kept_by_priority
from ordercast.pipeline.audit.kernel.columns import Numbers
from ordercast.pipeline.audit.partitioned.long_run import LongRun
from ordercast.pipeline.audit.partitioned.partition_audit import Partition, PartitionResult, steps_by_node
from ordercast.pipeline.audit.partitioned.partition_overlaps import (
    StepTables,
    first_gap,
    first_number_missing,
    first_overlap,
)
from ordercast.pipeline.audit.partitioned.row_groups import LEAST, MOST
from ordercast.pipeline.audit.partitioned.tasks import TaskKind, answer_of

_MOST_ROWS_MERGED = 6_000_000  # of overlapping partitions that are audited as one


class PartitionResults:
    """The partitions of a run, given by their cut points, and what was found about each.

    `closed`: the service has one order, so that nodes must deliver all of one partition before the next.
    """

    def __init__(self, run: LongRun, cut_points: list[Numbers], *, closed: bool) -> None:
        self.run = run
        self.cut_points = cut_points
        self.closed = closed
        self.results: list[PartitionResult | None] = [None] * len(cut_points)
        self._promises = run.promises

    def partition(self, number: int) -> Partition:
        """A partition, by its number."""
        start = self.cut_points[number - 1] if number else np.full(self.run.nodes, LEAST)
        return Partition(tuple(start.tolist()), tuple(self.cut_points[number].tolist()))

    def audit(self) -> range | None:
        """Audits all partitions without a result; the first overlap that leaves the order unknown, if any."""
        missing = [number for number, result in enumerate(self.results) if result is None]
        groups = self.run.index.groups_of_all(np.array(self.cut_points))
        tasks = [
            self.run.partition_task(number, self.partition(number), groups[number], closed=self.closed)
            for number in missing
        ]
        for answer in self.run.run_tasks(TaskKind.AUDIT, tasks):
            result = answer_of(answer, PartitionResult)
            self.results[result.number] = result
        return self._order_overlap() if self.closed else None

    def all_passed(self) -> bool:
        """True if every partition passes by itself. Otherwise their order does not matter for the verdict."""
        return all(result is not None and result.passed for result in self.results)

    def merge(self, overlap: range) -> bool:
        """Makes one partition of some neighbours; False if it would be too large."""
        rows = sum(result.rows for result in self.results[overlap[0] : overlap[-1] + 1] if result is not None)
        if rows > _MOST_ROWS_MERGED:
            return False
        self.cut_points[overlap[0] : overlap[-1]] = []
        self.results[overlap[0] : overlap[-1] + 1] = [None]
        return True

    def contain_everything(self) -> bool:
        """True if each event is in a partition, and each source's messages were sent partition by partition."""
        rows = sum(result.rows for result in self.results if result is not None)
        return rows == self.run.rows and first_overlap(self._tables("sent")) is None

    def stopped_node_skips(self) -> bool:
        """True if a stopped node delivered something of a partition after one of which it misses something.

        Checked if the run is uniform: then its log must be a prefix of the others'. All partitions must have passed.
        """
        going_on = [node for node in range(self.run.nodes) if node not in self.run.stopped]
        counts = [np.frombuffer(result.deliveries, np.int64) for result in self.results if result is not None]
        return first_gap([one < one[going_on].max() for one in counts], [one > 0 for one in counts]) is not None

    def suspects(self) -> tuple[list[list[int]], bool]:
        """Groups of partitions to be searched for violations: those that did not pass, and those that overlap.

        And whether any overlap: of these only the first is searched.
        """
        found = [[number] for number, result in enumerate(self.results) if result is None or not result.passed]
        overlaps = [overlap for overlap in self._overlaps() if overlap is not None]
        for overlap in overlaps:
            both = {overlap[0], overlap[-1]}
            for group in [group for group in found if both & set(group)]:  # nothing may be counted twice
                both |= set(group)
                found.remove(group)
            found.insert(0, sorted(both))
        if numbers_dense in self._promises:  # without those between, numbers would seem to be missing
            found = [list(range(group[0], group[-1] + 1)) for group in found]
        return found, bool(overlaps)

    def _overlaps(self) -> Iterator[range | None]:
        if self.closed:
            yield self._order_overlap()
        if {sender_order_kept, key_order_kept} & self._promises and not steps_by_node(
            self.run.nodes, closed=self.closed
        ):
            yield first_overlap(self._tables("delivered"))
        if numbers_dense in self._promises:
            yield first_number_missing(self._tables("numbers"))
        if sender_order_kept_by_priority in self._promises:
            for priority in {priority for result in self.results if result for priority in result.by_priority}:
                ranges = [result.by_priority.get(priority) if result else None for result in self.results]
                yield first_overlap(StepTables(ranges))
        if self.run.levels:
            accepted = self._tables("accepted")
            yield first_overlap(accepted)
            missing = [np.frombuffer(result.unaccepted if result else b"", np.bool_) for result in self.results]
            present = [np.empty(0, np.bool_) if one is None else one[1] != LEAST for one in accepted]
            yield first_gap(missing, present)

    def _order_overlap(self) -> range | None:
        return first_overlap([_steps_by_node(self.run.nodes, result) for result in self.results])

    def _tables(self, what: str) -> StepTables:
        return StepTables([None if result is None else getattr(result, what) for result in self.results])


def _steps_by_node(nodes: int, result: PartitionResult | None) -> tuple[Numbers, Numbers] | None:
    """The steps between which each node delivered messages of a partition."""
    if result is None or result.delivered is None:
        return None
    cells, first, last = result.delivered.sparse()
    node = cells * nodes // result.delivered.cells  # of nodes · nodes cells, or of as many as nodes
    lowest, highest = np.full(nodes, MOST), np.full(nodes, LEAST)
    np.minimum.at(lowest, node, first)
    np.maximum.at(highest, node, last)
    return lowest, highest
