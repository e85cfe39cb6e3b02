"""The format in Spark: tables and streams, restarts and lost members, decoded values, and errors that stop a query."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from ordercast.log.format import Packet
from ordercast.pipeline import register
from tests.pipeline.log_stream.member_logs import MEMBERS, drop_below, in_log, packet, write_log, write_logs

FORMAT = "ordercast-log"


def table(spark: SparkSession, root: Path, **options: Any) -> DataFrame:
    register(spark)
    return spark.read.format(FORMAT).options(**options).load(str(root))


def run_once(spark: SparkSession, root: Path, out: Path, **options: Any) -> list[dict[str, Any]]:
    """All that is there now, into a folder of Parquet files; the progress of each batch."""
    register(spark)
    stream = spark.readStream.format(FORMAT).options(startingOffsets="earliest", **options).load(str(root))
    query = (
        stream.drop("destinations")
        .writeStream.format("parquet")
        .option("path", str(out / "rows"))
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [json.loads(each.json) for each in query.recentProgress]


def rows_in(spark: SparkSession, out: Path) -> list[tuple[Any, ...]]:
    rows = spark.read.parquet(str(out / "rows")).orderBy("position").collect()
    return [(row.position, row.sender, row.view, bytes(row.payload)) for row in rows]


def test_a_table_has_all_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_logs(tmp_path, [packet(number) for number in range(20)])
    rows = table(spark, tmp_path, startingOffsets=7, endingOffsets=50, minPartitions=3).collect()
    assert [(row.position, row.sender, row.view, bytes(row.payload)) for row in rows] == in_log(tmp_path / "A")[7:50]
    assert rows[0] == Row(
        position=7, sender="C", destinations=list(MEMBERS), priority=2, view=1, payload=bytearray(b"2.1..")
    )
    chosen = spark.read.format(FORMAT).schema("payload binary, position long").load(str(tmp_path)).take(1)
    assert chosen == [Row(payload=bytearray(b"0.0"), position=0)]


def test_a_stream_goes_on_where_it_was_after_members_were_lost(spark: SparkSession, tmp_path: Path) -> None:
    """Each position once, in batches that are cut between packets."""
    root, out = tmp_path / "logs", tmp_path / "out"
    write_logs(root, [packet(number) for number in range(20)])
    members = ",".join(str(root / name) for name in MEMBERS)
    register(spark)
    progress = run_once(spark, Path(members), out, maxOffsetsPerTrigger=40)
    assert [each["numInputRows"] for each in progress if each["numInputRows"]] == [39, 21]
    first, last = progress[0]["sources"][0], progress[-1]["sources"][0]
    assert first["latestOffset"]["next"] - first["endOffset"]["next"] == 21  # its lag
    assert last["endOffset"]["next"] == last["latestOffset"]["next"] == 60
    (root / "A").rename(root / "gone")
    write_logs(root, [packet(number) for number in range(20, 40)], "B", "C")
    run_once(spark, Path(members), out)
    assert rows_in(spark, out) == in_log(root / "B")


def test_messages_are_decoded_and_what_does_not_decode_stops_the_query(spark: SparkSession, tmp_path: Path) -> None:
    texts = [
        json.dumps({"id": number, "tags": ["a"] * number, "at": {"x": number / 2}}).encode() for number in range(4)
    ]
    texts.append(b'{"id": "four"}')
    write_log(tmp_path / "A", [Packet(0, 0, [len(each) for each in texts], b"".join(texts))])
    options = {"value": "json", "valueSchema": "id long, tags array<string>, at struct<x: double>, missing string"}
    found = table(spark, tmp_path / "A", endingOffsets=4, **options).select("position", "value.*").collect()
    assert found[3] == Row(position=3, id=3, tags=["a", "a", "a"], at=Row(x=1.5), missing=None)
    with pytest.raises(PySparkException, match=r"the message at position 4 is no json of the type struct<id: int64"):
        table(spark, tmp_path / "A", **options).collect()


def two_packets(root: Path) -> None:
    write_logs(root, [packet(number) for number in range(2)])


def of_another_group(root: Path) -> None:
    two_packets(root)
    write_log(root / "D", [packet(0)], group="bills")


def in_another_order(root: Path) -> None:
    two_packets(root)
    write_logs(root, [packet(2), packet(3)], "A", "C")
    write_log(root / "B", [packet(3), packet(2)])


def without_their_beginning(root: Path) -> None:
    write_logs(root, [packet(number) for number in range(20)], max_segment=300)
    for name in MEMBERS:
        drop_below(root / name, 30)


@pytest.mark.parametrize(
    ("prepare", "options", "told"),
    [
        (two_packets, {"startingOffsets": 99}, "position 99 is beyond the end of the order, which is 6"),
        (two_packets, {"startingOffsets": 5, "endingOffsets": 2}, "startingOffsets is position 5, above endingOffsets"),
        (two_packets, {"value": "json", "valueSchema": "id lng"}, "is to be followed or replaced by a type"),
        (two_packets, {"group": "bills"}, "is a log of the group 'orders', not of 'bills'"),
        (Path.mkdir, {}, "is no log, and none of its folders is one; give the folder that a member writes"),
        (of_another_group, {}, r"D \(.*\) is a log of the group 'bills', not of 'orders': list the logs of one group"),
        (in_another_order, {}, "B has another order than A and C, below position 12; the query stops before it"),
        (without_their_beginning, {"startingOffsets": 0}, "are not in any log any more: retention has dropped them"),
    ],
    ids=["start", "end", "schema", "group", "no log", "mixed groups", "mixed orders", "dropped"],
)
def test_a_table_that_cannot_be_read_says_why(
    spark: SparkSession, tmp_path: Path, prepare: Callable[[Path], None], options: dict[str, Any], told: str
) -> None:
    prepare(tmp_path / "logs")
    with pytest.raises(PySparkException, match=told):
        table(spark, tmp_path / "logs", **options).collect()


@pytest.mark.soak
def test_a_stream_stops_at_a_member_that_went_astray_and_goes_on_without_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Nothing is skipped, and nothing of what it says is written."""
    root, out = tmp_path / "logs", tmp_path / "out"
    two_packets(root)
    run_once(spark, root, out)
    write_logs(root, [packet(2), packet(3)], "A", "C")
    write_log(root / "B", [packet(3), packet(2)])
    with pytest.raises(PySparkException, match="B has another order than A and C, below position 12"):
        run_once(spark, root, out)
    assert len(rows_in(spark, out)) == 6
    (root / "B").rename(tmp_path / "astray")
    run_once(spark, root, out)
    assert rows_in(spark, out) == in_log(root / "A")


def test_a_column_that_messages_do_not_have(spark: SparkSession, tmp_path: Path) -> None:
    write_logs(tmp_path, [packet(0)])
    register(spark)
    with pytest.raises(PySparkException, match="no column time timestamp; it has: position bigint, sender string"):
        spark.read.format(FORMAT).schema("time timestamp").load(str(tmp_path)).collect()


@pytest.mark.soak
def test_a_stream_over_other_logs_stops(spark: SparkSession, tmp_path: Path) -> None:
    packets = [packet(number) for number in range(10)]
    write_logs(tmp_path / "logs", packets)
    run_once(spark, tmp_path / "logs", tmp_path / "out")
    (tmp_path / "logs").rename(tmp_path / "old")
    write_logs(tmp_path / "logs", [packets[0], *reversed(packets), *packets])
    with pytest.raises(PySparkException, match="another order than what this query has read before"):
        run_once(spark, tmp_path / "logs", tmp_path / "out")
    assert len(rows_in(spark, tmp_path / "out")) == 30
