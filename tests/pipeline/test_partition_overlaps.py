"""The order of partitions, by its definition: some earlier partition ends after a later one begins."""

from random import Random

import numpy as np
import pytest

from ordercast.pipeline.audit.kernel.columns import Flags, Numbers
from ordercast.pipeline.audit.partitioned.partition_overlaps import first_gap, first_number_missing, first_overlap
from ordercast.pipeline.audit.partitioned.row_groups import LEAST, MOST, Ranges

Table = tuple[Numbers, Numbers]


def random_tables(chance: Random) -> list[Table | None]:
    """Steps of some cells, mostly increasing from partition to partition; some cells, and some tables, are empty."""
    cells, tables = chance.randint(1, 3), list[Table | None]()
    for number in range(chance.randint(0, 6)):
        lowest = [10 * number + chance.choice([0, 0, 0, -4, -9, -10, -30]) for _ in range(cells)]
        highest = [low + chance.randint(0, 9) for low in lowest]
        for cell in range(cells):
            if chance.random() < 0.2:
                lowest[cell], highest[cell] = MOST, LEAST
        tables.append(None if chance.random() < 0.1 else (np.array(lowest), np.array(highest)))
    return tables


def overlaps(one: Table | None, other: Table | None) -> bool:
    return one is not None and other is not None and any(map(int.__ge__, one[1].tolist(), other[0].tolist()))


@pytest.mark.parametrize("seed", range(60))
def test_the_first_overlap_is_that_of_the_definition(seed: int) -> None:
    tables = random_tables(Random(seed))
    pairs = [
        (later, earlier)
        for later in range(len(tables))
        for earlier in range(later)
        if overlaps(tables[earlier], tables[later])
    ]
    expected = range(min(pairs)[1], min(pairs)[0] + 1) if pairs else None
    assert first_overlap(tables) == expected


@pytest.mark.parametrize("seed", range(40))
def test_the_first_gap_is_that_of_the_definition(seed: int) -> None:
    chance = Random(seed)
    count, cells = chance.randint(0, 5), chance.randint(1, 3)

    def flags(share: float) -> list[Flags]:
        return [
            np.array([chance.random() < share for _ in range(0 if chance.random() < 0.1 else cells)], np.bool_)
            for _ in range(count)
        ]

    missing, present = flags(0.2), flags(0.5)
    pairs = [
        (later, earlier)
        for later in range(count)
        for earlier in range(later)
        if any(one and other for one, other in zip(missing[earlier].tolist(), present[later].tolist(), strict=False))
    ]
    expected = range(min(pairs)[1], min(pairs)[0] + 1) if pairs else None
    assert first_gap(missing, present) == expected


@pytest.mark.parametrize("seed", range(10))
def test_ranges_are_the_least_and_the_greatest_of_each_cell(seed: int) -> None:
    chance = Random(seed)
    cells = chance.choice([3, 7, 2**15 - 1, 2**15 + 5])
    rows = [(chance.choice([0, 1, cells - 1]), chance.randint(-50, 50)) for _ in range(chance.randint(0, 20))]
    found = Ranges.over(cells, np.array([cell for cell, _ in rows], np.int64), np.array([value for _, value in rows]))
    lowest, highest = found.tables()
    for cell in {0, 1, 2, cells - 1}:
        values = [value for at, value in rows if at == cell]
        assert lowest[cell] == min(values, default=MOST)
        assert highest[cell] == max(values, default=LEAST)


def test_a_number_between_two_partitions_is_missing() -> None:
    """Source 0 goes on with the next number, also beyond a partition that has nothing of it; source 1 does not."""

    def table(*ranges: tuple[int, int] | None) -> tuple[Numbers, Numbers]:
        lowest = [MOST if one is None else one[0] for one in ranges]
        return np.array(lowest), np.array([LEAST if one is None else one[1] for one in ranges])

    good = [table((0, 4), None), table(None, (7, 9)), None, table((5, 5), (10, 12))]
    assert first_number_missing(good) is None
    assert first_number_missing([*good, table((6, 8), (14, 15))]) == range(3, 5)
    assert first_number_missing([*good[:3], table((6, 6), (10, 10))]) == range(4)
    assert first_number_missing([]) is None
