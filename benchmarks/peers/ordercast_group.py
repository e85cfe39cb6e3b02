"""Three members of an ordercast group, measured; prints one line of JSON.

    python benchmarks/peers/ordercast_group.py --size 64 --mode one --seconds 2 [--order total] [--mtu 1400] [--sealed]

Modes: `one` member sends, which is not the sequencer or the channel; `first`, which is; `all` send; `latency`: one
message at a time, from sending to its delivery at the sender, which is not the sequencer.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import secrets
import statistics
import time
import zlib
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

from ordercast.live.group import Group
from ordercast.live.joining import join
from ordercast.wire.keys import GroupKeys

NAMES = ["A", "B", "C"]
WARM_UP = 0.7
COMPARED = 2_000
"""Messages whose order is compared at all members."""
SENDERS = {"one": {"B"}, "first": {"A"}, "all": set(NAMES), "latency": {"B"}}
_BURST = 64


class Meter:
    """Counts what one member hears inside the window."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin, self.end = begin, end
        self.counted = self.heard = self.digest = 0

    async def listen(self, group: Group) -> None:
        """Looks at every message until the group is closed."""
        async for batch in group.batches():
            now = time.monotonic()
            if self.heard < COMPARED:
                for message in batch[: COMPARED - self.heard]:
                    self.digest = zlib.crc32(message.payload[:8], zlib.crc32(message.sender.encode(), self.digest))
            self.heard += len(batch)
            if self.begin <= now < self.end:
                self.counted += len(batch)


async def send_all_the_time(group: Group, size: int, until: float) -> None:
    """One call for each message, each with a number of its own."""
    padding, number = bytes(size - 8), 0
    while time.monotonic() < until:
        for _ in range(_BURST):
            await group.send(number.to_bytes(8, "big") + padding)
            number += 1
        await asyncio.sleep(0)


async def send_one_by_one(group: Group, size: int, until: float) -> list[float]:
    """Seconds from sending to delivery, of each message."""
    found, payload = [], bytes(size)
    while time.monotonic() < until:
        sent = time.perf_counter()
        await group.send(payload)
        await group.receive()
        found.append(time.perf_counter() - sent)
    return found[len(found) // 10 :]


async def take_part(name: str, asked: argparse.Namespace, options: dict[str, Any], ready: Barrier) -> dict[str, Any]:
    """One member from beginning to end."""
    async with join("bench", name=name, members=NAMES, order=asked.order, **options) as group:
        await asyncio.to_thread(ready.wait, 30)
        begin = time.monotonic() + WARM_UP
        meter = Meter(begin, begin + asked.seconds)
        latencies: list[float] = []
        sends = name in SENDERS[asked.mode]
        used = time.process_time()
        if asked.mode == "latency" and sends:
            latencies = await send_one_by_one(group, asked.size, meter.end)
        listening = asyncio.create_task(meter.listen(group))
        if sends and asked.mode != "latency":
            await send_all_the_time(group, asked.size, meter.end + 0.2)
        else:
            await asyncio.sleep(max(0.0, meter.end + 0.2 - time.monotonic()))
        used = time.process_time() - used
    await listening
    return {
        "rate": meter.counted / asked.seconds,
        "heard": meter.heard,
        "digest": meter.digest,
        "cpu": used,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "latencies": latencies,
    }


def run_member(
    name: str, asked: argparse.Namespace, options: dict[str, Any], ready: Barrier, told: "Queue[Any]"
) -> None:
    """A process."""
    if asked.uvloop:
        import uvloop  # noqa: PLC0415 (optional)

        uvloop.install()
    if asked.sealed:
        options = {**options, "key": GroupKeys({1: options.pop("secret")})}
    options.pop("secret", None)
    told.put(asyncio.run(take_part(name, asked, options, ready)))


def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Runs the group; the figures of all its members together."""
    options: dict[str, Any] = {"timeout": 30, "secret": secrets.token_bytes(32)}
    if asked.mtu:
        options["mtu"] = asked.mtu
    spawn = multiprocessing.get_context("fork")
    ready, told = spawn.Barrier(len(NAMES)), spawn.Queue()
    processes = [
        spawn.Process(target=run_member, args=(name, asked, dict(options), ready, told), daemon=True) for name in NAMES
    ]
    for process in processes:
        process.start()
    members = [told.get(timeout=asked.seconds + 60) for _ in NAMES]
    for process in processes:
        process.join(10)
    latencies = sorted(latency for member in members for latency in member["latencies"])
    heard = sum(member["heard"] for member in members)
    total_order = asked.order not in {"partial", "po"}
    found = {
        "rate": statistics.median(member["rate"] for member in members),
        "agree": len({member["digest"] for member in members}) == 1 if total_order else None,
        "cpu_us": 1e6 * sum(member["cpu"] for member in members) / max(1, heard / len(NAMES)),
        "memory_mib": max(member["memory"] for member in members),
    }
    if latencies:
        found = {
            "p50_us": 1e6 * latencies[len(latencies) // 2],
            "p99_us": 1e6 * latencies[int(len(latencies) * 0.99)],
            "memory_mib": found["memory_mib"],
        }
    return found


def main() -> None:
    """Reads the arguments, prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--mode", choices=SENDERS, default="one")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--order", default="sequenced")
    parser.add_argument("--mtu", type=int, default=0)
    parser.add_argument("--sealed", action="store_true")
    parser.add_argument("--uvloop", action="store_true")
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
