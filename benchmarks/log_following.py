"""How far a stream of Spark is behind a group that writes all the time: by rate, what it lags and what it costs.

Three processes are the members of a group with logs; each sends its share of messages of 64 bytes. Or, with `--logs`,
one process writes the logs of three members without a group, which leaves more of the machine to Spark. A stream
without a sink reads position and payload, with a trigger each second. Its lag is what a majority of the members has on
its disks and no finished batch has yet, looked at five times a second; a lag that is bounded does not grow from the
first half of the time to the second. Nothing here is a test.

    python benchmarks/log_following.py --folder /var/tmp --rates 100000,300000
"""

import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from command_line import parser_for
from log_stream import MEMBERS, PACKET, SIZE, processor_time, write_logs

import ordercast
from ordercast.log.disk import FolderDisk
from ordercast.log.published_end import read_published_end
from ordercast.pipeline import register
from ordercast.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_WRITER = """
import sys, time
from ordercast.log import Log
folder, rate, seconds, size, packet = sys.argv[1], *map(int, sys.argv[2:])
logs = [Log(f"{folder}/{name}", "orders") for name in "ABC"]
for log in logs:
    log.view(0, ["A", "B", "C"])
payload, lengths, begun, sent = bytes(size * packet), (size,) * packet, time.monotonic(), 0
while (now := time.monotonic() - begun) < seconds:
    while sent < now * rate:
        for log in logs:
            log.append(sent // packet % 3, sent, lengths, payload)
        sent += packet
    time.sleep(0.01)
for log in logs:
    log.close()
"""


async def member(group: str, name: str, folder: str, rate: int, seconds: float, order: str) -> None:
    """Sends its share when a line comes; leaves when another does."""
    settings = ordercast.Settings(order=order)
    async with ordercast.join(
        group, members=MEMBERS, name=name, settings=settings, insecure=True, log=Path(folder) / name
    ) as joined:
        reading = asyncio.ensure_future(_read(joined))
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        payload, begun, sent = bytes(SIZE), time.monotonic(), 0
        while (now := time.monotonic() - begun) < seconds:
            due = int(now * rate)
            while sent < due and time.monotonic() - begun < seconds:
                for _ in range(min(due - sent, 500)):
                    await joined.send(payload)
                    sent += 1
                await asyncio.sleep(0)
            await asyncio.sleep(0.005)
        print(sent, time.process_time(), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        reading.cancel()


async def _read(group: ordercast.Group) -> None:
    async for _ in group.batches():
        pass


def started(group: str, folder: Path, rate: int, seconds: int, order: str) -> list["subprocess.Popen[str]"]:
    """All members, in a group that is open."""
    pipe = subprocess.PIPE
    processes = []
    for name in MEMBERS:
        share = ["member", group, name, str(folder), str(rate // len(MEMBERS)), str(seconds), order]
        processes.append(subprocess.Popen([sys.executable, __file__, *share], stdin=pipe, stdout=pipe, text=True))  # noqa: S603
    for process in processes:
        heard(process)
    return processes


def heard(process: "subprocess.Popen[str]") -> str:
    """The next line."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]") -> None:
    """A line."""
    assert process.stdin is not None
    with suppress(OSError):  # it does not wait for one
        process.stdin.write("\n")
        process.stdin.flush()


def durable(folder: Path) -> int:
    """What a majority of the members has on its disks."""
    ends = [read_published_end(FolderDisk(folder / name, write=False)) for name in MEMBERS]
    return sorted(end.position if end is not None else 0 for end in ends)[1]


def done(query: "StreamingQuery") -> int:
    """Below this position all is in a finished batch."""
    progress = query.lastProgress
    offset = json.loads(progress.sources[0].endOffset or "null") if progress is not None else None
    return int(offset["next"]) if offset is not None else 0


def begun(spark: "SparkSession", logs: Path, checkpoint: Path) -> "StreamingQuery":
    """The query, when it has looked at the logs."""
    stream = spark.readStream.format("ordercast-log").schema("position long, payload binary")
    query = (
        stream.option("startingOffsets", "earliest")
        .load(str(logs))
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="1 second")
        .start()
    )
    while query.lastProgress is None:
        time.sleep(0.1)
    return query


def follow(spark: "SparkSession", folder: Path, rate: int, seconds: int, order: str | None) -> str:
    """A line of figures; `order`: of a group, or None, where one process writes the logs."""
    logs, checkpoint = folder / f"logs{rate}", folder / f"checkpoint{rate}"
    if order is None:
        write_logs(logs, PACKET)
        query = begun(spark, logs, checkpoint)
        command = [sys.executable, "-c", _WRITER, str(logs), *map(str, (rate, seconds, SIZE, PACKET))]
        writers = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True)]  # noqa: S603
    else:
        writers = started(f"following-{os.getpid()}-{rate}", logs, rate, seconds, order)
        query = begun(spark, logs, checkpoint)
    first, all_before, written = durable(logs), processor_time(os.getpid()), time_of(writers)
    for each in writers:
        tell(each)
    start, batches, lags = time.monotonic(), set(), list[int]()
    while time.monotonic() - start < seconds:
        time.sleep(0.2)
        if query.lastProgress is not None:
            batches.add(query.lastProgress.batchId)
        lags.append(durable(logs) - done(query))
    rows, written = durable(logs) - first, time_of(writers) - written
    reading = processor_time(os.getpid()) - all_before - written
    for each in writers:
        if order is not None:
            heard(each)  # it has sent its share
            tell(each)
        each.wait()
    query.processAllAvailable()
    caught_up = done(query) == durable(logs)
    query.stop()
    lag = [each / rows * seconds for each in lags]
    half = len(lag) // 2
    return (
        f"{f'a group, {order}' if order is not None else 'logs alone'}: asked {rate:,}/s for {seconds} s, durable "
        f"{rows / seconds:,.0f}/s; {len(batches)} batches; lag {statistics.mean(lag[:half]):.1f} s in the first half, "
        f"{statistics.mean(lag[half:]):.1f} s in the second, at most {max(lag):.1f} s; CPU-s: Spark {reading:.1f} "
        f"({reading / rows * 1e6:.2f} a million rows), writing {written:.1f}; caught up in the end: {caught_up}"
    )


def time_of(processes: list["subprocess.Popen[str]"]) -> float:
    """Seconds of processor."""
    return sum(processor_time(each.pid) for each in processes)


def main() -> None:
    """Prints a line for each rate."""
    parser = parser_for(__doc__ or "", "a minute for each rate")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk in question")
    parser.add_argument("--rates", default="100000,200000,300000", help="messages a second, with commas")
    parser.add_argument("--seconds", type=int, default=30, help="for so long")
    parser.add_argument("--order", default="sequenced", help="total, priority or sequenced")
    parser.add_argument("--logs", action="store_true", help="logs alone, without a group")
    asked = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {SIZE} bytes")
    folder = Path(tempfile.mkdtemp(prefix="log-following-", dir=asked.folder))
    try:
        with session("local[2]") as spark:
            register(spark)
            for rate in map(int, asked.rates.split(",")):
                print(follow(spark, folder, rate, asked.seconds, None if asked.logs else asked.order), flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "member":
        name, asked_rate, asked_seconds = sys.argv[3], int(sys.argv[5]), float(sys.argv[6])
        asyncio.run(member(sys.argv[2], name, sys.argv[4], asked_rate, asked_seconds, sys.argv[7]))
    else:
        main()
