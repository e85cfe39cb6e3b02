"""Makes simulations and logs of live groups readable as DataFrames."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Registers the formats `ordercast` and `ordercast-log` with a session.

    `spark.read.format("ordercast")` simulates its options, and `df.writeStream.format("ordercast")` sends what a stream
    makes to a live group; `ordercast-log` reads the durable logs of a group's members, as a table or as a stream.
    """
    from ordercast.pipeline.log_stream.source import LogSource  # noqa: PLC0415 - its base class is Spark's
    from ordercast.pipeline.sweep.source import OrdercastSource  # noqa: PLC0415 - its base class is Spark's

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")  # else Spark refuses sources that take filters
    spark.dataSource.register(OrdercastSource)
    spark.dataSource.register(LogSource)
