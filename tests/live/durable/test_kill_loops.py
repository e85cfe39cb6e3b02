"""Processes that are killed again and again lose nothing that was told durable."""

from pathlib import Path

import pytest

from tests.live.durable.kill_loops import Harm, fill_again_and_again, flip_a_bit, kill_again_and_again, lose
from tests.live.durable.logged import LOGGED_ORDERS


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(30))
def test_processes_that_are_killed_a_thousand_times_lose_nothing(seed: int, tmp_path: Path) -> None:
    found = kill_again_and_again(tmp_path, 34, seed, LOGGED_ORDERS[seed % 3])
    assert found.told > sum(found.killed.values())


@pytest.mark.soak
@pytest.mark.parametrize("order", LOGGED_ORDERS)
@pytest.mark.parametrize("harm", [flip_a_bit, lose])
def test_a_disk_that_is_damaged_or_lost_again_and_again_loses_nothing(order: str, harm: Harm, tmp_path: Path) -> None:
    found = kill_again_and_again(tmp_path, 20, 1, order, harm)
    assert found.told > 20


@pytest.mark.soak
@pytest.mark.parametrize("order", LOGGED_ORDERS)
def test_a_disk_that_is_full_again_and_again_loses_nothing(order: str, tmp_path: Path) -> None:
    found = fill_again_and_again(tmp_path, 10, order)
    assert found.told > 20
