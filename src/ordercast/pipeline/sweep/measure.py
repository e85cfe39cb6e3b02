"""Runs configurations on Spark for their counters alone."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ordercast.model.runs import RunConfig
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.progress import Progress, watched_tasks
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.pipeline.sweep.worker import CHUNK, CHUNKS, CONFIGS, MEASURED, PLACE, PLACES, measure_runs
from ordercast.trace.reader import RunRow

_PARTITION = "partition"


def chunks_table(spark: SparkSession, configs: Sequence[RunConfig], chunks: Mapping[int, Sequence[int]]) -> DataFrame:
    """A row, and a partition, for each chunk, in the order of their numbers; `chunks` has the places of their runs."""
    rows = [
        {CHUNK: number, PLACES: places, CONFIGS: [configs[place].to_json() for place in places]}
        for number, places in chunks.items()
    ]
    table = pa.Table.from_pylist(rows, schema=CHUNKS).append_column(_PARTITION, pa.array(range(len(rows)), pa.int32()))
    return spark.createDataFrame(table).repartitionById(len(rows), _PARTITION).drop(_PARTITION)


def measure(spark: SparkSession, configs: Sequence[RunConfig], *, progress: Progress | None = None) -> list[RunRow]:
    """Runs configurations and returns their rows of `runs`, in the order given; no events are kept.

    A run that raised has a row whose `error` says so and whose counters are None. `PipelineError`: Spark failed.
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
