"""The sink `ordercast`: batches of a stream arrive in a group once, whoever answers and however often they are sent."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from ordercast.model.errors import ConfigError, PipelineError
from ordercast.pipeline import register
from ordercast.pipeline.log_stream.sink import BatchWriter, SinkOptions, sink_options
from tests.pipeline.log_stream.gateways import Order, gateway
from tests.pipeline.log_stream.member_logs import packet, write_logs

PAYLOAD = StructType().add("payload", StringType())


def options(*gateways: str, **more: str) -> SinkOptions:
    return sink_options({"gateway": ",".join(gateways), "queryId": "query", **more})


def written(writer: BatchWriter, *rows: str) -> Any:
    return writer.write(iter([pa.record_batch({"payload": list(rows)})]))


def test_a_batch_is_posted_by_whoever_commits_it() -> None:
    order = Order()
    with gateway(order) as address:
        writer = BatchWriter(options(address), PAYLOAD)
        writer.commit([written(writer, "a", "b"), None, written(writer, "c")], 0)
        writer.commit([written(writer)], 1)  # nothing is sent of a batch without rows
        writer.commit([written(writer, "d")], 2)
        writer.commit([written(writer, "d")], 2)
    assert [(each.source, each.number, each.rows) for each in order.taken] == [
        ("query", 0, (b"a", b"b", b"c")),
        ("query", 2, (b"d",)),
    ]
    assert order.asked == 3


def test_an_answer_that_is_lost_is_asked_for_at_the_next_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.pipeline.log_stream.sink._PAUSE", 0.0)
    order = Order(503, 200, 503)
    with gateway(order) as one, gateway(order) as other:
        writer = BatchWriter(options("http://127.0.0.1:1", one, other), PAYLOAD)
        writer.commit([written(writer, "a")], 7)
    assert [each.number for each in order.taken] == [7]
    assert order.asked == 4


def test_a_batch_below_the_last_stops_the_query() -> None:
    """A new checkpoint under the name of an old one, an old copy of it, or two queries with one id."""
    order = Order()
    with gateway(order) as address:
        writer = BatchWriter(options(address), PAYLOAD)
        writer.commit([written(writer, "a")], 8)
        with pytest.raises(PipelineError, match=r"has had batch 8 of the query 'query' .* and dropped batch 0: "):
            writer.commit([written(writer, "b")], 0)
    assert [each.number for each in order.taken] == [8]


def test_a_batch_that_is_refused_or_taken_by_nobody_stops_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordercast.pipeline.log_stream.sink._PAUSE", 0.0)
    with gateway(Order(422)) as address:
        writer = BatchWriter(options(address), PAYLOAD)
        with pytest.raises(PipelineError, match=f"batch 3 was refused by {address}: it may have been sent"):
            writer.commit([written(writer, "a")], 3)
    nobody = BatchWriter(options("http://127.0.0.1:1", gatewayTimeout="0.001"), PAYLOAD)
    with pytest.raises(PipelineError, match=r"no gateway has taken batch 3 .* Connection refused; start one again"):
        nobody.commit([written(nobody, "a")], 3)
    unnamed = BatchWriter(sink_options({"gateway": "http://127.0.0.1:1"}), PAYLOAD)
    with pytest.raises(PipelineError, match="name it by the option queryId"):
        unnamed.commit([written(unnamed, "a")], 3)
    with pytest.raises(PipelineError, match="a row has no payload"):
        list(written(unnamed, "a", None))  # type: ignore[arg-type] # a null


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "no gateway was given"),
        ({"gateway": "host:7700"}, "gateway 'host:7700' is no address"),
        ({"gateway": "http://a", "gatewayTimeout": "soon"}, "gatewayTimeout must be a number of seconds"),
        ({"gateway": "http://a", "gate": "x"}, "no option 'gate'; it has: gateway, queryId"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        sink_options({"checkpointLocation": "here", "path": "there", **given})


@pytest.mark.parametrize(
    "schema",
    [
        StructType(),
        StructType().add("text", StringType()),
        StructType().add("payload", LongType()),
        StructType().add("payload", BinaryType()).add("position", LongType()),
    ],
)
def test_rows_that_are_no_messages_are_refused(schema: StructType) -> None:
    with pytest.raises(ConfigError, match=r"takes one column, payload or value, .*to_json\(struct\(\*\)\) AS payload"):
        BatchWriter(options("http://a"), schema)


def positions(spark: SparkSession, logs: Path) -> DataFrame:
    register(spark)
    stream = spark.readStream.format("ordercast-log").options(startingOffsets="earliest", maxOffsetsPerTrigger=30)
    return stream.load(str(logs)).selectExpr("to_json(struct(position)) AS payload")


def test_a_stream_arrives_in_its_order_though_its_answers_are_lost(spark: SparkSession, tmp_path: Path) -> None:
    """The first query fails after its batch was sent; the second one sends it again, with the same id."""
    write_logs(tmp_path / "logs", [packet(number) for number in range(20)])
    order = Order(422)

    def run_once(address: str, checkpoint: str = "checkpoint") -> None:
        query = (
            positions(spark, tmp_path / "logs")
            .writeStream.format("ordercast")
            .option("gateway", address)
            .option("queryId", "positions")
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with gateway(order) as address:
        with pytest.raises(PySparkException, match="batch 0 was refused"):
            run_once(address)
        run_once(address)
        assert [each.number for each in order.taken] == [0, 1]
        assert len({each.source for each in order.taken}) == 1
        assert [json.loads(row)["position"] for each in order.taken for row in each.rows] == list(range(60))
        assert order.asked == 3
        run_once(address, "another")  # with the same name, and Spark has another id for it
    assert [each.number for each in order.taken] == [0, 1, 0, 1]
    assert all(each.source.startswith("positions ") for each in order.taken)
