"""PriO: the freedom that it has over PriTO is empty, in every schedule of small groups.

The machine under test raises as soon as a packet is acknowledged before one that precedes it in the sequence: only
then could it go before its equals.
"""

from typing import Any

import pytest

from ordercast.explorer.explore import explore
from tests.explorer.groups import priority_total
from tests.explorer.random_walk import random_walk
from tests.protocols.prio.watching import WatchesItsFreedom

CASES = [
    (("p5", "h5"), {"losses": 1, "firings": 1}),
    (("p5 q5", "h5"), {"losses": 1, "firings": 0}),
    (("p5", "h5", "z5"), {"losses": 0, "firings": 0}),
    (("p5", "h5", ""), {"losses": 1, "firings": 0}),
]


@pytest.mark.parametrize(("lines", "how"), CASES)
def test_nothing_ever_could_go_before_its_equals(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(priority_total(*lines, machine=WatchesItsFreedom, **how))
    assert report.exhausted, str(report)


def test_nor_in_long_schedules() -> None:
    lines = ("a5 b1 c5", "d5 e1", "f5 g5 h1")
    for seed in range(40):
        scenario = priority_total(*lines, machine=WatchesItsFreedom, window=2, losses=seed % 6, firings=30)
        counterexample = random_walk(scenario, seed, length=120)
        assert counterexample is None, f"walk {seed}:\n{counterexample}"
