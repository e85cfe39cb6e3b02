"""Rules of the audit in partitions that long runs seldom meet, one by one."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ordercast.pipeline.audit.kernel.columns import Numbers
from ordercast.pipeline.audit.partitioned import long_run
from ordercast.pipeline.audit.partitioned.cut_points import _MOST_ROUNDS, _closed
from ordercast.pipeline.audit.partitioned.partition_audit import _MOST_BY_SOURCE, steps_by_node
from ordercast.pipeline.audit.partitioned.row_group_summary import _lateness
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups
from ordercast.pipeline.audit.plan import AuditTask, EventLocation


def test_row_groups_are_summarised_in_tasks_of_so_many_rows_and_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_run, "ROWS_OF_AN_INDEX_TASK", 10)
    monkeypatch.setattr(long_run, "GROUPS_OF_AN_INDEX_TASK", 3)
    assert list(long_run.index_tasks([4, 4, 4, 20, 1, 1, 1, 1])) == [(0, 2), (2, 3), (3, 4), (4, 7), (7, 8)]
    assert list(long_run.index_tasks([5, 5, 1])) == [(0, 2), (2, 3)]
    assert list(long_run.index_tasks([])) == []


def test_row_groups_of_many_nodes_are_summarised_together_within_their_file() -> None:
    first = EventLocation("a", {}, (0, 1, 2, 4), (5, 4, 3, 2), shared=False)
    second = EventLocation("b", {}, (7,), (1,), shared=True)
    task = AuditTask({"run": "r"}, (first, second), 15)
    files, rows = long_run.summarised_together(task, 9)
    assert files == [RowGroups("a", {}, (0, 1), None), RowGroups("a", {}, (2, 4), None), RowGroups("b", {}, (7,), "r")]
    assert rows == [9, 5, 1]
    assert long_run.summarised_together(task, 0)[1] == [5, 4, 3, 2, 1]


class NeverClosed:
    """An index in which each cut point lies across another row group whenever it was moved."""

    def __init__(self) -> None:
        self.rounds = 0

    def across(self, points: Any) -> list[list[tuple[int, int]]]:
        return [[(int(point[0]), int(point[0]))] for point in points]

    def close(self, cuts: list[tuple[Numbers, list[int]]]) -> list[Numbers]:
        self.rounds += 1
        return [point + 1 for point, _ in cuts]


def test_a_cut_point_that_is_not_closed_after_some_rounds_stays_as_it_was() -> None:
    index: Any = NeverClosed()
    points: Any = np.array([[10, 10], [500, 500]], np.int64)
    assert _closed(index, points, index.close).tolist() == points.tolist()
    assert index.rounds == _MOST_ROUNDS


def test_a_cut_point_that_is_closed_is_kept_where_it_was_moved_to() -> None:
    index: Any = SimpleNamespace(across=lambda points: [[(0, 0)] for _ in points])
    points: Any = np.array([[10, 10], [500, 500]], np.int64)
    assert _closed(index, points, lambda cuts: [point + 5 for point, _ in cuts]).tolist() == [[15, 15], [505, 505]]


def test_a_node_is_in_a_later_class_for_each_four_times_that_it_is_later_than_the_least_late_one() -> None:
    """Of source 0 message 20 is the newest; the lowest that three nodes were given here are 19, 5 and 13."""
    nodes = 4
    sent = (np.array([0 * nodes + 0]), np.array([0]), np.array([20]))
    delivered = (np.array([1 * nodes + 0, 2 * nodes + 0, 3 * nodes + 0]), np.array([19, 5, 13]), np.array([20, 9, 15]))
    nothing = tuple(np.array([], np.int64) for _ in range(3))
    parts: Any = [sent, delivered, nothing]
    # lateness 1, 15 and 7; in units of the least late one (1 + 1): 1, 8 and 4
    assert _lateness(nodes, parts).tolist() == [-1, 0, 1, 1]


def test_steps_are_told_for_each_source_of_groups_that_are_small_and_of_partitions_that_are_not_closed() -> None:
    assert not steps_by_node(_MOST_BY_SOURCE, closed=True)
    assert steps_by_node(_MOST_BY_SOURCE + 1, closed=True)
    assert not steps_by_node(_MOST_BY_SOURCE + 1, closed=False)
