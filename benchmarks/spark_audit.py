"""What an audit of one long run costs on Spark: bytes that reach the driver, shuffled bytes, tasks, CPU, memory.

    python benchmarks/spark_audit.py [--events 10000000 ...] [--nodes 8 100 1000] [--protocol to] [--master local[2]]
        [--folder DIR] [--scan]

Traces are made without a simulation (`benchmarks/traces.py`), everything to everybody, and kept in DIR, where there is
one. Bytes and tasks are those of Spark's own event log; CPU and memory those of this process, its Java and its workers.
--scan reads the columns of an audit instead, once by tasks that open the files themselves, as the audit does, and once
by Spark's own scan, which hands them to the same tasks as Arrow batches.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from traces import Shape, write_run

from audit import Tree, cpu_of
from ordercast.audit.logs import COLUMNS
from ordercast.pipeline import audit
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups
from ordercast.pipeline.audit.plan import AuditTask, audit_tasks
from ordercast.pipeline.java import set_up_environment


def main() -> None:
    """Makes the traces that are not there, and measures each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--nodes", type=int, nargs="+", default=[8, 100, 1_000])
    parser.add_argument("--protocol", default="to")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--scan", action="store_true")
    parser.add_argument("--trace", type=Path, default=None, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.trace is not None:
        (scan_twice if asked.scan else audit_once)(asked.trace, asked.master)
        return
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {asked.protocol}, {asked.master}")
    if not asked.scan:
        print(
            f"{'events':>13}{'nodes':>7}{'jobs':>6}{'tasks':>7}{'to driver':>12}{'shuffled':>11}{'CPU s':>8}{'GiB':>6}"
        )
    with tempfile.TemporaryDirectory() as temporary:
        for events in asked.events:
            for nodes in asked.nodes:
                trace = (asked.folder or Path(temporary)) / f"spark-{asked.protocol}-{nodes}-{events}"
                if not (trace / "runs").exists() or not any((trace / "runs").iterdir()):
                    write_run(trace, Shape(events * nodes // (nodes + 1), nodes=nodes, protocol=asked.protocol))
                command = [sys.executable, __file__, "--master", asked.master, "--trace", str(trace)]
                command += ["--scan"] if asked.scan else []
                process = subprocess.Popen(command)  # noqa: S603
                tree = Tree(process.pid)
                process.wait()
                tree.end()
                print(f"{'':>57}most memory {tree.memory / 2**30:5.1f} GiB")


def audit_once(trace: Path, master: str) -> None:
    """Audits a trace on a Spark of its own, and prints a line of the table."""
    set_up_environment()
    with tempfile.TemporaryDirectory() as logs:
        builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", f"file://{logs}")
        builder = builder.config("spark.eventLog.rolling.enabled", "false").config("spark.eventLog.compress", "false")
        builder = builder.config("spark.driver.memory", "1g").config("spark.ui.showConsoleProgress", "false")
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        before = sum(cpu_of(os.getpid()).values())
        verdict = audit([trace], spark=spark, note=print)
        used = sum(cpu_of(os.getpid()).values()) - before
        assert verdict.holds
        spark.stop()
        found = list(_events_in(Path(logs)))
    metrics = [event["Task Metrics"] for event in found if event["Event"] == "SparkListenerTaskEnd"]
    to_driver = sum(one["Result Size"] for one in metrics)
    shuffled = sum(one["Shuffle Write Metrics"]["Shuffle Bytes Written"] for one in metrics)
    jobs = sum(event["Event"] == "SparkListenerJobStart" for event in found)
    nodes, events = trace.name.split("-")[2:4]
    print(
        f"{int(events):>13,}{int(nodes):>7,}{jobs:>6}{len(metrics):>7}{to_driver / 2**20:>8.1f} MiB"
        f"{shuffled / 2**20:>7.1f} MiB{used:>8.1f}",
        flush=True,
    )


def scan_twice(trace: Path, master: str) -> None:
    """Reads the columns of an audit by either way, each twice, and prints the CPU of the second time."""
    set_up_environment()
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "100000").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    tasks = audit_tasks([trace])
    for name, read in (("tasks", _read_by_tasks), ("Spark", _read_by_spark)):
        for _ in range(2):
            before = sum(cpu_of(os.getpid()).values())
            rows = read(spark, trace, tasks)
            used = sum(cpu_of(os.getpid()).values()) - before
        print(f"{rows:,} rows read by {name}: {used:.1f} s of CPU", flush=True)
    spark.stop()


def _read_by_tasks(spark: SparkSession, trace: Path, tasks: Sequence[AuditTask]) -> int:
    del trace
    groups = [
        {"path": location.path, "group": group}
        for task in tasks
        for location in task.locations
        for group in location.groups
    ]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                found = RowGroups(row["path"], {}, (row["group"],), None).read(COLUMNS)
                yield pa.RecordBatch.from_pydict({"rows": [found.num_rows]})

    table = spark.createDataFrame(pa.Table.from_pylist(groups)).repartition(max(1, len(groups) // 24))
    return int(table.mapInArrow(read, "rows bigint").agg({"rows": "sum"}).collect()[0][0])


def _read_by_spark(spark: SparkSession, trace: Path, tasks: Sequence[AuditTask]) -> int:
    del tasks

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})

    table = spark.read.parquet(f"{trace}/events").select(*COLUMNS)
    return int(table.mapInArrow(count, "rows bigint").agg({"rows": "sum"}).collect()[0][0])


def _events_in(logs: Path) -> Iterator[dict[str, Any]]:
    for path in logs.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            for line in path.read_text().splitlines():
                yield json.loads(line)


if __name__ == "__main__":
    main()
