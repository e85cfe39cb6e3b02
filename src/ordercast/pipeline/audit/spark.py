"""Audits the folders of a trace on Spark.

A run that fits into a task is audited there (`run`), a longer one in partitions (`partitioned`). Tasks read the files
themselves, so that no event is moved between processes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ordercast.audit.names import names_of_run
from ordercast.audit.profiles import Asked, asked_by
from ordercast.audit.records import incomplete_records
from ordercast.audit.run_rows import service_of
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import TraceError
from ordercast.model.progress import Progress
from ordercast.pipeline.audit.memory import CHECKED_FROM
from ordercast.pipeline.audit.partitioned.audit import Note, Sort, audit_partitioned, is_long
from ordercast.pipeline.audit.partitioned.tasks import RunTasks, TaskKind, run_task
from ordercast.pipeline.audit.plan import AuditTask, TaskBatch, TraceFiles, audit_tasks, in_batches, open_trace
from ordercast.pipeline.audit.short_runs import OF_A_TASK, verdict_rows
from ordercast.pipeline.audit.sorted_copy import sorted_copies
from ordercast.pipeline.audit.tables import VerdictTables, tables_of
from ordercast.pipeline.audit.verdict_table import VERDICTS, rows_of, verdict_of
from ordercast.pipeline.jobs import collected, one_task_per_row, tasks_at_once
from ordercast.pipeline.progress import watched_tasks
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.schema import RUN
from ordercast.trace.storage import Location, location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LONG_RUNS_AT_ONCE = 4  # while the driver plans one of them, tasks of others run
_NOT_FOUND = "No such file or directory"
_BATCHES = pa.schema([pa.field("numbers", pa.list_(pa.int64())), pa.field("tasks", pa.list_(pa.string()))])
_WORK = pa.schema([pa.field("place", pa.int32()), pa.field("task", pa.binary()), pa.field("error", pa.string())])


def audit_on_spark(
    spark: "SparkSession",
    folders: Sequence[Location] | TraceFiles,
    service: Asked | None = None,
    *,
    note: Note | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """The verdict of `ordercast.audit.audit`, found on Spark; its workers must see the folders under the same paths.

    Raises `TraceError` if a folder holds no complete trace, and `PipelineError` if Spark fails.
    """
    try:
        trace = open_trace(folders).absolute()
        with sorted_copies(spark, trace.folders[0]) as sort:
            return _audited(spark, audit_tasks(trace), service, note, progress, sort)
    except TraceError as error:
        if _NOT_FOUND in str(error):  # it was found here, where the tasks were planned
            raise TraceError(f"{error}; the machines of a cluster must see it at this path") from error
        raise


def _audited(
    spark: "SparkSession",
    planned: Sequence[AuditTask],
    service: Asked | None,
    note: Note | None,
    progress: Progress | None,
    sort: Sort,
) -> Verdict:
    tasks = dict(enumerate(planned))
    incomplete = incomplete_records(task.row for task in tasks.values())
    rows: list[dict[str, Any]] = []
    for number, verdict in _of_long_runs(spark, tasks, service, note or (lambda _: None), progress, sort):
        rows += rows_of(number, tasks.pop(number).row[RUN], verdict)
    sharing = _sharing(spark, tasks)
    batches = in_batches(tasks, OF_A_TASK)
    if batches:
        with watched_tasks(spark, len(batches), progress):
            rows += collected(_judged(spark, batches, service, sharing)).to_pylist()
    found = verdict_of(rows, {number: task.row for number, task in enumerate(planned)})
    return replace(found, incomplete_records=incomplete)


def verdicts_on_spark(
    spark: "SparkSession",
    folders: "Sequence[Location | str]",
    service: Asked | str | None = None,
    *,
    note: Note | None = None,
) -> VerdictTables:
    """The verdicts on all runs of some folders as DataFrames: nothing comes to the driver but what is asked.

    Runs that fit into a task are judged when the tables are read, and each time that they are; long ones are judged at
    once. A run that cannot be audited has a row whose `error` says why. Sentences have the names of nodes.
    """
    asked = asked_by(service) if isinstance(service, str) else service
    return tables_of(found_on_spark(spark, folders, asked, note=note))


def found_on_spark(
    spark: "SparkSession",
    folders: "Sequence[Location | str]",
    asked: Asked | None,
    *,
    note: Note | None = None,
) -> "DataFrame":
    """The rows of the verdicts, of which those tables are made."""
    trace = open_trace([location(folder) for folder in folders]).absolute()
    tasks = dict(enumerate(audit_tasks(trace)))
    rows: list[dict[str, Any]] = []
    with sorted_copies(spark, trace.folders[0]) as sort:
        for number, verdict in _of_long_runs(spark, tasks, asked, note or (lambda _: None), None, sort):
            row = tasks.pop(number).row
            rows += rows_of(number, row[RUN], verdict, names_of_run(row))
    found = spark.createDataFrame(pa.Table.from_pylist(rows, schema=VERDICTS), spark_schema(VERDICTS))
    if tasks:
        batches = in_batches(tasks, OF_A_TASK)
        found = found.unionByName(_judged(spark, batches, asked, _sharing(spark, tasks), named=True))
    return found


def _sharing(spark: "SparkSession", tasks: Mapping[int, AuditTask]) -> int:
    """How many tasks that need much memory may run on one machine at the same time."""
    return max(1, min(tasks_at_once(spark), sum(task.rows >= CHECKED_FROM for task in tasks.values())))


def _judged(
    spark: "SparkSession", batches: Sequence[TaskBatch], service: Asked | None, sharing: int, *, named: bool = False
) -> "DataFrame":
    """The rows of the verdicts on runs, each of which fits into a task."""
    rows = [{"numbers": batch.numbers, "tasks": batch.tasks} for batch in batches]
    table = one_task_per_row(spark, pa.Table.from_pylist(rows, schema=_BATCHES))
    return table.mapInArrow(_auditing(service, sharing, named=named), spark_schema(VERDICTS))


def _of_long_runs(
    spark: "SparkSession",
    tasks: Mapping[int, AuditTask],
    service: Asked | None,
    note: Note,
    progress: Progress | None,
    sort: Sort,
) -> list[tuple[int, Verdict]]:
    """The verdicts on long runs that could be audited in partitions; some of them are audited side by side."""
    run_tasks = _runner(spark, progress)

    def audited(number: int) -> Verdict | None:
        task = tasks[number]
        return audit_partitioned(task, service or service_of(task.row), run_tasks, note, sort)

    long = [number for number, task in tasks.items() if is_long(task)]
    pool = ThreadPoolExecutor(_LONG_RUNS_AT_ONCE)
    try:
        found = list(pool.map(audited, long))
    finally:
        pool.shutdown(cancel_futures=True)
    return [(number, verdict) for number, verdict in zip(long, found, strict=True) if verdict is not None]


def _runner(spark: "SparkSession", progress: Progress | None) -> RunTasks:
    """Runs the tasks of a partitioned audit on Spark."""

    def run_tasks(kind: TaskKind, tasks: Sequence[bytes]) -> list[bytes]:
        rows = [{"place": place, "task": task} for place, task in enumerate(tasks)]
        table = one_task_per_row(spark, pa.Table.from_pylist(rows, schema=_WORK))
        with watched_tasks(spark, len(tasks), progress):
            done = collected(table.mapInArrow(_running(kind), spark_schema(_WORK))).sort_by("place")
        for failed in done.column("error").drop_null().to_pylist():
            raise TraceError(failed)
        answers: list[bytes] = done.column("task").to_pylist()
        return answers

    return run_tasks


def _running(kind: TaskKind) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                try:
                    answer = {"place": row["place"], "task": run_task(kind, row["task"])}
                except TraceError as error:
                    answer = {"place": row["place"], "error": str(error)}
                yield pa.RecordBatch.from_pylist([answer], schema=_WORK)

    return work


def _auditing(
    service: Asked | None, sharing: int, *, named: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                for rows in verdict_rows(row["numbers"], row["tasks"], service, sharing, named=named):
                    yield pa.RecordBatch.from_pylist(rows, schema=VERDICTS)

    return work
