"""Audits the folders of a trace on Spark.

A run that fits into a task is audited there (`run`), a longer one in partitions (`partitioned`). Tasks read the files
themselves, so that no event is moved between processes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from ordercast.audit.records import incomplete_records
from ordercast.audit.run_rows import service_of
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import TraceError
from ordercast.model.progress import Progress
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.audit import PARTITIONED_ABOVE, Note, audit_partitioned
from ordercast.pipeline.audit.partitioned.tasks import RunTasks, TaskKind, run_task
from ordercast.pipeline.audit.plan import AuditTask, EventReader, audit_tasks, in_batches, read_with_details
from ordercast.pipeline.audit.run import audit_run
from ordercast.pipeline.audit.verdict_table import VERDICTS, row_of_error, rows_of, verdict_of
from ordercast.pipeline.jobs import collected, one_task_per_row
from ordercast.pipeline.progress import watched_tasks
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.schema import RUN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS_OF_A_TASK = 500_000
_NOT_FOUND = "No such file or directory"
_BATCHES = pa.schema([pa.field("numbers", pa.list_(pa.int64())), pa.field("tasks", pa.list_(pa.string()))])
_WORK = pa.schema([pa.field("place", pa.int32()), pa.field("task", pa.binary()), pa.field("error", pa.string())])


def audit_on_spark(
    spark: "SparkSession",
    folders: Sequence[Path],
    service: Service | None = None,
    *,
    note: Note | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """The verdict of `ordercast.audit.audit`, found on Spark; its workers must see the folders under the same paths.

    Raises `TraceError` if a folder holds no complete trace, and `PipelineError` if Spark fails.
    """
    try:
        return _audited(spark, [folder.absolute() for folder in folders], service, note, progress)
    except TraceError as error:
        if _NOT_FOUND in str(error):  # it was found here, where the tasks were planned
            raise TraceError(f"{error}; the machines of a cluster must see it at this path") from error
        raise


def _audited(
    spark: "SparkSession",
    folders: Sequence[Path],
    service: Service | None,
    note: Note | None,
    progress: Progress | None,
) -> Verdict:
    tasks = dict(enumerate(audit_tasks(folders)))
    incomplete = incomplete_records(task.row for task in tasks.values())
    rows: list[dict[str, Any]] = []
    for number, task in list(tasks.items()):
        if task.rows > PARTITIONED_ABOVE:
            asked = service or service_of(task.row)
            verdict = audit_partitioned(task, asked, _runner(spark, progress), note or (lambda _: None))
            if verdict is not None:
                rows += rows_of(number, task.row[RUN], verdict)
                del tasks[number]
    batches = in_batches(tasks, _ROWS_OF_A_TASK)
    if batches:
        table = pa.Table.from_pylist(
            [{"numbers": batch.numbers, "tasks": batch.tasks} for batch in batches], schema=_BATCHES
        )
        with watched_tasks(spark, len(batches), progress):
            work = one_task_per_row(spark, table).mapInArrow(_auditing(service), spark_schema(VERDICTS))
            rows += collected(work).to_pylist()
    return replace(verdict_of(rows), incomplete_records=incomplete)


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


def _auditing(service: Service | None) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                reader = EventReader()
                for number, text in zip(row["numbers"], row["tasks"], strict=True):
                    rows = _verdict_rows(number, msgspec.json.decode(text, type=AuditTask), reader, service)
                    yield pa.RecordBatch.from_pylist(rows, schema=VERDICTS)

    return work


def _verdict_rows(
    number: int, task: AuditTask, reader: EventReader, service: Service | None
) -> list[dict[str, object]]:
    run = task.row[RUN]
    try:
        events = reader.read(task)
        verdict = audit_run(task.row, events, service, with_details=lambda: read_with_details(task))
        return list(rows_of(number, run, verdict))
    except TraceError as error:
        return [row_of_error(number, run, error)]
