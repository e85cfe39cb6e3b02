"""Semantic mutants of the partitioned audit: partitions that lose, repeat or misplace something."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ordercast.audit.services import PROMISES
from ordercast.pipeline.audit.kernel.columns import Flags, Numbers
from ordercast.pipeline.audit.partitioned import (
    audit,
    cut_points,
    explain,
    log_comparison,
    long_run,
    partition_overlaps,
    row_group_summary,
)
from ordercast.pipeline.audit.partitioned.log_comparison import Comparison
from ordercast.pipeline.audit.partitioned.partition_audit import Partition
from ordercast.pipeline.audit.partitioned.partition_results import PartitionResults
from ordercast.pipeline.audit.partitioned.row_group_index import RowGroupIndex
from ordercast.pipeline.audit.partitioned.row_groups import Ranges
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("pipeline.audit.partitioned.audit")
_PACKAGE = "pipeline.audit.partitioned"


@MUTANTS.add("partitions never overlap", f"{_PACKAGE}.partition_overlaps")
def _() -> None:
    replace(partition_overlaps, "first_overlap", lambda _: None)


@MUTANTS.add("a gap between partitions is not noticed", f"{_PACKAGE}.partition_overlaps")
def _() -> None:
    replace(partition_overlaps, "first_gap", lambda *_: None)


@MUTANTS.add("neighbours overlap at most", f"{_PACKAGE}.partition_overlaps")
def _() -> None:
    def neighbours(tables: Sequence[Any]) -> range | None:
        for number, (one, other) in enumerate(pairwise(tables)):
            if one and other and np.any(other[0] <= one[1]):
                return range(number, number + 2)
        return None

    replace(partition_overlaps, "first_overlap", neighbours)


@MUTANTS.add("a partition has the first message above it too", f"{_PACKAGE}.partition_audit")
def _() -> None:
    def through(self: Partition, source: Numbers, seq: Numbers) -> Flags:
        start, below = np.array(self.start), np.array(self.below)
        return (seq >= start[source]) & (seq <= below[source])

    replace(Partition, "contains", through)


@MUTANTS.add("events that are in no partition do not matter", f"{_PACKAGE}.partition_results")
def _() -> None:
    replace(PartitionResults, "contain_everything", lambda _: True)


@MUTANTS.add("a partition that does not pass is not searched", f"{_PACKAGE}.partition_results")
def _() -> None:
    replace(PartitionResults, "suspects", lambda _: ([], False))


@MUTANTS.add("a stopped node may go on after a message that it misses", f"{_PACKAGE}.partition_results")
def _() -> None:
    replace(PartitionResults, "stopped_node_skips", lambda _: False)


@MUTANTS.add("the last row group of a partition is not read", f"{_PACKAGE}.row_group_index")
def _() -> None:
    def around(groups_of_all: Callable[..., list[list[int]]]) -> Callable[..., list[list[int]]]:
        return lambda self, points: [groups[:-1] for groups in groups_of_all(self, points)]

    wrap(RowGroupIndex, "groups_of_all", around)


@MUTANTS.add("the ranges of a row group end at its first value", f"{_PACKAGE}.row_groups")
def _() -> None:
    def around(tables: Callable[[Ranges], tuple[Numbers, Numbers]]) -> Callable[[Ranges], tuple[Numbers, Numbers]]:
        return lambda self: (tables(self)[0],) * 2

    wrap(Ranges, "tables", around)


@MUTANTS.add("cut points are never widened to closed ones", f"{_PACKAGE}.cut_points")
def _() -> None:
    replace(cut_points, "_closed", lambda _, points, __: points)


@MUTANTS.add("all nodes count as equally late", f"{_PACKAGE}.row_group_summary")
def _() -> None:
    replace(row_group_summary, "_lateness", lambda nodes, _: np.zeros(nodes, np.int8))


@MUTANTS.add("logs never differ", f"{_PACKAGE}.log_comparison")
def _() -> None:
    replace(log_comparison, "compare", lambda _: Comparison(()))
    replace(audit, "_first_difference", lambda _: ())


@MUTANTS.add("positions are those in the partition", f"{_PACKAGE}.explain")
def _() -> None:
    replace(explain, "_positioned", lambda violation, _: violation)


@MUTANTS.add("properties of whole logs are checked in partitions", f"{_PACKAGE}.explain")
def _() -> None:
    replace(explain, "checkable_in_partitions", lambda service, **_: list(PROMISES[service]))


@MUTANTS.add("row groups in any order count as ordered", f"{_PACKAGE}.long_run")
def _() -> None:
    replace(long_run, "_in_order", lambda _: True)


@MUTANTS.add("every run counts as partitionable")
def _() -> None:
    replace(audit, "_require_partitionable", lambda _: None)
