"""Thousands of random groups of each order whose members change, and larger searches."""

from typing import Any

import pytest

from ordercast.explorer.scenarios import scenario
from ordercast.protocols.registry import FLUSHES
from tests.protocols.membership.campaigns import campaign
from tests.protocols.membership.every_state import EpochMachine, EveryState
from tests.protocols.membership.test_flush_explored import SEARCHES

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("protocol", FLUSHES)
def test_members_come_and_go_for_long(protocol: str) -> None:
    print(protocol, campaign(protocol, range(60, 5_000)))  # noqa: T201 - how much it was


@pytest.mark.parametrize(("protocol", "lines", "states", "how"), SEARCHES)
def test_a_view_may_end_in_any_of_many_states(
    protocol: str, lines: tuple[str, ...], states: int, how: dict[str, Any]
) -> None:
    how = {**how, "firings": how.get("firings", 0) + 1}
    explored = EveryState(protocol, scenario(protocol, lines, machine=EpochMachine(protocol), **how), 20 * states)
    assert explored.report.counterexample is None, str(explored.report)
    explored.run()
