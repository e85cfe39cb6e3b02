"""Audits on Spark: of tables, and of the folders that traces are.

A run that fits into a task is judged there whole, by `judging`; a longer one in parts, by `long_runs`. From folders,
tasks read the files themselves, so that no event is moved between processes; from tables, events are brought together
by run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from ordercast.audit.judge import Verdict, require_silence, runs_by_name, service_of
from ordercast.audit.logs import COLUMNS, KINDS
from ordercast.audit.records import told_of_records
from ordercast.model.errors import PipelineError, TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.audit import LONG, Note, do, judge_long
from ordercast.pipeline.audit.partitioned.long_run import Each
from ordercast.pipeline.audit.plan import Docket, GroupReader, dockets_of, in_tasks
from ordercast.pipeline.audit.run import judge_batches
from ordercast.pipeline.audit.verdict_table import (
    NUMBER,
    PROPERTY,
    VERDICTS,
    VERDICTS_TABLE,
    WITNESSES,
    row_of_error,
    row_of_failure,
    rows_of,
    verdict_of,
)
from ordercast.pipeline.progress import Progress, watched_tasks
from ordercast.trace.schema import ABORTED, COMPLETE, CONFIG, ERROR, EVENT, NODE, NODES, PROTOCOL, RUN

_ROWS_OF_A_TASK = 500_000
_PARTITION = "partition"
_DOCKETS = pa.schema([pa.field("numbers", pa.list_(pa.int64())), pa.field("dockets", pa.list_(pa.string()))])
_WORK = pa.schema([pa.field("place", pa.int32()), pa.field("task", pa.binary()), pa.field("error", pa.string())])
_WORK_TABLE = StructType(
    [StructField("place", IntegerType()), StructField("task", BinaryType()), StructField("error", StringType())]
)
_RUN_COLUMNS = (RUN, PROTOCOL, NODES, NODE, COMPLETE, ABORTED, CONFIG, ERROR, "sent", "delivered")


class Judged(NamedTuple):
    """What `audit` gives."""

    verdicts: DataFrame
    """run, property, recorded, holds, violations, at_least, deliveries, error: a row for each run and property."""
    witnesses: DataFrame
    """run, property, sentence, messages, nodes, places: the first few violations of each."""


def audit(spark: SparkSession, events: DataFrame, runs: DataFrame, service: Service | None = None) -> Judged:
    """Holds all runs of two tables, `events` and `runs` of a trace, against their services, or against the one given.

    A run that cannot be judged, because it contradicts itself or is not whole, has one row without a property, whose
    `error` says why; so has a run of a sweep that came to nothing, and that one neither holds nor fails to. A run's
    events come together in one task: for runs of many millions of events, which may not fit there, use `audit_folders`.
    """
    del spark  # the tables know theirs
    wanted = events.select(RUN, *COLUMNS).where(sql.col(EVENT).isin(*sorted(KINDS)))
    known = [sql.col(name) if name in runs.columns else sql.lit(None).alias(name) for name in _RUN_COLUMNS]
    together = wanted.groupBy(RUN).cogroup(runs.select(*known).groupBy(RUN))
    found = together.applyInArrow(_judging_tables(service), VERDICTS_TABLE)
    witnesses = found.select(RUN, PROPERTY, sql.explode(WITNESSES).alias("witness"))
    return Judged(found.drop(NUMBER, WITNESSES), witnesses.select(RUN, PROPERTY, "witness.*"))


def _judging_tables(service: Service | None) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def judge(events: pa.Table, runs: pa.Table) -> pa.Table:
        name = (events if events.num_rows else runs).column(RUN)[0].as_py()
        failures = runs.column(ERROR).drop_null().to_pylist()
        try:
            if failures and not events.num_rows:
                found = [row_of_failure(0, name, failures[0])]
            else:
                found = list(rows_of(0, name, _judge_tables(name, events, runs, service)))
        except TraceError as error:
            found = [row_of_error(0, name, error)]
        return pa.Table.from_pylist(found, schema=VERDICTS)

    return judge


def _judge_tables(name: str, events: pa.Table, runs: pa.Table, service: Service | None) -> Verdict:
    """What is found of one run."""
    rows = runs_by_name(runs.to_pylist())
    if name not in rows:
        raise TraceError(f"there are events of run {name} but no row in runs: bring the whole trace")
    if not events.num_rows:
        require_silence(rows[name])
    return judge_batches(rows[name], events.combine_chunks().to_batches(), service)


def audit_folders(
    spark: SparkSession,
    folders: Sequence[Path],
    service: Service | None = None,
    *,
    note: Note | None = None,
    progress: Progress | None = None,
) -> Verdict:
    """What `ordercast.audit.audit` finds of some folders, found on Spark. Its workers must see the same folders.

    `note` is told which long runs could not be judged in parts. Raises `TraceError` for what is no trace, or not a
    whole one.
    """
    dockets = dict(enumerate(dockets_of([folder.absolute() for folder in folders])))
    not_whole = told_of_records(docket.row for docket in dockets.values())
    rows: list[dict[str, Any]] = []
    try:
        for number, docket in list(dockets.items()):
            if docket.rows > LONG:
                asked = service or service_of(docket.row)
                verdict = judge_long(docket, asked, _on(spark, progress), note or (lambda _: None))
                if verdict is not None:
                    rows += rows_of(number, docket.row[RUN], verdict)
                    del dockets[number]
        tasks = in_tasks(dockets, _ROWS_OF_A_TASK)
        if tasks:
            table = _one_each(spark, [{"numbers": task.numbers, "dockets": task.dockets} for task in tasks], _DOCKETS)
            with watched_tasks(spark, len(tasks), progress):
                rows += table.mapInArrow(_judging_dockets(service), VERDICTS_TABLE).toArrow().to_pylist()
    except PySparkException as error:
        raise PipelineError(f"Spark failed at judging: {str(error).strip().splitlines()[0]}") from error
    return replace(verdict_of(rows), not_whole=not_whole)


def _one_each(spark: SparkSession, rows: list[dict[str, Any]], schema: pa.Schema) -> DataFrame:
    """A table with a partition for each row."""
    table = pa.Table.from_pylist(rows, schema=schema)
    table = table.append_column(_PARTITION, pa.array(range(len(rows)), pa.int32()))
    return spark.createDataFrame(table).repartitionById(max(1, len(rows)), _PARTITION).drop(_PARTITION)


def _on(spark: SparkSession, progress: Progress | None) -> Each:
    """Does the tasks of a long run on Spark."""

    def each(kind: str, tasks: Sequence[bytes]) -> list[bytes]:
        table = _one_each(spark, [{"place": place, "task": task} for place, task in enumerate(tasks)], _WORK)
        with watched_tasks(spark, len(tasks), progress):
            done = table.mapInArrow(_doing(kind), _WORK_TABLE).toArrow().sort_by("place")
        for failed in done.column("error").drop_null().to_pylist():
            raise TraceError(failed)
        answers: list[bytes] = done.column("task").to_pylist()
        return answers

    return each


def _doing(kind: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                try:
                    answer = {"place": row["place"], "task": do(kind, row["task"])}
                except TraceError as error:
                    answer = {"place": row["place"], "error": str(error)}
                yield pa.RecordBatch.from_pylist([answer], schema=_WORK)

    return work


def _judging_dockets(service: Service | None) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.to_pylist():
                reader = GroupReader()
                for number, text in zip(task["numbers"], task["dockets"], strict=True):
                    rows = judge_docket(number, msgspec.json.decode(text, type=Docket), reader, service)
                    yield pa.RecordBatch.from_pylist(rows, schema=VERDICTS)

    return judge


def judge_docket(number: int, docket: Docket, reader: GroupReader, service: Service | None) -> list[dict[str, object]]:
    """The rows of the verdict on one run."""
    run = docket.row[RUN]
    try:
        return list(rows_of(number, run, judge_batches(docket.row, reader.whole(docket), service)))
    except TraceError as error:
        return [row_of_error(number, run, error)]
