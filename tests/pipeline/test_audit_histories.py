"""Histories of replicated objects on Spark: the same verdicts as in one process."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.audit.linearizability import audit_history
from ordercast.model.errors import TraceError
from ordercast.model.history import Operation
from ordercast.pipeline.audit.histories import audit_histories
from ordercast.trace.history import write_history
from tests.audit.test_linearizability import drawn


def histories(count: int) -> list[Operation]:
    """Of many keys, right and wrong ones."""
    rng = random.Random(3)
    found = []
    for number in range(count):
        for each in drawn(rng):
            fields = (each.process, each.model, "store", f"key{number}", each.kind, each.arguments, each.result)
            found.append(Operation(*fields, each.called, each.returned, f"run{number % 3}"))
    return found


def test_keys_are_judged_on_spark_as_in_one_process(spark: SparkSession, tmp_path: Path) -> None:
    operations = histories(12)
    write_history(tmp_path / "one.parquet", operations[::2])
    write_history(tmp_path / "two.parquet", operations[1::2])
    found = audit_histories(spark, [tmp_path])
    expected = audit_history(operations)
    assert [(each[:6], each.ordered) for each in found] == [(each[:6], each.ordered) for each in expected]
    assert {each.linearizable for each in found} == {True, False}
    for one, other in zip(found, expected, strict=True):
        assert set(one.witness) == set(other.witness)


def test_what_is_no_history_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no such file or folder"):
        audit_histories(spark, [tmp_path / "nothing"])
    spark.createDataFrame([(1,)], ["x"]).write.parquet(str(tmp_path / "other"))
    with pytest.raises(TraceError, match="is no history: it has no column 'run'"):
        audit_histories(spark, [tmp_path / "other"])
