"""Processes that are killed again and again lose nothing that was told durable."""

from pathlib import Path

import pytest

from tests.live.durable.kill_loops import kill_again_and_again
from tests.live.durable.logged import LOGGED_ORDERS


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(30))
def test_processes_that_are_killed_a_thousand_times_lose_nothing(seed: int, tmp_path: Path) -> None:
    found = kill_again_and_again(tmp_path, 34, seed, LOGGED_ORDERS[seed % 3])
    assert found.told > sum(found.killed.values())
