"""Runs Spark jobs, and tells their failures apart: an interrupt, an unusable trace, Spark itself."""

import os
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


def tasks_at_once(spark: "SparkSession") -> int:
    """How many tasks one machine runs at the same time, as far as the session's configuration tells."""
    master = spark.conf.get("spark.master", "") or ""
    here = re.fullmatch(r"local(?:\[(\d+|\*).*\])?", master)
    asked = (here[1] or "1") if here else spark.conf.get("spark.executor.cores", "") or ""
    return int(asked) if asked.isdigit() else os.cpu_count() or 1


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
        raise trace_error_in(error) or PipelineError(f"Spark failed: {cause_of(error)}") from error


def trace_error_in(error: Exception) -> TraceError | None:
    """The `TraceError` that a task raised, if that is why a job failed."""
    found = re.search(r"TraceError: (.+)", str(error))
    return TraceError(found[1]) if found else None


def cause_of(error: Exception) -> str:
    """Why a job failed, from an error that may hold the stack traces of a worker, of its Java and of ours."""
    text = str(error)
    missing = re.search(r"ModuleNotFoundError: No module named '([^']+)'", text)
    if missing:
        return (
            f"the Python of its workers has no module {missing[1]}; install ordercast with its extra pipeline on every "
            "machine, or name a Python that has it by PYSPARK_PYTHON"
        )
    for words, cause in _CAUSES.items():
        if words in text:
            return cause
    raised = re.findall(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)*(\S.*)", text, re.MULTILINE)
    if raised:
        return str(raised[-1])
    aborted = re.search(r"Job aborted due to stage failure: (.+)", text)
    return aborted[1] if aborted else first_line(error)


_CAUSES = {
    "Python worker exited unexpectedly": "a Python process of a worker ended: it was killed, or had no memory left",
    "java.lang.OutOfMemoryError": "its Java had no memory left; give it more by spark.driver.memory and "
    "spark.executor.memory",
    "Cannot run program": "its workers have no such Python; name one that all of them have by PYSPARK_PYTHON",
    "PYTHON_VERSION_MISMATCH": "its workers have another version of Python than this process; set PYSPARK_PYTHON",
}


def first_line(error: Exception) -> str:
    """What an error of Spark says: further lines are those of Java."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _interrupted(error: BaseException | None) -> bool:
    """True if an interrupt caused it: Spark then cancels its jobs, and their failure hides the cause."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
