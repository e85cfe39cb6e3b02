"""What is said of a job of Spark that failed: the cause, out of the stack traces of several processes."""

from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

from ordercast.model.errors import PipelineError, TraceError
from ordercast.pipeline.audit import spark as on_spark
from ordercast.pipeline.jobs import cause_of, collected
from ordercast.pipeline.sweep import sweep as sweeping
from tests.pipeline.runs import some_runs
from tests.pipeline.traces import random_runs, write

FROM_PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/pyspark/worker.py", line 8, in main
    work()
  File "/opt/pyspark/serializers.py", line 9, in loads
    raise_it()
{raised}
"""
FROM_JAVA = """An error occurred while calling o121.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed: {cause}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:1136)
"""
NO_ORDERCAST = (
    "the Python of its workers has no module ordercast; install ordercast with its extra pipeline on every machine, or "
    "name a Python that has it by PYSPARK_PYTHON"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            FROM_PYTHON.format(raised="ModuleNotFoundError: No module named 'ordercast'"),
            NO_ORDERCAST,
        ),
        (FROM_PYTHON.format(raised="ValueError: seven is too much"), "ValueError: seven is too much"),
        (
            FROM_JAVA.format(cause="org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)."),
            "a Python process of a worker ended: it was killed, or had no memory left",
        ),
        (
            FROM_JAVA.format(cause="java.lang.OutOfMemoryError: Java heap space"),
            "its Java had no memory left; give it more by spark.driver.memory and spark.executor.memory",
        ),
        (
            FROM_JAVA.format(cause='java.io.IOException: Cannot run program "/opt/python": error=2'),
            "its workers have no such Python; name one that all of them have by PYSPARK_PYTHON",
        ),
        (FROM_JAVA.format(cause="the disk is on fire"), "Task 0 in stage 1.0 failed: the disk is on fire"),
        ("no route to host\n\tat java.net", "no route to host"),
    ],
)
def test_the_cause_is_named(text: str, said: str) -> None:
    assert cause_of(Exception(text)) == said
    failing = Mock(**{"toArrow.side_effect": Exception(text)})
    with pytest.raises(PipelineError) as raised:
        collected(failing)
    assert str(raised.value) == f"Spark failed: {said}"


def test_a_sweep_whose_workers_write_elsewhere_ends(tmp_path: Path) -> None:
    with (
        patch.object(sweeping, "run_chunks", lambda *_: None),
        pytest.raises(PipelineError, match="the machines of a cluster must share the folder of a sweep; finished"),
    ):
        sweeping.sweep(Mock(), some_runs(3), tmp_path / "out")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("cannot read a.parquet: No such file or directory", "; the machines of a cluster must see it at this path"),
        ("cannot read a.parquet: it is damaged", ""),
    ],
)
def test_a_trace_that_workers_do_not_see_is_told_as_such(tmp_path: Path, error: str, said: str) -> None:
    with (
        patch.object(on_spark, "sorted_copies", lambda *_: nullcontext()),
        patch.object(on_spark, "_audited", Mock(side_effect=TraceError(error))),
        pytest.raises(TraceError) as raised,
    ):
        on_spark.audit_on_spark(Mock(), [write(tmp_path, random_runs("seen", 1))])
    assert str(raised.value) == error + said
