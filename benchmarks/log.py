"""The durable log: what appending costs with sync on, how late messages are durable, recovery, and a full check.

And what it costs a live group of three processes, beside the same group without, in turns: processor time of a message
and member, throughput, and how late a lone message is.

With `--peers` it is beside NATS JetStream, Redis Streams and PySyncObj, as far as they are installed. With `--floor` it
is beside the checksum, the hash, the write and the sync of the same bytes alone, and live groups are beside what the
disk takes of three logs, at full speed and at a part of it.

Each figure is of one process and a real disk, and all but the recovery depend on that disk; nothing here is a test. Run
it on a quiet machine, with a folder on the disk in question, or with one for each member of live groups:

    python benchmarks/log.py --folder /var/tmp
    python benchmarks/log.py --live --folder /var/tmp /mnt/second /mnt/third
"""

import argparse
import asyncio
import itertools
import os
import platform
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from command_line import parser_for
from durable_peers import durable_logs, measured
from log_floor import floor, live_floor
from log_live import group_of, in_turns, told
from lone_messages import lone_messages

import ordercast
from ordercast.log import Log, check, read_batches
from ordercast.log.reader import read

ORDERS = ("sequenced", "total")
PACKET = 60_000
"""Bytes of messages in a packet: those of one datagram of a live group."""
OUTSTANDING = 8 << 20
"""Bytes that wait for the disk at most."""
PAUSE = 0.005
"""Seconds between lone messages."""


class Durable:
    """Waits for positions, and measures how late they are."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.reports = 0
        self.position = 0
        self.asked: dict[int, float] = {}
        self.delays: list[float] = []

    def __call__(self, position: int, _: bytes) -> None:
        """A report of the log, in its thread."""
        now = time.perf_counter()
        with self._changed:
            self.position = position
            self.reports += 1
            for asked in [each for each in self.asked if each <= position]:
                self.delays.append(now - self.asked.pop(asked))
            self._changed.notify()

    def wait(self, position: int) -> None:
        """Returns when all below the position is on the disk."""
        with self._changed:
            self._changed.wait_for(lambda: self.position >= position)


def sync_milliseconds(folder: Path, count: int = 200) -> float:
    """The median of appending 4 KiB and waiting for the disk, as often as `lone` does."""
    found = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(count):
            time.sleep(PAUSE)
            start = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - start)
    return statistics.median(found) * 1e3


def saturated(folder: Path, size: int, megabytes: int) -> str:
    """Packets as fast as the log takes them, with a bound on what waits."""
    count = PACKET // size
    lengths, payload = (size,) * count, os.urandom(PACKET // size * size)
    packets = (megabytes << 20) // len(payload)
    durable = Durable()
    log = Log(folder, "benchmark", on_durable=durable)
    log.view(0, ["A"])
    began, processor = time.perf_counter(), time.process_time()
    for number in range(packets):
        while log.waiting > OUTSTANDING:
            time.sleep(0.001)
        durable.asked[log.append(0, number * count, lengths, payload)] = time.perf_counter()
    durable.wait(packets * count)
    seconds, used = time.perf_counter() - began, time.process_time() - processor
    log.close()
    messages = packets * count
    return (
        f"{size:>5} B x {count:<4} {messages:>9,} messages  {used / messages * 1e6:6.3f} us of CPU each  "
        f"{messages / seconds:>11,.0f}/s  {durable.reports:>5} syncs  "
        f"durable p50 {statistics.median(durable.delays) * 1e3:.1f} ms"
    )


def lone(folder: Path, size: int, count: int) -> str:
    """One message at a time, 200 a second."""
    durable = Durable()
    calls = []
    with Log(folder, "benchmark", on_durable=durable) as log:
        log.view(0, ["A"])
        payload = os.urandom(size)
        for number in range(count):
            start = time.perf_counter()
            durable.asked[log.next + 1] = start
            log.append(0, number, (size,), payload)
            calls.append(time.perf_counter() - start)
            time.sleep(PAUSE)
    return (
        f"{size:>5} B alone  durable p50 {statistics.median(durable.delays) * 1e3:.1f} ms, p99 "
        f"{sorted(durable.delays)[int(0.99 * count)] * 1e3:.1f} ms; the call {statistics.median(calls) * 1e6:.1f} us"
    )


def recovery_and_check(folder: Path, megabytes: int) -> list[str]:
    """Opens a large log, and verifies and reads all of it; what was just written is in the page cache."""
    found = [saturated(folder, 1024, megabytes)]
    size = sum(path.stat().st_size for path in folder.iterdir())
    began, processor = time.perf_counter(), time.process_time()
    log = Log(folder, "benchmark")
    seconds, used = time.perf_counter() - began, time.process_time() - processor
    found.append(f"opened {size / 2**30:.2f} GiB at position {log.next:,}: {seconds:.2f} s, {used:.2f} s of CPU")
    log.close()
    began, processor = time.perf_counter(), time.process_time()
    report = check(folder)
    seconds, used = time.perf_counter() - began, time.process_time() - processor
    assert not report.damage
    found.append(f"checked every byte: {size / 1e6 / seconds:,.0f} MB/s of clock, {size / 1e6 / used:,.0f} MB/s of CPU")
    next(read_batches(folder, report.next - 1))  # which imports pyarrow
    start = max(0, report.next - 500_000)
    processor = time.process_time()
    count = sum(1 for _ in read(folder, start))
    used, processor = time.process_time() - processor, time.process_time()
    found.append(f"read {count:,} messages: {used / count * 1e6:.2f} us of CPU each")
    count = sum(batch.num_rows for batch in read_batches(folder, start))
    used = time.process_time() - processor
    found.append(f"read {count:,} rows of Arrow batches: {used / count * 1e6:.2f} us of CPU each")
    return found


async def durable_group(folder: Path, order: str, size: int) -> str:
    """Until messages are on the disks of a majority of three members: one after the other, and many at once."""
    groups = await group_of(folder, order)

    async def read(group: ordercast.Group) -> None:
        async for _ in group:
            pass

    reading = [asyncio.create_task(read(group)) for group in groups]
    found = await measured(lambda payload: groups[0].send(payload, until="durable"), size)
    await asyncio.gather(*(group.close() for group in groups), *reading)
    return f"{order}, durable at a majority, {found}"


def live_groups(folders: list[Path], order: str, messages: int, turns: int) -> Iterator[str]:
    """With and without logs, in turns: the medians."""
    for size, count in ((100, messages), (1024, messages // 5)):
        yield told(order, size, *in_turns(folders, order, size, count, turns))
    for size in (100, 1024):
        yield asyncio.run(durable_group(folders[0] / f"durable-{order}-{size}", order, size))
    yield lone_messages(folders[0], order)


def alone(place: Path, asked: argparse.Namespace) -> Iterator[str]:
    """What a log costs that is no group's."""
    for size, megabytes in ((100, 64), (1024, 256)):
        yield saturated(place / f"saturated-{size}", size, megabytes)
        if asked.floor:
            yield floor(place / f"floor-{size}", size, PACKET)
    if not asked.floor:
        for size in (100, 1024):
            yield lone(place / f"lone-{size}", size, 200)
        yield from recovery_and_check(place / "large", asked.megabytes)


def live(places: list[Path], asked: argparse.Namespace) -> Iterator[str]:
    """What logs cost live groups."""
    if asked.floor:
        yield from live_floor(places, ORDERS, asked.messages, asked.turns)
        return
    for order in ORDERS:
        yield from live_groups(places, order, asked.messages, asked.turns)


def beside_others(place: Path) -> Iterator[str]:
    """Until a message is on the disk."""
    for order in ORDERS:
        for size in (100, 1024):
            yield asyncio.run(durable_group(place / f"group-{order}-{size}", order, size))
    yield from durable_logs(place)


def main() -> None:
    """All of it."""
    parser = parser_for(__doc__, "some minutes")
    temporary = Path(tempfile.gettempdir())
    parser.add_argument("--folder", type=Path, nargs="+", default=[temporary], help="on the disks to be measured")
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the log that is recovered and checked")
    parser.add_argument("--messages", type=int, default=1_500_000, help="that a live group sends, of 100 bytes")
    parser.add_argument("--peers", action="store_true", help="measure others, too, and nothing else")
    parser.add_argument("--live", action="store_true", help="measure live groups, and nothing else")
    parser.add_argument("--floor", action="store_true", help="measure what it must cost, and nothing else")
    parser.add_argument("--turns", type=int, default=5, help="with and without logs, of which medians are printed")
    asked = parser.parse_args()
    load, folders = os.getloadavg()[0], ", ".join(map(str, asked.folder))
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}, {folders}")
    places = [Path(tempfile.mkdtemp(prefix="ordercast-log-", dir=each)) for each in asked.folder]
    try:
        print(f"the disk: 4 KiB appended and synced, p50 {sync_milliseconds(places[0]):.1f} ms")
        if asked.peers:
            parts = [beside_others(places[0])]
        else:
            parts = [*([] if asked.live else [alone(places[0], asked)]), live(places, asked)]
        for line in itertools.chain(*parts):
            print(line, flush=True)
    finally:
        for place in places:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
