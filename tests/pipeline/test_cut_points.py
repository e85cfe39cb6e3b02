"""Where a long run is cut: the nearest place at which no node was given what is above before what is below."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from ordercast.pipeline.audit.partitioned.cut_points import cut_points
from ordercast.pipeline.audit.partitioned.row_group_index import RowGroupIndex
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


def index_of(groups: Sequence[Sequence[Row]], nodes: int) -> RowGroupIndex:
    numbers, delivered = [], []
    for rows in groups:
        found = [np.full(nodes * nodes, value) for value in (NONE_LOW, NONE_HIGH, NONE_LOW, NONE_HIGH)]
        for node, _, _, kind, source, seq, *_ in rows:
            assert source is not None
            assert seq is not None
            for low, high in ((0, 1), *([(2, 3)] if kind == "deliver" else [])):
                place = node * nodes + source
                found[low][place] = min(found[low][place], seq)
                found[high][place] = max(found[high][place], seq)
        numbers.append((found[0], found[1]))
        delivered.append((found[2], found[3]))
    return RowGroupIndex(nodes, numbers, delivered)


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
def test_cut_points_are_those_of_the_definition(seed: int, closed: bool) -> None:
    chance = Random(seed)
    nodes = chance.randint(1, 4)
    groups = random_groups(chance, nodes)
    wanted = chance.randint(1, 8)
    batches = [batch_of(rows) for rows in groups]
    found = cut_points(index_of(groups, nodes), wanted, batches.__getitem__, closed=closed)
    assert [cut.tolist() for cut in found] == expected(groups, nodes, wanted, closed=closed)


def test_where_cut_points_are_closed_already_nothing_is_read() -> None:
    groups: list[list[Row]] = [[(0, number, number, "deliver", 0, number, None, None)] for number in range(8)]

    def read(group: int) -> pa.RecordBatch:
        pytest.fail(f"row group {group} lies on one side of every cut point")

    found = cut_points(index_of(groups, 1), 4, read, closed=True)
    assert [cut.tolist() for cut in found[:-1]] == [[2], [4], [6]]


@pytest.mark.parametrize("seed", range(10))
def test_the_row_groups_of_a_partition_are_those_that_may_have_something_of_it(seed: int) -> None:
    chance = Random(seed)
    nodes = chance.randint(1, 3)
    groups = random_groups(chance, nodes)
    index = index_of(groups, nodes)
    for _ in range(20):
        start = np.array([chance.randint(0, 8) for _ in range(nodes)])
        end = start + np.array([chance.randint(1, 5) for _ in range(nodes)])

        def spans(
            rows: Sequence[Row], start: Sequence[int] = start.tolist(), end: Sequence[int] = end.tolist()
        ) -> bool:
            """Whether what some node has of some source lies around a number of the partition."""
            for node in range(nodes):
                for source in range(nodes):
                    seqs = [row[5] for row in rows if row[0] == node and row[4] == source and row[5] is not None]
                    if seqs and min(seqs) < end[source] and max(seqs) >= start[source]:
                        return True
            return False

        assert index.groups_of(start, end) == [number for number, rows in enumerate(groups) if spans(rows)]
