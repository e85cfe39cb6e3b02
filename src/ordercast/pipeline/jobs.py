"""Runs Spark jobs, and tells their failures apart: an interrupt, an unusable trace, Spark itself."""

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from ordercast.model.errors import PipelineError, TraceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION = "partition"


def one_task_per_row(spark: "SparkSession", rows: pa.Table) -> "DataFrame":
    """A table with a partition, and so a task, for each row."""
    numbered = rows.append_column(_PARTITION, pa.array(range(rows.num_rows), pa.int32()))
    return spark.createDataFrame(numbered).repartitionById(max(1, rows.num_rows), _PARTITION).drop(_PARTITION)


def collected(rows: "DataFrame") -> pa.Table:
    """Runs the job of a DataFrame and returns all rows.

    Raises `TraceError` if a task cannot read or write a trace, and `PipelineError` for any other failure of Spark, its
    Java or the connection to them.
    """
    try:
        return rows.toArrow()
    except Exception as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        raise trace_error_in(error) or PipelineError(f"Spark failed: {first_line(error)}") from error


def trace_error_in(error: Exception) -> TraceError | None:
    """The `TraceError` that a task raised, if that is why a job failed."""
    found = re.search(r"TraceError: (.+)", str(error))
    return TraceError(found[1]) if found else None


def first_line(error: Exception) -> str:
    """What an error of Spark says: further lines are those of Java."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _interrupted(error: BaseException | None) -> bool:
    """True if an interrupt caused it: Spark then cancels its jobs, and their failure hides the cause."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
