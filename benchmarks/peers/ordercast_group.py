"""Members of an ordercast group, measured; prints one line of JSON.

    python benchmarks/peers/ordercast_group.py --size 64 --mode one --seconds 2 [--order total] [--members 8]

Modes: `one` member sends, which is not the sequencer or the relay; `first`, which is; `all` send; `latency`: one
message at a time, from sending to its delivery at the sender, which is not the sequencer.
"""

import argparse
import asyncio
import time
from multiprocessing.synchronize import Barrier
from typing import Any

from frame import SENDERS, Meter, arguments, names_of, run_members, summary, tell

from ordercast import Group, Settings, join

_BURST = 64


async def listen(group: Group, meter: Meter) -> None:
    """Reads every message until the group is closed."""
    async for batch in group.batches():
        meter.hear_many([message.payload for message in batch])


async def send_all_the_time(group: Group, size: int, until: float) -> None:
    """One call per message; each message has its sender's name and a number."""
    name, padding, number = group.me.encode(), bytes(size - 9), 0
    while time.monotonic() < until:
        for _ in range(_BURST):
            await group.send(name + number.to_bytes(8, "big") + padding)
            number += 1
        await asyncio.sleep(0)


async def send_one_by_one(group: Group, size: int, meter: Meter) -> None:
    """Each when the one before has been delivered here."""
    payload = bytes(size)
    while time.monotonic() < meter.end:
        sent = time.perf_counter()
        await group.send(payload)
        await group.receive()
        meter.latencies.append(time.perf_counter() - sent)


async def take_part(name: str, asked: argparse.Namespace, ready: Barrier) -> dict[str, Any]:
    """One member from beginning to end."""
    settings = Settings(order=asked.order, mtu=asked.mtu or None, delivery=asked.delivery)
    async with join("bench", name=name, members=names_of(asked), settings=settings, insecure=asked.insecure) as group:
        await asyncio.to_thread(ready.wait, 30)
        meter, sends = Meter(asked.seconds), name in SENDERS[asked.mode]
        if asked.mode == "latency" and sends:
            await send_one_by_one(group, asked.size, meter)
        listening = asyncio.create_task(listen(group, meter))
        if sends and asked.mode != "latency":
            await send_all_the_time(group, asked.size, meter.end + 0.2)
        else:
            await asyncio.sleep(max(0.0, meter.end + 0.2 - time.monotonic()))
        meter.stop()
    await listening
    return meter.figures()


def member(name: str, asked: argparse.Namespace, ready: Barrier) -> dict[str, Any]:
    """A process."""
    if asked.uvloop:
        import uvloop  # noqa: PLC0415 (optional)

        uvloop.install()
    return asyncio.run(take_part(name, asked, ready))


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--order", default="sequenced")
    parser.add_argument("--delivery", default="known_stable", help="stable: orders partial and total")
    parser.add_argument("--mtu", type=int, default=0)
    parser.add_argument("--insecure", action="store_true", help="without the key of the user")
    parser.add_argument("--uvloop", action="store_true")
    chosen = parser.parse_args()
    tell(summary(run_members(member, chosen), compared=chosen.order not in {"partial", "po"}))
