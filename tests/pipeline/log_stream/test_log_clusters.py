"""Logs on a standalone cluster, whose workers are killed, and through Spark Connect: the rows are those of the logs."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.pipeline.log_stream.member_logs import in_log, packet, write_logs
from tests.pipeline.sparks import connect_server, environment, outcome, standalone_cluster, wait_for

pytestmark = pytest.mark.cluster

STREAM = """
    import json, sys
    from pathlib import Path
    from pyspark.sql import functions as sql
    from ordercast.pipeline import register
    from ordercast.pipeline.session import session

    master, logs, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    with session(master) as spark:
        register(spark)
        table = spark.read.format("ordercast-log").option("minPartitions", 4).load(logs)
        sums = table.agg(sql.count("*"), sql.sum("position"), sql.sum(sql.length("payload"))).first()
        stream = spark.readStream.format("ordercast-log").options(startingOffsets="earliest", minPartitions=4)
        query = (
            stream.option("maxOffsetsPerTrigger", 20000).load(logs).writeStream.format("parquet")
            .option("path", str(out / "rows")).option("checkpointLocation", str(out / "checkpoint"))
            .trigger(availableNow=True).start()
        )
        print("runs", flush=True)
        query.awaitTermination()
        rows = spark.read.parquet(str(out / "rows")).orderBy("position").select("position", "sender", "payload")
        found = [(row.position, row.sender, bytes(row.payload).decode()) for row in rows.collect()]
    Path(sys.argv[4]).write_text(json.dumps({"sums": list(sums), "rows": found}))
"""


def started(folder: Path, master: str) -> subprocess.Popen[str]:
    arguments = [master, str(folder / "logs"), str(folder / "out"), str(folder / "found.json")]
    pipe = subprocess.PIPE
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", dedent(STREAM), *arguments], stdout=pipe, stderr=pipe, text=True, env=environment()
    )


def require_the_order(folder: Path, program: subprocess.Popen[str]) -> None:
    status, _, errors = outcome(program)
    assert status == 0, errors
    found = json.loads((folder / "found.json").read_text())
    expected = in_log(folder / "logs" / "A")
    assert found["rows"] == [[position, sender, payload.decode()] for position, sender, _, payload in expected]
    sizes = sum(len(payload) for _, _, _, payload in expected)
    assert found["sums"] == [len(expected), sum(position for position, *_ in expected), sizes]


def test_a_cluster_that_loses_a_worker_reads_each_position_once(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs", [packet(number, 100) for number in range(1500)], max_segment=1 << 18)
    with standalone_cluster(tmp_path) as cluster:
        program = started(tmp_path, cluster.master)
        commits = tmp_path / "out" / "checkpoint" / "commits"
        wait_for(lambda: program.poll() is not None or (commits.is_dir() and any(commits.iterdir())), "a batch")
        cluster.workers[0].kill()
        require_the_order(tmp_path, program)


def test_spark_connect_reads_each_position_once(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs", [packet(number, 100) for number in range(600)], max_segment=1 << 18)
    with connect_server(tmp_path) as address:
        require_the_order(tmp_path, started(tmp_path, address))
