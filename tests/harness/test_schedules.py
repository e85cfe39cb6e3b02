"""Every machine under any schedule that hypothesis thinks of: its service keeps its promises, its group ends well.

In `make test` the same few schedules each time; `make soak` draws new ones.
"""

import os
import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.scenarios import GROUPS, scenarios_of
from tests.harness.schedule import schedules_of

FEW = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=10,
    stateful_step_count=60,
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, derandomize=False, max_examples=200, stateful_step_count=150)


@pytest.mark.parametrize("group", GROUPS)
def test_a_few_schedules(group: str) -> None:
    run_state_machine_as_test(schedules_of(scenarios_of(group)), settings=FEW)


@pytest.mark.soak
@pytest.mark.parametrize("group", GROUPS)
def test_schedules_never_drawn_before(group: str) -> None:
    until = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "600")) / 8
    while time.monotonic() < until:
        run_state_machine_as_test(schedules_of(scenarios_of(group)), settings=MANY)
