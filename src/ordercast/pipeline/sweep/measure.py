"""Simulates configurations on Spark for their counters alone."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ordercast.model.progress import Progress
from ordercast.model.runs import RunConfig
from ordercast.pipeline.jobs import collected, one_task_per_row
from ordercast.pipeline.progress import watched_tasks
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.pipeline.sweep.worker import CHUNK, CHUNKS, CONFIGS, MEASURED, PLACE, PLACES, measure_runs
from ordercast.trace.reader import RunRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def chunks_table(
    spark: "SparkSession", configs: Sequence[RunConfig], chunks: Mapping[int, Sequence[int]]
) -> "DataFrame":
    """A row, and a task, for each chunk, in the order of their numbers; `chunks` maps them to indices of `configs`."""
    rows = [
        {CHUNK: number, PLACES: places, CONFIGS: [configs[place].to_json() for place in places]}
        for number, places in chunks.items()
    ]
    return one_task_per_row(spark, pa.Table.from_pylist(rows, schema=CHUNKS))


def measure(spark: "SparkSession", configs: Sequence[RunConfig], *, progress: Progress | None = None) -> list[RunRow]:
    """Simulates configurations and returns their rows of `runs`, in the order given; no events are recorded.

    A run that raised has a row whose `error` says why and whose counters are None. Raises `PipelineError` if Spark
    fails. `progress` is called with the number of finished tasks and of all tasks.
    """
    if not configs:
        return []
    chunks = dict(enumerate(in_chunks(configs)))
    work = chunks_table(spark, configs, chunks)
    measured = work.mapInArrow(measure_runs, spark_schema(MEASURED))
    with watched_tasks(spark, len(chunks), progress):
        rows = collected(measured).sort_by(PLACE)
    result: list[RunRow] = rows.drop_columns([PLACE]).to_pylist()
    return result
