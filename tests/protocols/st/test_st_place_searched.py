"""ST that places what was lost, in small searches and walks, judged by what the service promises alone.

The large searches are in `tests/explorer`.
"""

from random import Random
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.model.config import RecoveryPolicy
from tests.explorer.groups import selective_total
from tests.explorer.random_walk import random_walk

PLACE = RecoveryPolicy.PLACE
SEARCHES: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("w{1,2}", "x{1,2}"), {"losses": 2}),
    (("a{1,2} b{1,2}", "c{1}"), {"window": 1, "losses": 1}),
    (("", "g{1,3}", "y{1,3}"), {"losses": 1}),
    (("a{1,2}", "b{2,3}", "c{1,3}"), {"losses": 1}),
    (("g{1,3} p{1,3}", "z{1,3}", ""), {"losses": 1}),
    (("w{1,2}", "x{1,2}"), {"duplicates": 1}),
    (("w{1,2}", "x{1,2}"), {"losses": 1, "delivers_stable": True, "polls_late": True}),
]


@pytest.mark.parametrize(("lines", "how"), SEARCHES)
def test_a_small_search(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(selective_total(*lines, recovery=PLACE, **how), max_states=5_000)
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
        recovery=PLACE,
        window=chance.choice([1, 2, 8]),
        quota=chance.choice([1, 8]),
        losses=chance.choice([2, 5, 10]),
        firings=chance.choice([0, 20, 50]),
        patient=chance.random() < 0.3,
        infer_losses=chance.random() < 0.3,
    )
    assert random_walk(scenario, seed, length=150) is None
