"""Runs configurations on Spark for their counters alone."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from ordercast.model.runs import RunConfig
from ordercast.pipeline.chunks import in_chunks
from ordercast.pipeline.progress import Progress, watched_tasks
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.worker import CHUNK, CHUNKS, CONFIGS, MEASURED, PLACE, PLACES, measure_runs
from ordercast.trace.reader import RunRow


def measure(spark: SparkSession, configs: Sequence[RunConfig], *, progress: Progress | None = None) -> list[RunRow]:
    """Runs configurations and returns their rows of `runs`, in the order given; no events are kept.

    A run that raised has a row whose `error` says so and whose counters are None.
    """
    if not configs:
        return []
    chunks = in_chunks(configs)
    table = pa.Table.from_pylist(
        [
            {CHUNK: number, PLACES: places, CONFIGS: [configs[place].to_json() for place in places]}
            for number, places in enumerate(chunks)
        ],
        schema=CHUNKS,
    )
    work = spark.createDataFrame(table).repartitionById(len(chunks), CHUNK)
    measured = work.mapInArrow(measure_runs, spark_schema(MEASURED))
    with watched_tasks(spark, len(chunks), progress):
        rows = measured.toArrow().sort_by(PLACE)
    result: list[RunRow] = rows.drop_columns([PLACE]).to_pylist()
    return result
