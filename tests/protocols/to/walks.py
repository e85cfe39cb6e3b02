"""Long schedules of TO and PriTO, drawn at random."""

from random import Random
from typing import Any

from ordercast.explorer.counterexample import Counterexample
from tests.explorer.groups import priority_total, total
from tests.explorer.random_walk import random_walk


def walk(seed: int, **how: Any) -> Counterexample | None:
    """What one breaks, if anything; odd ones are of TO, even ones of PriTO."""
    chance = Random(seed)
    lines: list[list[str]] = [[] for _ in range(chance.choice([2, 3, 3, 4]))]
    for name in "abcdefghij"[: chance.randint(3, 10)]:
        chance.choice(lines).append(f"{name}{chance.choice([1, 1, 2, 5])}")
    settings: dict[str, Any] = {
        "window": chance.choice([1, 2, 8]),
        "quota": chance.choice([1, 2, 8]),
        "losses": chance.choice([0, 2, 5, 10]),
        "firings": chance.choice([5, 20, 50]),
        "drained": chance.random() < 0.3,
        "patient": chance.random() < 0.3,
        "rounds": 120,  # ten messages one by one, in step and patiently, have taken 41
        **how,
    }
    scenario = (total if seed % 2 else priority_total)(*map(" ".join, lines), **settings)
    return random_walk(scenario, seed, length=chance.choice([20, 60, 150]))
