"""Tells how far a Spark job is while it runs, by whatever means the session has."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
"""Told now and then how many of how many parts are done."""

_EVERY = 0.5  # seconds


@contextmanager
def watched(count: Callable[[], int], total: int, progress: Progress | None) -> Iterator[None]:
    """Counts now and then, in a thread of its own, while the block runs."""
    if progress is None:
        yield
        return
    over = Event()

    def watch() -> None:
        while not over.wait(_EVERY):
            progress(min(count(), total), total)

    thread = Thread(target=watch, name="ordercast-progress", daemon=True)
    progress(0, total)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    progress(total, total)


@contextmanager
def watched_tasks(spark: "SparkSession", total: int, progress: Progress | None) -> Iterator[None]:
    """Counts the finished tasks of the one job in the block, which has a last stage of so many tasks."""
    if progress is None:
        yield
        return
    if is_connect(spark):
        with _told_by_server(spark, total, progress):
            yield
        return
    context, group = spark.sparkContext, f"ordercast-{uuid4().hex}"
    context.setJobGroup(group, "ordercast")
    try:
        with watched(lambda: _finished_tasks(context, group, total), total, progress):
            yield
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def is_connect(spark: "SparkSession") -> bool:
    """Whether the session is a thin client, which has no JVM to ask."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _finished_tasks(context: Any, group: str, total: int) -> int:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    # Runs are given out by a stage before, which has fewer tasks and takes no time.
    return max((stage.numCompletedTasks for stage in stages if stage and stage.numTasks == total), default=0)


@contextmanager
def _told_by_server(spark: Any, total: int, progress: Progress) -> Iterator[None]:
    def tell(stages: Any, **_: object) -> None:
        done = [stage.num_completed_tasks for stage in stages or () if stage.num_tasks == total]
        progress(max(done, default=0), total)

    spark.registerProgressHandler(tell)
    progress(0, total)
    try:
        yield
    finally:
        spark.removeProgressHandler(tell)
    progress(total, total)
