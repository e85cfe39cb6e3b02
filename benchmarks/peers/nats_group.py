"""Clients of a NATS JetStream server, measured like `ordercast_group.py`; needs nats-server and nats-py.

One server keeps one stream in memory, which is what orders: it costs a process more, and survives no failure. All
clients hear the whole stream. A sender has so many messages under way that the server has not acknowledged.
"""

import argparse
import asyncio
import contextlib
import os
import socket
import subprocess
import tempfile
import time
from multiprocessing.synchronize import Barrier
from typing import Any

import nats
from frame import SENDERS, Meter, arguments, run_members, summary, tell
from nats.js.api import ConsumerConfig, StorageType, StreamConfig

PORT = 21_711
MAX_BYTES_IN_FLIGHT = 4_000
MAX_WAITING_BYTES = 8 << 20  # of messages that a sender has under way


async def send_all_the_time(stream: Any, name: str, asked: argparse.Namespace, until: float) -> None:
    """As many under way as the client and the server take."""
    padding, number = bytes(asked.size - 9), 0
    while time.monotonic() < until:
        for _ in range(16):
            await stream.publish_async("bench", name.encode() + number.to_bytes(8, "big") + padding)
            number += 1
        await asyncio.sleep(0)


async def take_part(name: str, asked: argparse.Namespace, ready: Barrier) -> dict[str, Any]:
    """One client from beginning to end."""
    client = await nats.connect(f"nats://127.0.0.1:{PORT}", pending_size=64 << 20)
    under_way = max(16, min(MAX_BYTES_IN_FLIGHT, MAX_WAITING_BYTES // asked.size))
    stream = client.jetstream(publish_async_max_pending=under_way)
    meter: Meter | None = None
    came_back = asyncio.Event()

    async def hear(message: Any) -> None:
        if meter is not None:
            meter.hear(message.data)
            came_back.set()

    await stream.subscribe(
        "bench", ordered_consumer=False, cb=hear, manual_ack=True, config=ConsumerConfig(ack_policy="none"),
        pending_msgs_limit=-1, pending_bytes_limit=-1,
    )  # fmt: skip
    await asyncio.to_thread(ready.wait, 30)
    meter = Meter(asked.seconds)
    sends = name in SENDERS[asked.mode]
    if sends and asked.mode == "latency":
        payload = bytes(asked.size)
        while time.monotonic() < meter.end:
            came_back.clear()
            sent = time.perf_counter()
            await client.publish("bench", payload)
            await came_back.wait()
            meter.latencies.append(time.perf_counter() - sent)
    elif sends:
        with contextlib.suppress(Exception):  # a client that is too slow is thrown out: what it heard counts
            await send_all_the_time(stream, name, asked, meter.end)
    await asyncio.sleep(max(0.0, meter.end + 0.3 - time.monotonic()))
    meter.stop()
    await asyncio.to_thread(ready.wait, 30)
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.close(), 5)
    return meter.figures()


def member(name: str, asked: argparse.Namespace, ready: Barrier) -> dict[str, Any]:
    """A process."""
    return asyncio.run(take_part(name, asked, ready))


async def make_stream() -> None:
    """In memory, as large as a run needs."""
    client = await nats.connect(f"nats://127.0.0.1:{PORT}")
    stream = StreamConfig(name="bench", subjects=["bench"], storage=StorageType.MEMORY, max_bytes=1 << 30)
    await client.jetstream().add_stream(stream)
    await client.close()


def wait_for_server() -> None:
    """Until it listens."""
    for _ in range(100):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=1):
            return
        time.sleep(0.1)
    raise SystemExit("nats-server does not listen")


def main() -> None:
    """Server, stream, clients."""
    asked = arguments(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            ["nats-server", "-js", "-a", "127.0.0.1", "-p", str(PORT), "-sd", folder],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for_server()
            asyncio.run(make_stream())
            found = run_members(member, asked)
        finally:
            server.terminate()
            _, _, used = os.wait4(server.pid, 0)
        tell(summary(found, cpu=used.ru_utime + used.ru_stime))


if __name__ == "__main__":
    main()
