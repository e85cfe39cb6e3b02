"""Makes simulations readable as DataFrames."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Registers the format `ordercast` with a session: then `spark.read.format("ordercast")` simulates its options."""
    from ordercast.pipeline.sweep.source import OrdercastSource  # noqa: PLC0415 - its base class is Spark's

    spark.dataSource.register(OrdercastSource)
