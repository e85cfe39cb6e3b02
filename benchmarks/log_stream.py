"""Logs of live groups in Spark: processor time of a million rows, as a table and as a stream, beside Spark's Parquet.

And what a micro-batch costs that holds next to nothing. `log_following.py` has streams over logs that grow.
With `--peers` also a stream of NATS JetStream as a Python source (`nats-server`, and nats-py in this Python).

Processor time is that of Spark's Java, of its Python workers and of this process, all together; what starting and
warming up takes is left out. Clock times set a scale only. The logs of three members hold the same order. Nothing here
is a test.

    python benchmarks/log_stream.py --folder /var/tmp --rows 5000000
"""

import asyncio
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command_line import parser_for
from durable_peers import free_port, wait_for

from ordercast.log import Log
from ordercast.pipeline import register
from ordercast.pipeline.log_stream.columns import MESSAGES, batch_of, chosen
from ordercast.pipeline.log_stream.options import options_of
from ordercast.pipeline.log_stream.planning import LogPlanner
from ordercast.pipeline.log_stream.reading import rows_of
from ordercast.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEMBERS = ("A", "B", "C")
SIZE, PACKET = 64, 900
"""Bytes of a message, and messages of a packet: what a datagram of a live group carries."""
OUTSTANDING = 4 << 20
_TICK = os.sysconf("SC_CLK_TCK")


def write_logs(folder: Path, rows: int, packet: int = PACKET, names: tuple[str, ...] = MEMBERS) -> None:
    """The same order in the logs of these members."""
    lengths = (SIZE,) * packet
    for name in names:
        chance = random.Random(1)
        with Log(folder / name, "orders") as log:
            log.view(0, MEMBERS)
            while log.next < rows:
                log.append(log.next // packet % 3, log.next, lengths, chance.randbytes(SIZE * packet))
                while log.waiting > OUTSTANDING:
                    time.sleep(0.001)


def processor_time(root: int) -> float:
    """Seconds of a process, its children, and what these have waited for."""
    children: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                fields = (each / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            children.setdefault(int(fields[1]), []).append(int(each.name))
            times[int(each.name)] = sum(map(int, fields[11:15])) / _TICK
    found, left = 0.0, [root]
    while left:
        process = left.pop()
        found += times.get(process, 0.0)
        left += children.get(process, [])
    return found


def measured(what: str, rows: int, run: Callable[[], object], times: int = 3) -> None:
    """The best of some, after one to warm up."""
    run()
    found = []
    for _ in range(times):
        begun, before = time.perf_counter(), processor_time(os.getpid())
        run()
        found.append((processor_time(os.getpid()) - before, time.perf_counter() - begun))
    cpu, clock = min(found)
    print(f"{what:52} {cpu / rows * 1e6:8.2f} CPU-s a million rows {rows / clock:12,.0f} rows/s", flush=True)


def reading(folder: Path, rows: int) -> None:
    """What tasks do, without Spark: read, verify, make Arrow batches."""
    for packet, columns in ((PACKET, ("position", "payload")), (PACKET, MESSAGES.names), (10, MESSAGES.names)):
        place = folder / f"of{packet}"
        count = rows if packet == PACKET else rows // 10
        if not place.exists():
            write_logs(place, count, packet, ("A",))
        found = []
        for _ in range(3):
            begun = time.process_time()
            planner = LogPlanner(options_of({"path": str(place)}))
            parts = planner.parts(planner.boundary("earliest"), planner.boundary("latest"))
            made = sum(batch_of(each, chosen(columns), None).num_rows for part in parts for each in rows_of(part))
            found.append((time.process_time() - begun) / made * 1e6)
        what = f"reading alone, {len(columns)} columns, {packet} in a packet"
        print(f"{what:52} {min(found):8.3f} CPU-s a million rows", flush=True)


def counted(frame: "DataFrame") -> None:
    """Reads every payload."""
    frame.selectExpr("count(*)", "sum(length(payload))").collect()


def streamed(frame: "DataFrame", folder: Path, sink: str = "noop") -> list[dict[str, Any]]:
    """All that is there, in micro-batches; their progress."""
    place = folder / f"run{time.monotonic_ns()}"
    writer = frame.writeStream.format(sink).option("checkpointLocation", str(place / "checkpoint"))
    if sink == "parquet":
        writer = writer.option("path", str(place / "out"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [json.loads(each.json) for each in query.recentProgress]
    shutil.rmtree(place)
    return progress


def tables_and_streams(spark: "SparkSession", folder: Path, rows: int) -> None:
    """The same rows from logs, and from files of Spark's own."""
    logs = str(folder / "logs")
    write_logs(folder / "logs", rows)
    rows = -(-rows // PACKET) * PACKET

    def source(**options: object) -> "DataFrame":
        return spark.readStream.format("ordercast-log").options(startingOffsets="earliest", **options).load(logs)  # type: ignore[arg-type]

    narrow = spark.read.format("ordercast-log").schema("position long, payload binary")
    measured("logs, table, position and payload, 1 partition each M", rows, lambda: counted(narrow.load(logs)))
    measured("logs, table, one member alone", rows, lambda: counted(narrow.load(f"{logs}/A")))
    whole = spark.read.format("ordercast-log")
    measured("logs, table, all columns", rows, lambda: counted(whole.load(logs)))
    table = whole.load(logs)
    table.write.parquet(str(folder / "parquet"))
    files = str(folder / "parquet")
    measured("Parquet, table", rows, lambda: counted(spark.read.parquet(files)))
    batch = 1_000_000
    measured("logs, stream, no sink", rows, lambda: streamed(source(maxOffsetsPerTrigger=batch), folder))
    parquet = spark.readStream.schema(table.schema).option("maxFilesPerTrigger", 1)
    measured("Parquet, stream, no sink", rows, lambda: streamed(parquet.parquet(files), folder))
    measured(
        "logs, stream, Parquet sink", rows, lambda: streamed(source(maxOffsetsPerTrigger=batch), folder, "parquet"), 1
    )
    measured("Parquet, stream, Parquet sink", rows, lambda: streamed(parquet.parquet(files), folder, "parquet"), 1)


def nats_streams(spark: "SparkSession", folder: Path, rows: int) -> None:
    """The same messages from one server of NATS JetStream, by a Python source."""
    program = shutil.which("nats-server")
    if program is None or find_spec("nats") is None:
        print("NATS JetStream: not installed (nats-server, nats-py)")
        return
    from nats_source import NatsSource  # noqa: PLC0415 (where it is installed)

    with nats_server(program, folder) as (address, server):
        asyncio.run(publish(address, rows))
        spark.dataSource.register(NatsSource)
        stream = spark.readStream.format("nats").options(server=address, maxOffsetsPerTrigger=1_000_000).load()
        before = processor_time(server)
        measured("NATS JetStream, Python source, stream, no sink", rows, lambda: streamed(stream, folder), 2)
        cpu = (processor_time(server) - before) / 3
        print(f"{'  of which the server':52} {cpu / rows * 1e6:8.2f} CPU-s a million rows", flush=True)


@contextmanager
def nats_server(program: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Its address and its process."""
    port, store = free_port(), folder / "nats"
    store.mkdir()
    config = store / "config"
    config.write_text(f"listen: 127.0.0.1:{port}\njetstream {{\n  store_dir: {store}\n}}\n")
    server = subprocess.Popen([program, "-c", str(config)], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        wait_for(port)
        yield f"nats://127.0.0.1:{port}", server.pid
    finally:
        server.terminate()
        server.wait()


async def publish(address: str, rows: int) -> None:
    """Messages of 64 bytes into a stream in a file."""
    import nats  # noqa: PLC0415

    connection = await nats.connect(address)
    stream = connection.jetstream()
    await stream.add_stream(name="S", subjects=["s"])
    chance = random.Random(1)
    for sent in range(rows):
        await connection.publish("s", chance.randbytes(SIZE))
        if sent % 5000 == 0:
            await connection.flush()
    await connection.flush()
    while (await stream.stream_info("S")).state.messages < rows:
        await asyncio.sleep(0.05)
    await connection.close()


def small_batches(spark: "SparkSession", folder: Path) -> None:
    """What a micro-batch costs, whatever it holds."""
    write_logs(folder / "few", 20 * PACKET)
    stream = spark.readStream.format("ordercast-log").options(startingOffsets="earliest", maxOffsetsPerTrigger=PACKET)
    begun, before = time.perf_counter(), processor_time(os.getpid())
    batches = sum(1 for each in streamed(stream.load(str(folder / "few")), folder) if each["numInputRows"])
    cpu, clock = processor_time(os.getpid()) - before, time.perf_counter() - begun
    print(
        f"{'a micro-batch of one packet':52} {cpu / batches:8.2f} CPU-s {clock / batches:8.2f} s of the clock",
        flush=True,
    )


def main() -> None:
    """Prints a line for each figure."""
    parser = parser_for(__doc__ or "", "ten minutes")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk in question")
    parser.add_argument("--rows", type=int, default=5_000_000, help="messages of 64 bytes")
    parser.add_argument("--reading-only", action="store_true", help="what tasks do, without Spark")
    parser.add_argument("--peers", action="store_true", help="beside NATS JetStream, if it is installed")
    asked = parser.parse_args()
    peers = str(Path(__file__).parent / "peers")
    sys.path.append(peers)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (peers, os.environ.get("PYTHONPATH")))
    )  # of Spark's workers
    here = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{here}, {asked.rows:,} times {SIZE} bytes")
    folder = Path(tempfile.mkdtemp(prefix="log-stream-", dir=asked.folder))
    try:
        reading(folder, asked.rows)
        if asked.reading_only:
            return
        with session("local[2]") as spark:
            register(spark)
            tables_and_streams(spark, folder, asked.rows)
            if asked.peers:
                nats_streams(spark, folder, min(asked.rows, 1_000_000))
                print("Kafka: not compared; the jar of Spark's source is not part of pyspark, and there is no broker")
            small_batches(spark, folder)
    finally:
        shutil.rmtree(folder)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
