"""Progress: told while work is done, by whatever the session has, and to the end only if the end is reached."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ordercast.pipeline import measure
from ordercast.pipeline.progress import is_connect, watched, watched_tasks
from tests.pipeline.runs import some_runs


def test_counts_are_told_while_the_work_goes_on() -> None:
    told: list[tuple[int, int]] = []
    with watched(lambda: 3, 10, lambda done, total: told.append((done, total))):
        deadline = time.monotonic() + 20
        while (3, 10) not in told and time.monotonic() < deadline:
            time.sleep(0.01)
    assert told[0] == (0, 10)
    assert (3, 10) in told
    assert told[-1] == (10, 10)


def stumble(told: list[int]) -> None:
    with watched(lambda: 3, 10, lambda done, _: told.append(done)):
        raise ValueError


def test_work_that_fails_is_not_told_to_be_done() -> None:
    told: list[int] = []
    with pytest.raises(ValueError):  # noqa: PT011
        stumble(told)
    assert 10 not in told


def test_nobody_is_told_of_nothing() -> None:
    with watched(lambda: pytest.fail("nobody asked"), 10, None):
        time.sleep(0.6)


class Client:
    """A session of Spark Connect, as far as progress is concerned."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []
        self.registerProgressHandler = self.handlers.append
        self.removeProgressHandler = self.handlers.remove


Client.__module__ = "pyspark.sql.connect.session"


def test_connect_is_asked_for_its_own_progress() -> None:
    client: Any = Client()
    assert is_connect(client)
    told: list[int] = []
    with watched_tasks(client, 5, lambda done, _: told.append(done)):
        [handler] = client.handlers
        stages = [
            SimpleNamespace(stage_id=0, num_tasks=2, num_completed_tasks=2),
            SimpleNamespace(stage_id=1, num_tasks=5, num_completed_tasks=4),
        ]
        handler(stages=stages, inflight_tasks=1, operation_id="x", done=False)
        handler(stages=None, inflight_tasks=0, operation_id="x", done=True)
    assert told == [0, 4, 0, 5]
    assert client.handlers == []


def test_tasks_are_counted_by_the_status_tracker(spark: SparkSession) -> None:
    told: list[tuple[int, int]] = []
    rows = measure(spark, some_runs(6, messages=400), progress=lambda done, total: told.append((done, total)))
    assert [row["seed"] for row in rows] == list(range(6))
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)
    assert told == sorted(told)
