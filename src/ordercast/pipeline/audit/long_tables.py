"""Runs of tables that are too long for one task: laid out as a trace, and audited in partitions.

A table has no row groups whose contents could be told. So Spark sorts a long run into files first, which are removed
when it is judged.
"""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING
from uuid import uuid4

from ordercast.audit.profiles import Asked
from ordercast.pipeline.audit.partitioned import audit as partitioned
from ordercast.pipeline.audit.spark import found_on_spark
from ordercast.pipeline.audit.verdict_table import VERDICTS
from ordercast.pipeline.ingest.write_trace import write_trace
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.schema import COMPLETE, DESTINATIONS, ERROR, EVENT_COLUMNS, PROTOCOL, RUN
from ordercast.trace.storage import Location, remove_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def long_runs(events: "DataFrame", runs: "DataFrame") -> list[str]:
    """The names of runs with more events than a task should have, by one pass over the events.

    Not of those that are no runs: with nulls, without a row or with several. What is wrong is told as of any other.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - whoever passes tables has loaded it

    nulls = [sql.col(column.name).isNull() for column in EVENT_COLUMNS if not column.nullable]
    nulls.append(sql.exists(DESTINATIONS, lambda node: node.isNull()))
    counts = events.groupBy(RUN).agg(
        sql.count("*").alias("events"),
        sql.count_if(sql.coalesce(reduce(or_, nulls), sql.lit(col=False))).alias("nulls"),
    )
    long = counts.where((sql.col("events") > partitioned.PARTITIONED_ABOVE) & (sql.col("nulls") == 0)).select(RUN)
    rows = runs.groupBy(RUN).agg(
        sql.count("*").alias("rows"), sql.count(ERROR).alias("errors"), sql.count(PROTOCOL).alias("protocols")
    )
    usual = rows.where("rows = 1 and errors = 0 and protocols = 1").select(RUN)
    found: list[str] = collected(long.join(usual, RUN)).column(RUN).to_pylist()
    return sorted(found)


def judged_in_partitions(
    events: "DataFrame", runs: "DataFrame", service: Asked | None, scratch: Location
) -> "DataFrame":
    """The rows of the verdicts on some long runs, whose events are written below a folder for so long."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    spark = events.sparkSession
    place = scratch / f"_tables-{uuid4().hex}"
    try:
        write_trace(events, runs.withColumn(COMPLETE, sql.coalesce(COMPLETE, sql.lit(col=False))), place)
        found = collected(found_on_spark(spark, [place], service))
        return spark.createDataFrame(found.cast(VERDICTS), spark_schema(VERDICTS))
    finally:
        remove_folder(place)
