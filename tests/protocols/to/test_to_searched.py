"""TO and PriTO in small searches and walks, judged by what the services promise alone.

It is what every breakage is held against; the large ones are in `tests/explorer`.
"""

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.scenario import Scenario
from tests.explorer.groups import priority_total, total
from tests.protocols.to.walks import walk

SEARCHES = [
    total("a", "b", losses=1, firings=1),
    total("a", "b", "", losses=1),
    priority_total("p1 h5", "z3", losses=1),
]


@pytest.mark.parametrize("scenario", SEARCHES)
def test_a_small_search(scenario: Scenario) -> None:
    report = explore(scenario, max_states=10_000)
    assert report.counterexample is None, str(report)


@pytest.mark.parametrize("seed", range(40))
def test_a_walk(seed: int) -> None:
    assert walk(seed) is None
