"""Results of partitions by hand: which may be merged, which are searched, and what a stopped node skipped."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned import partition_results
from ordercast.pipeline.audit.partitioned.long_run import LongRun
from ordercast.pipeline.audit.partitioned.partition_audit import PartitionResult
from ordercast.pipeline.audit.partitioned.partition_results import PartitionResults
from ordercast.pipeline.audit.partitioned.row_groups import Ranges
from ordercast.pipeline.audit.partitioned.tasks import run_in_process
from ordercast.pipeline.audit.plan import audit_tasks
from tests.pipeline.random_runs import RandomRun
from tests.pipeline.traces import write

NODES = 3
Delivered = tuple[int, int, int]
"""node, source, step."""


def results_of(
    folder: Path, service: Service, results: Sequence[PartitionResult], *, closed: bool = True, crashed: bool = False
) -> PartitionResults:
    """Of a run of three nodes, of which the last may crash; its events do not matter, but that it has some."""
    run = RandomRun(service, NODES, [[(node, "send", (node, 0), (0, 1, 2), None)] for node in range(NODES)])
    if crashed:
        run.logs[-1].append((9, "crash", None, None, None))
    (task,) = audit_tasks([write(folder, {"r": run})])
    points = [np.full(NODES, 10 * number) for number in range(1, len(results) + 1)]
    found = PartitionResults(LongRun.indexed(task, service, run_in_process), points, closed=closed)
    found.results = list(results)
    return found


def steps(*delivered: Delivered) -> Ranges:
    cells = [node * NODES + source for node, source, _ in delivered]
    return Ranges.over(NODES**2, np.array(cells), np.array([step for _, _, step in delivered]))


def counted(*deliveries: int) -> PartitionResult:
    return PartitionResult(0, passed=True, rows=1, deliveries=np.array(deliveries, np.int64).tobytes())


@pytest.mark.parametrize(
    ("overlap", "most", "left"),
    [
        (range(1, 3), 5, [1, None, 4]),  # 2 + 3 rows, and none of the partitions beside them
        (range(1, 3), 4, None),
        (range(4), 10, [None]),
        (range(4), 9, None),
    ],
)
def test_neighbours_are_merged_up_to_a_number_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overlap: range, most: int, left: list[int | None] | None
) -> None:
    monkeypatch.setattr(partition_results, "_MOST_ROWS_MERGED", most)
    four = [PartitionResult(number, passed=True, rows=number + 1) for number in range(4)]
    found = results_of(tmp_path, Service.TOTAL, four)
    assert found.merge(overlap) is (left is not None)
    assert [result and result.rows for result in found.results] == (left or [1, 2, 3, 4])
    ends = [int(point[0]) for point in found.cut_points]
    assert ends == [end for number, end in enumerate([10, 20, 30, 40]) if not left or number not in overlap[:-1]]


def test_all_have_passed_if_none_failed_and_none_is_missing(tmp_path: Path) -> None:
    passed, failed = (PartitionResult(0, passed=passed, rows=1) for passed in (True, False))
    found = results_of(tmp_path, Service.TOTAL, [passed, passed])
    assert found.all_passed()
    for other in (failed, None):
        found.results[1] = other
        assert not found.all_passed()


@pytest.mark.parametrize(
    ("failed", "closed", "groups"),
    [
        ([], True, [[1, 2]]),
        ([0], True, [[1, 2], [0]]),
        ([2], True, [[1, 2]]),  # a violation in a partition that is searched twice would be counted twice
        ([1, 2, 3], True, [[1, 2], [3]]),
        ([0], False, [[0]]),
    ],
)
def test_partitions_that_overlap_at_a_node_are_searched_together(
    tmp_path: Path, failed: list[int], closed: bool, groups: list[list[int]]
) -> None:
    """E1 delivers something of E2 before what an earlier partition has of E1: each sender's own order is kept.

    That matters only if the service has one order. A partition that could not be read has no steps.
    """
    delivered = [steps((0, 0, 1)), steps((0, 0, 8)), steps((0, 1, 5)), steps((0, 1, 9))]
    results = [
        PartitionResult(number, passed=number not in failed, rows=1, delivered=one)
        for number, one in enumerate(delivered)
    ]
    found = results_of(tmp_path, Service.TOTAL, results, closed=closed)
    assert found.suspects() == (groups, closed)


def test_overlaps_that_share_a_partition_are_searched_together(tmp_path: Path) -> None:
    """The order overlaps in the first two partitions first, that of E2's messages in the last two."""
    delivered = [steps((0, 0, 8)), steps((0, 1, 5), (0, 1, 20)), steps((0, 1, 15))]
    results = [PartitionResult(at, passed=True, rows=1, delivered=one) for at, one in enumerate(delivered)]
    assert results_of(tmp_path, Service.TOTAL, results).suspects() == ([[0, 1, 2]], True)


def test_a_partition_that_could_not_be_read_overlaps_none(tmp_path: Path) -> None:
    first, last = (PartitionResult(at, passed=True, rows=1, delivered=steps((0, 0, at))) for at in (0, 2))
    results = [first, PartitionResult(1, passed=False, rows=1), last]
    assert results_of(tmp_path, Service.TOTAL, results).suspects() == ([[1]], False)


@pytest.mark.parametrize(
    ("counts", "skips"),
    [
        ([(2, 2, 1), (3, 3, 1)], True),
        ([(2, 2, 0), (3, 3, 1)], True),
        ([(2, 2, 1), (3, 3, 0)], False),  # a prefix of the others' logs
        ([(2, 2, 2), (3, 3, 1)], False),
        ([(2, 2, 2), (3, 3, 3)], False),
        ([(2, 2, 1), (3, 3, 0), (1, 1, 1)], True),
    ],
)
def test_a_stopped_node_skips_what_it_misses_before_what_it_has(
    tmp_path: Path, counts: list[tuple[int, ...]], skips: bool
) -> None:
    """The third node stopped; how much there is in a partition is what the others delivered of it."""
    results = [counted(*one) for one in counts]
    assert results_of(tmp_path, Service.SEQUENCED, results, crashed=True).stopped_node_skips() is skips
