"""A page about a running group, by windows of time: rates, latencies by level, repairs by link. Made to be copied.

    ordercast node chat --members A,B,C --record record           in three terminals: a group that records what happens
    python examples/stream_dashboard.py record dashboard.html     writes the page, and writes it anew, until interrupted

A record is a trace that grows: each second adds a file of events. Spark's Structured Streaming reads the new files,
joins what was sent with how far it has got, and closes a window when nothing of it can come any more: 3 s after its
end, and that of latencies 10 s later, since a message may be on its way for so long.

Needs the extra `pipeline` (Spark; the Java for it comes along).
"""

import argparse
import html
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from ordercast.pipeline.session import session

WINDOW, LATE = "5 seconds", "3 seconds"
SHOWN = 40  # rows of a table: the newest
LEVELS = ("accept", "preack", "ack", "deliver")
EVENTS = "run string, node int, time long, event string, source int, seq long, detail string"
Tables = dict[str, tuple[tuple[str, ...], list[tuple[object, ...]]]]


def events_of(spark: SparkSession, record: Path) -> DataFrame:
    """The events of a record as they come, with the time as one."""
    files = spark.readStream.schema(EVENTS).option("pathGlobFilter", "*.parquet").option("maxFileAge", "36500d")
    moment = sql.timestamp_micros(sql.expr("time div 1000")).alias("at")
    return files.parquet(str(record / "events")).select("*", moment).withWatermark("at", LATE)


def rates(events: DataFrame) -> DataFrame:
    """Messages sent and delivered by each member."""
    chosen = events.where(sql.col("event").isin("send", "deliver"))
    return chosen.groupBy(sql.window("at", WINDOW), "node", "event").count()


def repairs(events: DataFrame) -> DataFrame:
    """Messages that were asked for again, and units that were lost, by link: from the sender to who lacked them."""
    chosen = events.where(sql.col("event").isin("request", "lose") & sql.col("source").isNotNull())
    return chosen.groupBy(sql.window("at", WINDOW), "source", "node", "event").count()


def latencies(events: DataFrame) -> DataFrame:
    """Milliseconds from the send to each level at each destination: the mean, the 99th percentile, the most."""
    sent = events.where("event = 'send'").select("run", "source", "seq", sql.col("at").alias("sent_at"))
    reached = events.where(sql.col("event").isin(*LEVELS)).select("run", "source", "seq", "event", "at")
    near = sql.col("at").between(sql.col("sent_at"), sql.col("sent_at") + sql.expr("INTERVAL 10 SECONDS"))
    same = [sent[name] == reached[name] for name in ("run", "source", "seq")]
    joined = sent.join(reached, [*same, near]).select("event", "at", "sent_at")
    took = (sql.unix_micros("at") - sql.unix_micros("sent_at")) / 1000
    return joined.groupBy(sql.window("at", WINDOW), "event").agg(
        sql.count("*").alias("messages"),
        sql.round(sql.avg(took), 2).alias("mean ms"),
        sql.round(sql.percentile_approx(took, 0.99), 2).alias("p99 ms"),
        sql.round(sql.max(took), 2).alias("most ms"),
    )


def page(tables: Tables) -> str:
    """All tables, the newest windows first."""
    parts = [f"<h1>A group, by windows of {WINDOW}</h1><p>written at {time.strftime('%H:%M:%S')}</p>"]
    for title, (columns, rows) in tables.items():
        head = "".join(f"<th>{html.escape(each)}</th>" for each in columns)
        lines = ["".join(f"<td>{html.escape(str(each))}</td>" for each in row) for row in rows[-SHOWN:][::-1]]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        parts.append(f"<h2>{html.escape(title)}</h2><table><tr>{head}</tr>{body}</table>")
    style = "<style>body{font:14px sans-serif}td,th{padding:2px 12px;text-align:right}</style>"
    return f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2">{style}{"".join(parts)}'


class Dashboard:
    """The page, which each query adds its closed windows to."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        self.tables: Tables = {}

    def takes(self, title: str) -> Callable[[DataFrame, int], None]:
        """What a query does with its batches."""

        def take(batch: DataFrame, _: int) -> None:
            columns = tuple(name for name in batch.columns if name != "window")
            found = [
                (row["window"].start.strftime("%H:%M:%S"), *(row[name] for name in columns)) for row in batch.collect()
            ]
            with self._lock:
                rows = [*self.tables.get(title, ((), []))[1], *sorted(found, key=str)]
                self.tables[title] = (("from", *columns), rows)
                new = self._file.with_suffix(".new")
                new.write_text(page(self.tables))
                new.replace(self._file)

        return take


def main() -> None:
    """Until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="folder of the records of a group")
    parser.add_argument("page", type=Path, help="HTML file to write")
    parser.add_argument("--seconds", type=float, default=1e9, help="for so long")
    asked = parser.parse_args()
    board = Dashboard(asked.page)
    with session("local[2]") as spark:
        for title, made in (("Messages", rates), ("Latencies by level", latencies), ("Repairs by link", repairs)):
            frame = made(events_of(spark, asked.record))
            frame.writeStream.foreachBatch(board.takes(title)).trigger(processingTime="2 seconds").start()
        deadline = time.monotonic() + asked.seconds
        while time.monotonic() < deadline and not any(query.exception() for query in spark.streams.active):
            time.sleep(0.5)
        for query in spark.streams.active:
            query.stop()
    for title, (_, rows) in board.tables.items():
        print(f"{title}: {len(rows)} rows of closed windows")


if __name__ == "__main__":
    main()
