"""Members are killed, paused, cut off and restarted while all talk, in every order: the others go on."""

import os

import pytest

from tests.network.scenarios import SCENARIOS, anything, run

pytestmark = pytest.mark.network

EVENTS = int(os.environ.get("NETWORK_EVENTS", "50"))
"""Of each random run; twenty of them are a thousand events."""


@pytest.mark.usefixtures("possible")
def test_groups_go_on_when_a_minority_is_cut_off_and_returns() -> None:
    run(SCENARIOS["a_minority_blocks_and_returns"], orders=("total", "sequenced"))


@pytest.mark.soak
@pytest.mark.usefixtures("possible")
@pytest.mark.parametrize("name", SCENARIOS)
def test_groups_go_on(name: str) -> None:
    run(SCENARIOS[name])


@pytest.mark.soak
@pytest.mark.usefixtures("possible")
@pytest.mark.parametrize("seed", range(20))
def test_groups_go_on_whatever_happens(seed: int) -> None:
    """`NETWORK_SEED` moves all seeds, for other runs."""
    run(lambda driver: anything(driver, seed + int(os.environ.get("NETWORK_SEED", "0")), EVENTS))
