"""The tables of `examples/exactly_once_tables.py`: each batch once, though Spark repeats it."""

import importlib.util
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ordercast.pipeline import register
from tests.pipeline.log_stream.examples import example
from tests.pipeline.log_stream.member_logs import in_log, packet, write_logs

NEEDS = {
    "sqlite": (),
    "delta": ("deltalake",),
    "iceberg": ("pyiceberg", "sqlalchemy"),
}


def require_packages(kind: str) -> None:
    for package in NEEDS[kind]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed; no extra has it: a table in {kind} is an example")


def run_once(spark: SparkSession, logs: Path, checkpoint: Path, write: object) -> None:
    register(spark)
    stream = spark.readStream.format("ordercast-log").options(startingOffsets="earliest", maxOffsetsPerTrigger=60)
    query = (
        stream.load(str(logs))
        .select("position", "sender", "payload")
        .writeStream.foreachBatch(write)  # type: ignore[arg-type] # a function of a DataFrame and a number
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


@pytest.mark.parametrize("kind", NEEDS)
def test_a_batch_that_is_repeated_is_in_the_table_once(kind: str, spark: SparkSession, tmp_path: Path) -> None:
    """The second batch fails just after it was written, and is repeated as it was."""
    require_packages(kind)
    module, logs, place = example(), tmp_path / "logs", str(tmp_path / "table")
    write_logs(logs, [packet(number) for number in range(40)])
    seen: list[int] = []

    def write(batch: DataFrame, number: int) -> None:
        seen.append(number)
        module.table_of(kind, place, "orders")(batch, number)
        if seen == [0, 1]:
            raise ValueError("killed after")

    with pytest.raises(PySparkException, match="killed after"):
        run_once(spark, logs, tmp_path / "checkpoint", write)
    run_once(spark, logs, tmp_path / "checkpoint", write)
    assert seen == [0, 1, 1]
    expected = [(position, sender, payload) for position, sender, _, payload in in_log(logs / "A")]
    assert module.rows_of(kind, place) == expected
    module.table_of(kind, place, "another")(
        spark.createDataFrame([(7, "A", bytearray(b"x"))], "position long, sender string, payload binary"), 0
    )
    assert len(module.rows_of(kind, place)) == len(expected) + 1  # another checkpoint has numbers of its own
