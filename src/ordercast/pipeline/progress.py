"""Reports the progress of a Spark job while it runs, for all kinds of sessions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ordercast.model.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY = 0.5  # seconds


@contextmanager
def watched(count: Callable[[], int], total: int, progress: Progress | None) -> Iterator[None]:
    """Calls `count` and reports the result now and then, in a thread, while the block runs."""
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
    """Reports the finished tasks of the one job in the block, whose last stage has `total` tasks."""
    if progress is None:
        yield
        return
    if is_connect(spark):
        with _reported_by_server(spark, total, progress):
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
    """True for a session of Spark Connect, which has no JVM in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _finished_tasks(context: Any, group: str, total: int) -> int:
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    # An earlier stage, with fewer tasks, only distributes the input.
    return max((stage.numCompletedTasks for stage in stages if stage and stage.numTasks == total), default=0)


@contextmanager
def _reported_by_server(spark: Any, total: int, progress: Progress) -> Iterator[None]:
    def report(stages: Any, **_: object) -> None:
        done = [stage.num_completed_tasks for stage in stages or () if stage.num_tasks == total]
        progress(max(done, default=0), total)

    spark.registerProgressHandler(report)
    progress(0, total)
    try:
        yield
    finally:
        spark.removeProgressHandler(report)
    progress(total, total)
