"""Logs on a standalone cluster that loses executors and a worker and runs tasks twice, and through Spark Connect.

The rows are those of the logs.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent

import pytest

from tests.log.test_serve import served
from tests.pipeline.log_stream.gateways import Order, gateway
from tests.pipeline.log_stream.member_logs import in_log, packet, write_logs
from tests.pipeline.sparks import Cluster, connect_server, environment, outcome, standalone_cluster, wait_for

pytestmark = pytest.mark.cluster

STREAM = """
    import json, sqlite3, sys
    from pathlib import Path
    from pyspark.sql import functions as sql
    from ordercast.pipeline import register
    from ordercast.pipeline.session import session

    master, logs, out, gateway = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[5]
    file = str(out / "table.db")

    def into_table(batch, number):  # beside a server it is pickled, and runs there
        rows = [(row.position, row.sender, bytes(row.payload)) for row in batch.collect()]
        with sqlite3.connect(file) as table:
            table.execute("CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY)")
            table.execute("CREATE TABLE IF NOT EXISTS orders (position INTEGER, sender TEXT, payload BLOB)")
            if table.execute("INSERT OR IGNORE INTO batches VALUES (?)", (number,)).rowcount:
                table.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)

    with session(master) as spark:
        register(spark)
        table = spark.read.format("ordercast-log").options(members=logs, minPartitions=4).load()
        sums = table.agg(sql.count("*"), sql.sum("position"), sql.sum(sql.length("payload"))).first()
        stream = spark.readStream.format("ordercast-log").options(startingOffsets="earliest", minPartitions=6)
        messages = stream.option("maxOffsetsPerTrigger", 20000).option("members", logs).load()
        out.mkdir()
        texts = messages.selectExpr("to_json(struct(position, sender, string(payload) AS payload)) AS payload")
        sinks = (messages.writeStream.format("parquet").option("path", str(out / "rows")),
                 messages.writeStream.foreachBatch(into_table),
                 texts.writeStream.format("ordercast").option("gateway", gateway))
        print("runs", flush=True)
        for number, sink in enumerate(sinks):
            checkpoint = str(out / f"checkpoint{number}")
            query = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
        rows = spark.read.parquet(str(out / "rows")).orderBy("position").select("position", "sender", "payload")
        found = [(row.position, row.sender, bytes(row.payload).decode()) for row in rows.collect()]
    with sqlite3.connect(file) as table:
        rows = table.execute("SELECT position, sender, payload FROM orders ORDER BY rowid").fetchall()
    inserted = [(position, sender, payload.decode()) for position, sender, payload in rows]
    Path(sys.argv[4]).write_text(json.dumps({"sums": list(sums), "rows": found, "inserted": inserted}))
"""
LOST = '"Event":"SparkListenerExecutorRemoved"'
SPECULATION = (
    "--conf spark.speculation=true --conf spark.speculation.interval=100ms --conf spark.speculation.multiplier=1.05 "
    "--conf spark.speculation.quantile=0.1 --conf spark.speculation.minTaskRuntime=10ms "
    "--conf spark.eventLog.enabled=true --conf spark.eventLog.compress=false --conf spark.eventLog.dir={} pyspark-shell"
)


def started(folder: Path, master: str, logs: str, gateway: str, **more: str) -> subprocess.Popen[str]:
    arguments = [master, logs, str(folder / "out"), str(folder / "found.json"), gateway]
    pipe, program = subprocess.PIPE, dedent(STREAM)
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", program, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment(**more)
    )


def require_the_order(folder: Path, program: subprocess.Popen[str], results: Order) -> None:
    """In the files, in the table, and in the group that the gateway stands for."""
    status, _, errors = outcome(program)
    assert status == 0, errors
    found = json.loads((folder / "found.json").read_text())
    expected = in_log(folder / "logs" / "A")
    order = [[position, sender, payload.decode()] for position, sender, _, payload in expected]
    assert found["rows"] == order
    assert found["inserted"] == order
    rows = [json.loads(row) for batch in results.taken for row in batch.rows]
    assert [[row["position"], row["sender"], row["payload"]] for row in rows] == order
    sizes = sum(len(payload) for _, _, _, payload in expected)
    assert found["sums"] == [len(expected), sum(position for position, *_ in expected), sizes]


@contextmanager
def at_times_slow(port: int) -> Iterator[int]:
    """A server before another one: each third answer takes a second, so that Spark runs a task twice."""
    asked = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = {"Range": self.headers["Range"]} if "Range" in self.headers else {}
            asking = urllib.request.Request(f"http://127.0.0.1:{port}{self.path}", headers=wanted)
            try:
                with urllib.request.urlopen(asking) as answer:  # noqa: S310 (a server of this test)
                    status, body = answer.status, answer.read()
            except urllib.error.HTTPError as error:  # what the server says is passed on: a range beyond the end is one
                with error:
                    status, body = error.code, error.read()
            if wanted and next(asked) % 3 == 0:
                time.sleep(1)
            with suppress(OSError):  # whoever asked was killed, or was not needed any more
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the standard library's name)
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def events_in(folder: Path) -> str:
    """What Spark has noted."""
    return "".join(each.read_text() for each in (folder / "events").rglob("*") if each.is_file())


def executors_in(events: str) -> int:
    """So many work."""
    return events.count('"Event":"SparkListenerExecutorAdded"') - events.count(LOST)


def kill_executors(folder: Path, cluster: Cluster, program: subprocess.Popen[str]) -> int:
    """One after the other, each after another batch, when both work; then a worker. So many were killed."""
    killed = 0
    for number in range(1, 4):
        commits = [folder / "out" / "checkpoint0" / "commits" / str(number), folder / "out" / "checkpoint1"]
        wait_for(lambda: program.poll() is not None or any(each.exists() for each in commits), "a batch")  # noqa: B023
        wait_for(lambda: program.poll() is not None or executors_in(events_in(folder)) == 2, "both executors")
        for each in cluster.workers[number % 2].executors():
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
                killed += 1
        wait_for(lambda: program.poll() is not None or events_in(folder).count(LOST) >= number, "its loss")  # noqa: B023
    wait_for(lambda: program.poll() is not None or commits[1].exists(), "the second query")
    cluster.workers[0].kill()
    return killed


def test_a_cluster_that_loses_executors_and_a_worker_reads_each_position_once(tmp_path: Path) -> None:
    """With tasks that are run twice, and one of the logs behind a server that is slow at times."""
    write_logs(tmp_path / "logs", [packet(number, 100) for number in range(1000)], max_segment=1 << 18)
    (tmp_path / "events").mkdir()
    with (
        standalone_cluster(tmp_path) as cluster,
        served(tmp_path / "logs" / "C") as server,
        at_times_slow(server.port) as port,
        gateway(results := Order()) as address,
    ):
        logs = f"A={tmp_path / 'logs' / 'A'},B={tmp_path / 'logs' / 'B'},C=http://127.0.0.1:{port}"
        submitted = SPECULATION.format(tmp_path / "events")
        program = started(tmp_path, cluster.master, logs, address, PYSPARK_SUBMIT_ARGS=submitted)
        killed = kill_executors(tmp_path, cluster, program)
        require_the_order(tmp_path, program, results)
    events = events_in(tmp_path)
    lost, twice = events.count(LOST), events.count('"Speculative":true')
    assert killed == 3
    assert lost >= 3
    assert twice > 0
    print(f"{killed} executors and a worker killed, {twice} tasks run twice")  # noqa: T201 (`make soak` shows it)


def test_spark_connect_reads_each_position_once(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs", [packet(number, 100) for number in range(600)], max_segment=1 << 18)
    with connect_server(tmp_path) as server, gateway(results := Order()) as address:
        require_the_order(tmp_path, started(tmp_path, server, str(tmp_path / "logs"), address), results)
