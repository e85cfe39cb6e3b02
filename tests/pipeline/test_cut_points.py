"""Where a long run is cut: the nearest place at which no node was given what is above before what is below."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ordercast.pipeline.audit.kernel.columns import Numbers
from ordercast.pipeline.audit.partitioned.cut_points import OpenCut, close_cuts, closing_tasks, cut_points
from ordercast.pipeline.audit.partitioned.row_group_index import RowGroupIndex
from ordercast.pipeline.audit.partitioned.row_group_summary import IndexTask, RowGroupSummary, summarise
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups
from ordercast.pipeline.audit.partitioned.tasks import TaskKind, answer_of, run_task
from tests.audit.figures import Row
from tests.pipeline.random_runs import batch_of

NONE_LOW, NONE_HIGH = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def random_groups(chance: Random, nodes: int) -> list[list[Row]]:
    """Row groups of any size: each node is given what each source sent, in an order that wanders a little."""
    events = []
    for node in range(nodes):
        due = [(seq + chance.uniform(0, 2), source, seq) for source in range(nodes) for seq in range(12)]
        for moment, source, seq in due:
            late = moment + chance.uniform(0, chance.choice([0.2, 3]))
            events.append((late, node, "deliver", source, seq))
            events.append((moment, node, "receive", source, seq))
    events.sort()
    rows: list[Row] = [
        (node, step, step, kind, source, seq, None, None) for step, (_, node, kind, source, seq) in enumerate(events)
    ]
    groups = []
    while rows:
        size = chance.randint(1, 30)
        groups.append(rows[:size])
        rows = rows[size:]
    return groups


class Files:
    """Row groups that are written as files of their own."""

    def __init__(self, folder: Path, groups: Sequence[Sequence[Row]], nodes: int) -> None:
        self.nodes = nodes
        self.read: list[list[int]] = []
        self.files = []
        for number, rows in enumerate(groups):
            path = folder / f"{number:03}.parquet"
            pq.write_table(pa.Table.from_batches([batch_of(list(rows))]), path)
            self.files.append(RowGroups(str(path), {}, (0,), None))

    def index(self) -> RowGroupIndex:
        return RowGroupIndex(self.nodes, [one.spans for one in summarise(IndexTask(self.nodes, 0, tuple(self.files)))])

    def close(self, cuts: list[tuple[Numbers, list[int]]]) -> list[Numbers]:
        self.read += [groups for _, groups in cuts]
        given = [OpenCut(point.tobytes(), tuple(self.files[group] for group in groups)) for point, groups in cuts]
        answers = [answer for task in closing_tasks(self.nodes, given) for answer in close_cuts(task)]
        return [np.frombuffer(answer, np.int64) for answer in answers]


def logs_of(groups: Sequence[Sequence[Row]], nodes: int) -> list[list[tuple[int, int]]]:
    given: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for node, _, _, kind, source, seq, *_ in (row for rows in groups for row in rows):
        if kind == "deliver":
            assert source is not None
            assert seq is not None
            given[node].append((source, seq))
    return given


def closed_from(cut: list[int], logs: Sequence[Sequence[tuple[int, int]]]) -> list[int]:
    """By definition: whatever a node was given before its last message from below is taken in, until there is none."""
    while True:
        wider = list(cut)
        for log in logs:
            below = [place for place, (source, seq) in enumerate(log) if seq < wider[source]]
            for source, seq in log[: below[-1] + 1] if below else ():
                wider[source] = max(wider[source], seq + 1)
        if wider == cut:
            return cut
        cut = wider


def expected(groups: Sequence[Sequence[Row]], nodes: int, wanted: int, *, closed: bool) -> list[list[int]]:
    found: list[list[int]] = []
    for number in range(1, wanted):
        early = logs_of(groups[: number * len(groups) // wanted], nodes)
        cut = [NONE_HIGH] * nodes
        for source, seq in (message for log in early for message in log):
            cut[source] = max(cut[source], seq + 1)
        if closed:
            cut = closed_from(cut, logs_of(groups, nodes))
        before = found[-1] if found else [NONE_HIGH] * nodes
        if all(map(int.__ge__, cut, before)) and cut != before:
            found.append(cut)
    return [*found, [NONE_LOW] * nodes]


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_cut_points_are_those_of_the_definition(tmp_path: Path, seed: int, closed: bool) -> None:
    chance = Random(seed)
    nodes = chance.randint(1, 4)
    groups = random_groups(chance, nodes)
    wanted = chance.randint(1, 8)
    files = Files(tmp_path, groups, nodes)
    found = cut_points(files.index(), wanted, files.close if closed else None)
    assert [cut.tolist() for cut in found] == expected(groups, nodes, wanted, closed=closed)


def test_where_cut_points_are_closed_already_nothing_is_read(tmp_path: Path) -> None:
    groups: list[list[Row]] = [[(0, number, number, "deliver", 0, number, None, None)] for number in range(8)]
    files = Files(tmp_path, groups, 1)
    found = cut_points(files.index(), 4, files.close)
    assert [cut.tolist() for cut in found[:-1]] == [[2], [4], [6]]
    assert files.read == []


def test_only_row_groups_across_a_cut_point_are_read_also_if_a_node_lags_behind(tmp_path: Path) -> None:
    """The third node is given everything 300 messages later than the others: its row groups are far from theirs."""
    late = 300
    rows: list[Row] = []
    for now in range(600 + late):
        for node, seq in ((0, now), (1, now), (2, now - late)):
            if 0 <= seq < 600:
                sources = (1, 0) if node == 1 else (0, 1)
                rows += [
                    (node, 2 * now + at, now, "deliver", source, seq, None, None) for at, source in enumerate(sources)
                ]
    groups = [rows[start : start + 25] for start in range(0, len(rows), 25)]
    files = Files(tmp_path, groups, 3)
    found = cut_points(files.index(), 15, files.close)
    assert len(found) >= 10
    assert files.read
    assert max(map(len, files.read)) <= 3
    for start, below in pairwise([np.zeros(3, np.int64), *found]):
        mine = [number for number, rows in enumerate(groups) if any(start[0] <= row[5] < below[0] for row in rows)]
        assert (
            set(mine)
            <= set(files.index().groups_of(start, below))
            <= {number + by for number in mine for by in (-1, 0, 1)}
        )


@pytest.mark.parametrize("seed", range(10))
def test_the_row_groups_of_a_partition_are_those_that_may_have_something_of_it(tmp_path: Path, seed: int) -> None:
    """Nodes that are about equally late are told of together, so that a row group more may be read, but none less."""
    chance = Random(seed)
    nodes = chance.randint(1, 3)
    groups = random_groups(chance, nodes)
    index = Files(tmp_path, groups, nodes).index()
    points = np.cumsum([[chance.randint(0, 5) for _ in range(nodes)] for _ in range(6)], axis=0)
    points[-1] = NONE_LOW
    found = index.groups_of_all(points)
    for number, below in enumerate(points):
        start = points[number - 1] if number else np.full(nodes, NONE_HIGH)

        def surely(rows: Sequence[Row], start: Numbers = start, below: Numbers = below) -> bool:
            return any(row[4] is not None and start[row[4]] <= (row[5] or 0) < below[row[4]] for row in rows)

        def perhaps(rows: Sequence[Row], start: Numbers = start, below: Numbers = below) -> bool:
            """Whether what is there of some source lies around a number of the partition."""
            for source in range(nodes):
                seqs = [row[5] for row in rows if row[4] == source and row[5] is not None]
                if seqs and min(seqs) < below[source] and max(seqs) >= start[source] and start[source] < below[source]:
                    return True
            return False

        mine = set(found[number])
        assert mine == set(index.groups_of(start, below))
        assert {at for at, rows in enumerate(groups) if surely(rows)} <= mine
        assert mine <= {at for at, rows in enumerate(groups) if perhaps(rows)}


def test_summaries_grow_with_what_there_is_and_not_with_the_square_of_the_group(tmp_path: Path) -> None:
    """A thousand nodes are given fifty messages in one row group: 40 bytes for a node or a source, not for both."""
    nodes = 1_000
    rows: list[Row] = [
        (node, seq, seq, "deliver", source, seq, None, None)
        for source in range(10)
        for seq in range(5)
        for node in range(nodes)
    ]
    task = IndexTask(nodes, 0, tuple(Files(tmp_path, [rows], nodes).files))
    (summary,) = summarise(task)
    assert len(msgspec.msgpack.encode(summary)) < 40 * nodes
    answer = run_task(TaskKind.INDEX, msgspec.msgpack.encode(task))
    assert len(answer) < 6 * nodes, "what the driver collects is compressed"
    assert answer_of(answer, list[RowGroupSummary]) == [summary]


def test_one_stray_message_does_not_move_a_cut_point_far_away(tmp_path: Path) -> None:
    """The last message was given to one node at the very beginning: closed cut points lie at the end alone."""
    last = 1_999
    logs = [list(range(last + 1)), [last, *range(last)]]
    rows: list[Row] = [
        (node, at, at, "deliver", 0, logs[node][at], None, None) for at in range(last + 1) for node in range(2)
    ]
    groups = [rows[start : start + 40] for start in range(0, len(rows), 40)]
    files = Files(tmp_path, groups, 2)
    found = cut_points(files.index(), 5, files.close)
    assert len(found) >= 2
    assert files.read == []
