"""Runs a Spark job to its end, and tells its failures apart: an interrupt, a trace that cannot be written, Spark."""

import re

import pyarrow as pa
from pyspark.sql import DataFrame

from ordercast.model.errors import PipelineError, TraceError


def collected(rows: DataFrame) -> pa.Table:
    """All rows, as Arrow has them.

    Raises `TraceError` if a task could not write its trace, and `PipelineError` for whatever else Spark, its Java or
    the way to them fail by.
    """
    try:
        return rows.toArrow()
    except Exception as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        told = re.search(r"TraceError: (.+)", str(error))
        if told:
            raise TraceError(told[1]) from error
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise PipelineError(f"Spark failed: {first}") from error


def _interrupted(error: BaseException | None) -> bool:
    """Whether it came of an interrupt: Spark cancels its jobs, and then their failure hides what caused it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
