"""ST with go-back-n instead of selective retransmission: the same promises, at a higher price.

Only that what was thrown away is expected again.
"""

from random import Random
from typing import Any

import pytest

from ordercast.explorer.explore import SearchReport, explore
from ordercast.explorer.scenario import Scenario
from ordercast.model.config import RecoveryPolicy
from tests.explorer.groups import selective_total
from tests.explorer.random_walk import random_walk


def go_back(*lines: str, **how: Any) -> Scenario:
    return selective_total(*lines, recovery=RecoveryPolicy.GO_BACK_N, **how)


def explored(*lines: str, **how: Any) -> SearchReport:
    return explore(go_back(*lines, **how))


EXHAUSTED = [
    pytest.param(("a{1,2}", "b{1,2}"), {"losses": 1, "firings": 1}, id="pair-T1"),
    pytest.param(("a{1,2} b{1,2}", ""), {"log_limit": 1, "losses": 1}, id="log-limit-1"),
    pytest.param(
        ("a{1,2} b{1,2}", "c{1,2}"), {"log_limit": 1, "losses": 1}, id="log-limit-1-both", marks=pytest.mark.soak
    ),
    pytest.param(("", "g{1,3}", "y{1,3}"), {"losses": 1}, id="S3"),
    pytest.param(("g{1,3} p{1,3}", "z{1,3}", ""), {"losses": 1}, id="S1", marks=pytest.mark.soak),
    pytest.param(("a{1,2}", "b{2,3}", "c{1,3}"), {"losses": 1}, id="pairs", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("lines", "how"), EXHAUSTED)
def test_every_schedule_is_right(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explored(*lines, **how)
    assert report.exhausted, str(report)


@pytest.mark.parametrize("firings", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_nothing_is_accepted_twice(firings: int) -> None:
    report = explored("a{1,2}", "b{1,2}", losses=2, firings=firings)
    assert report.exhausted, str(report)


def test_what_was_thrown_away_is_sent_again_when_the_window_opens() -> None:
    report = explored("a{1,2}", "", window=1, quota=1, losses=1, drained=True)
    assert report.exhausted, str(report)


def test_long_schedules_at_random() -> None:
    for seed in range(40):
        chance = Random(seed)
        nodes = chance.choice([2, 3, 3, 4])
        lines: list[list[str]] = [[] for _ in range(nodes)]
        for number in range(chance.randint(1, 8)):
            to = sorted(chance.sample(range(1, nodes + 1), chance.randint(1, nodes)))
            lines[chance.randrange(nodes)].append(f"m{number}{{{','.join(map(str, to))}}}")
        scenario = go_back(
            *map(" ".join, lines),
            window=chance.choice([1, 2, 3, 8]),
            quota=chance.choice([1, 2, 3, 8]),
            log_limit=chance.choice([1, 2, 4, 400]),
            losses=chance.choice([2, 5, 10]),
            firings=chance.choice([0, 5, 20, 50]),
            patient=chance.random() < 0.3,
        )
        counterexample = random_walk(scenario, seed, length=chance.choice([20, 60, 200]))
        assert counterexample is None, f"walk {seed} of {lines}:\n{counterexample}"
