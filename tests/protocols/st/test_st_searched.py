"""ST in small searches and walks, judged by what the service promises alone: what every breakage is held against.

The large ones are in `tests/explorer`.
"""

from random import Random
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from tests.explorer.groups import selective_total
from tests.explorer.random_walk import random_walk

SEARCHES: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("a{1,2}", "b{1,2}"), {"losses": 1, "firings": 1}),
    (("a{1,2} b{1,2}", "c{1}"), {"window": 1, "losses": 1}),
    (("", "g{1,3}", "y{1,3}"), {"losses": 1}),
    (("a{1,2}", "b{2,3}", "c{1,3}"), {"losses": 1}),
]


@pytest.mark.parametrize(("lines", "how"), SEARCHES)
def test_a_small_search(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(selective_total(*lines, **how), max_states=30_000)
    assert report.counterexample is None, str(report)


@pytest.mark.parametrize("seed", range(60))
def test_a_walk(seed: int) -> None:
    chance = Random(seed)
    nodes = chance.choice([2, 3, 3, 4])
    lines: list[list[str]] = [[] for _ in range(nodes)]
    for number in range(chance.randint(3, 8)):
        to = sorted(chance.sample(range(1, nodes + 1), chance.randint(1, nodes)))
        lines[chance.randrange(nodes)].append(f"m{number}{{{','.join(map(str, to))}}}")
    scenario = selective_total(
        *map(" ".join, lines),
        window=chance.choice([1, 2, 8]),
        quota=chance.choice([1, 8]),
        log_limit=chance.choice([1, 4, 400]),
        losses=chance.choice([2, 5, 10]),
        firings=chance.choice([0, 20, 50]),
        patient=chance.random() < 0.3,
    )
    assert random_walk(scenario, seed, length=150) is None
