"""What an audit of one long run costs on Spark: bytes that reach the driver, shuffled bytes, tasks, CPU, memory.

    python benchmarks/spark_audit.py [--events 10000000 ...] [--nodes 8 100 1000] [--protocol to] [--master local[2]]
        [--folder DIR]

Traces are made without a simulation (`benchmarks/traces.py`), everything to everybody, and kept in DIR, where there is
one. Bytes and tasks are those of Spark's own event log; CPU and memory those of this process, its Java and its workers.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from traces import Shape, write_run

from audit import Tree, cpu_of
from ordercast.pipeline import audit
from ordercast.pipeline.java import set_up_environment


def main() -> None:
    """Makes the traces that are not there, and measures each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--nodes", type=int, nargs="+", default=[8, 100, 1_000])
    parser.add_argument("--protocol", default="to")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--trace", type=Path, default=None, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.trace is not None:
        audit_once(asked.trace, asked.master)
        return
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {asked.protocol}, {asked.master}")
    print(f"{'events':>13}{'nodes':>7}{'jobs':>6}{'tasks':>7}{'to driver':>12}{'shuffled':>11}{'CPU s':>8}{'GiB':>6}")
    with tempfile.TemporaryDirectory() as temporary:
        for events in asked.events:
            for nodes in asked.nodes:
                trace = (asked.folder or Path(temporary)) / f"spark-{asked.protocol}-{nodes}-{events}"
                if not (trace / "runs").exists() or not any((trace / "runs").iterdir()):
                    write_run(trace, Shape(events * nodes // (nodes + 1), nodes=nodes, protocol=asked.protocol))
                command = [sys.executable, __file__, "--master", asked.master, "--trace", str(trace)]
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


def _events_in(logs: Path) -> Iterator[dict[str, Any]]:
    for path in logs.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            for line in path.read_text().splitlines():
                yield json.loads(line)


if __name__ == "__main__":
    main()
