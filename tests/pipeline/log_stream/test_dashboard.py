"""The example of windowed metrics: what closed windows say is what the events say."""

import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Loss
from ordercast.model.runs import RunConfig, Workload
from ordercast.simulator.simulate import simulate
from tests.pipeline.log_stream.examples import example

SECOND = 1_000_000_000  # ns
WINDOW, LATE, JOINED = 5 * SECOND, 3 * SECOND, 10 * SECOND
LEVELS = ("accept", "preack", "ack", "deliver")


@pytest.mark.soak
def test_windows_have_what_the_events_have(spark: SparkSession, tmp_path: Path) -> None:
    """A run of half a minute with losses."""
    config = RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=3),
        workload=Workload(messages=100, gap=300_000_000),
        faults=(Loss(rate=0.1),),
        seed=1,
    )
    simulate(config, tmp_path / "record")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    module = example("stream_dashboard")
    board = module.Dashboard(tmp_path / "page.html")
    made = {"Messages": module.rates, "Latencies": module.latencies, "Repairs": module.repairs}
    for title, frame in made.items():
        stream = frame(module.events_of(spark, tmp_path / "record")).writeStream
        stream.foreachBatch(board.takes(title)).trigger(availableNow=True).start().awaitTermination()
    files = (tmp_path / "record" / "events").glob("*.parquet")
    events = pa.concat_tables([pq.read_table(each, partitioning=None) for each in files]).to_pylist()
    closed = (max(each["time"] for each in events) - LATE) // WINDOW * WINDOW
    early = [each for each in events if each["time"] < closed]
    assert closed > 3 * WINDOW

    counted = Counter((each["time"] // WINDOW, each["node"], each["event"]) for each in early)
    rates = sorted((node, event, count) for (_, node, event), count in counted.items() if event in {"send", "deliver"})
    assert sorted(row[1:] for row in board.tables["Messages"][1]) == rates

    asked = [each for each in early if each["event"] in {"request", "lose"} and each["source"] is not None]
    repairs = Counter((each["time"] // WINDOW, each["source"], each["node"], each["event"]) for each in asked)
    assert sorted(row[1:] for row in board.tables["Repairs"][1]) == sorted((*key[1:], n) for key, n in repairs.items())

    sent = {(each["source"], each["seq"]): each["time"] for each in events if each["event"] == "send"}
    took: dict[tuple[int, str], list[float]] = {}
    for each in early:
        if each["event"] in LEVELS:
            took.setdefault((each["time"] // WINDOW, each["event"]), []).append(
                (each["time"] // 1000 - sent[each["source"], each["seq"]] // 1000) / 1000
            )
    latencies = board.tables["Latencies"][1]
    found = {(int(row[0][-2:]) * SECOND // WINDOW, row[1]): row for row in latencies}
    shown = (closed - JOINED) // WINDOW  # a window of joined events closes when nothing of it can be joined any more
    assert found.keys() == {key for key in took if key[0] < shown} != set()
    for key, row in found.items():
        assert row[2] == len(took[key])
        assert row[5] == pytest.approx(max(took[key]), abs=0.01)
    assert all(math.isfinite(row[3]) and row[3] <= row[5] for row in latencies)
    page = (tmp_path / "page.html").read_text()
    assert "<h2>Latencies</h2>" in page
    assert "p99 ms" in page
