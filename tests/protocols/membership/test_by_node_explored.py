"""Members behind the contract of machines, explored: every schedule, with crashes, losses and early timers.

What is promised is in `explorer.view_promises`. Suspicions, joins and departures are in
tests/explorer/test_explore_membership.py.
"""

from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.scenarios import scenario


def group(protocol: str, *lines: str, **how: Any) -> Scenario:
    resilience: dict[str, Any] = {"resilience": len(lines)} if protocol == "sequencer" else {}
    return scenario(protocol, lines, views=True, **resilience, **how)


FAST = [
    ("to", ("a", "", ""), {"crashes": 1}),
    ("to", ("", "a", ""), {"crashes": 1, "firings": 1, "patient": True}),
    ("to", ("a", "", ""), {"losses": 1, "firings": 1, "patient": True}),
    ("prito", ("", "a", ""), {"crashes": 1, "firings": 1, "patient": True}),
    ("sequencer", ("a", "", ""), {"crashes": 1}),
    ("sequencer", ("", "a", ""), {"crashes": 1, "firings": 1, "patient": True}),
    ("sequencer", ("", "a", ""), {"crashes": 1, "losses": 1}),
    ("sequencer", ("a", "", ""), {"crashes": 1, "losses": 1}),
]
SLOW = [
    ("to", ("a", "b"), {"losses": 1, "firings": 2, "patient": True}),
    ("to", ("a", "b", ""), {"crashes": 1, "firings": 1, "patient": True}),
    ("sequencer", ("", "a", ""), {"crashes": 1, "firings": 2, "patient": True}),
    ("sequencer", ("a", "b", ""), {"crashes": 1, "losses": 1}),
    ("sequencer", ("", "a", "b"), {"crashes": 1, "losses": 1, "firings": 1, "patient": True}),
]


@pytest.mark.parametrize(("protocol", "lines", "how"), FAST)
def test_every_schedule_is_right(protocol: str, lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(group(protocol, *lines, **how), reduced=True)
    assert report.exhausted, str(report)


@pytest.mark.soak
@pytest.mark.parametrize(("protocol", "lines", "how"), SLOW)
def test_every_schedule_of_larger_groups_is_right(protocol: str, lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(group(protocol, *lines, **how), reduced=True)
    assert report.exhausted, str(report)
