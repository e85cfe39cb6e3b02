"""A live group's messages in a table of Spark, exactly once, though a member is killed in between.

    python examples/stream_table.py               starts three members as processes, kills one, and compares in the end

Each member writes a durable log of what it was delivered, in the order of the group. A Spark stream reads these logs:
what a majority has on its disks, from whichever member has it. Position and running hash are the stream's offset, so it
goes on with another member at the same position. Each micro-batch goes into an SQLite table in one transaction, with
its number; a batch that Spark repeats after a crash finds its number there.

Needs the extra `pipeline` (Spark; the Java for it comes along).
"""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ordercast
import ordercast.log

MEMBERS = ("A", "B", "C")
SETTINGS = ordercast.Settings(order="total", failure_timeout=1.0)
KILLED = "B"


async def member(name: str, folder: Path, group: str) -> None:
    """Sends orders until it is told to end by a line; leaves when they are durable."""
    async with ordercast.join(group, members=MEMBERS, name=name, settings=SETTINGS, log=folder / name) as joined:
        print("open", flush=True)
        reading = asyncio.create_task(_read(joined))
        told = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
        number = 0
        while not told.done():
            order = {"shop": name, "order": number, "cents": 5 * number % 997}
            receipt = await joined.send(json.dumps(order).encode())
            number += 1
            if number % 20 == 0:
                await asyncio.sleep(0.05)
        await receipt.durable()
        reading.cancel()


async def _read(group: ordercast.Group) -> None:
    async for _ in group.batches():
        pass


def start(name: str, folder: Path, group: str) -> "subprocess.Popen[str]":
    """A member as a process."""
    command = [sys.executable, __file__, name, str(folder), group]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603


def heard(process: "subprocess.Popen[str]") -> str:
    """The next line that a member prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def into_table(table: Path):  # type: ignore[no-untyped-def] # a function of a DataFrame and a number, as Spark wants it
    """Writes each batch once: its rows and its number in one transaction."""
    with sqlite3.connect(table) as made:
        made.execute("CREATE TABLE orders (position INTEGER, sender TEXT, payload BLOB, shop TEXT, cents INTEGER)")
        made.execute("CREATE TABLE batches (number INTEGER PRIMARY KEY)")

    def write(batch, number: int) -> None:  # type: ignore[no-untyped-def]
        rows = [
            (row.position, row.sender, bytes(row.payload), row.value.shop, row.value.cents) for row in batch.collect()
        ]
        with sqlite3.connect(table) as here:
            if here.execute("INSERT OR IGNORE INTO batches VALUES (?)", (number,)).rowcount:
                here.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)
        if rows:
            print(f"batch {number}: positions {rows[0][0]:,} to {rows[-1][0]:,}", flush=True)

    return write


def main() -> None:
    """The whole of it."""
    from ordercast.pipeline import register  # noqa: PLC0415 (a member needs no Spark)
    from ordercast.pipeline.session import session  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as place, session("local[2]") as spark:
        folder, group = Path(place), f"orders-{os.getpid()}"
        logs, table = folder / "logs", folder / "orders.db"
        processes = {name: start(name, logs, group) for name in MEMBERS}
        for process in processes.values():
            heard(process)
        print(f"a group of {', '.join(MEMBERS)}; a Spark stream reads their logs", flush=True)
        register(spark)
        orders = (
            spark.readStream.format("ordercast-log")
            .option("startingOffsets", "earliest")
            .option("value", "json")
            .option("valueSchema", "shop string, order long, cents long")
            .load(str(logs))
        )
        query = (
            orders.writeStream.foreachBatch(into_table(table))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(processingTime="1 second")
            .start()
        )
        _kill_one(processes, logs, table)
        for process in processes.values():
            process.communicate("\n")
        query.processAllAvailable()
        query.stop()
        if not _is_the_order(logs, table):
            raise SystemExit(1)


def _kill_one(processes: "dict[str, subprocess.Popen[str]]", logs: Path, table: Path) -> None:
    """Once the stream has read something; then waits until it has read more."""
    wait_for_more(table, than=0)
    killed = processes.pop(KILLED)
    killed.kill()
    killed.communicate()
    (logs / KILLED).rename(logs.parent / "lost")  # and its disk is lost, too
    there = _count(table)
    print(f"{KILLED} was killed, and its disk is lost; {there:,} messages are in the table", flush=True)
    wait_for_more(table, than=there + 5000)


def wait_for_more(table: Path, than: int) -> None:
    """Until the table has more rows."""
    deadline = time.monotonic() + 120
    while _count(table) <= than and time.monotonic() < deadline:
        time.sleep(0.1)


def _count(table: Path) -> int:
    with sqlite3.connect(table) as here:
        return int(here.execute("SELECT count(*) FROM orders").fetchone()[0])


def _is_the_order(logs: Path, table: Path) -> bool:
    """The order of the group, and the table. Who left first has the beginning only of what the last one has."""
    orders = [
        [(one.position, one.sender, one.payload) for one in ordercast.log.read(logs / name)]
        for name in MEMBERS
        if name != KILLED
    ]
    order = max(orders, key=len)
    agree = all(each == order[: len(each)] for each in orders)
    with sqlite3.connect(table) as here:
        rows = here.execute("SELECT position, sender, payload FROM orders ORDER BY rowid").fetchall()
        sums = here.execute("SELECT shop, count(*), sum(cents) FROM orders GROUP BY shop").fetchall()
    print(f"{'shop':>6} {'orders':>8} {'cents':>12}")
    for shop, count, cents in sums:
        print(f"{shop:>6} {count:>8,} {cents:>12,}")
    print(f"the order of the group has {len(order):,} messages, the table {len(rows):,} rows")
    print(f"the table is the order of the group, each position once: {agree and rows == order}")
    return agree and rows == order


if __name__ == "__main__":
    if len(sys.argv) == 4:
        asyncio.run(member(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
    else:
        main()
