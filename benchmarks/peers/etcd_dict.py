"""etcd with three members, measured like `benchmarks/replicated.py`; needs the program etcd, and grpcio.

The caller is one Python process with one channel to the first member; messages are encoded here, without a client
library. What etcd answers is in the logs of two of its members; they are in memory here (/dev/shm), as ours are on no
disk either. Reads are linearizable. Without waiting means 1,000 requests at once.
"""

import argparse
import asyncio
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc.aio

VALUE = b"v" * 80
KEY = b"key"
PUT = b"\x0a" + bytes([len(KEY)]) + KEY + b"\x12" + bytes([len(VALUE)]) + VALUE  # PutRequest: key, value
RANGE = b"\x0a" + bytes([len(KEY)]) + KEY  # RangeRequest: key
AT_ONCE = {"put": 1_000, "put, 64 await": 64, "put, 1 awaits": 1, "fresh read, 64": 64}
Method = Callable[[bytes], Awaitable[bytes]]


def free_ports(count: int) -> list[int]:
    """Nobody uses them now."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


def servers(stack: ExitStack) -> int:
    """Three members; the port for clients of the first one."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
    ports = free_ports(6)
    peers = {f"m{number}": f"http://127.0.0.1:{port}" for number, port in enumerate(ports[:3])}
    for (name, peer), client in zip(peers.items(), ports[3:], strict=True):
        url = f"http://127.0.0.1:{client}"
        line = ["etcd", "--name", name, "--data-dir", str(folder / name), "--log-level", "error"]
        line += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        line += ["--listen-client-urls", url, "--advertise-client-urls", url]
        line += ["--initial-cluster", ",".join(f"{each}={at}" for each, at in peers.items())]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.terminate)
    return ports[3]


async def calls(method: Method, request: bytes, at_once: int, end: float) -> int:
    """So many tasks, each of which awaits its answers."""
    count = 0

    async def work() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await method(request)
            count += 1

    await asyncio.gather(*(work() for _ in range(at_once)))
    return count


async def measure(seconds: float) -> dict[str, float]:
    """Calls a second, by mode."""
    found = {}
    with ExitStack() as stack:
        port = servers(stack)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            plain: dict[str, Any] = {"request_serializer": bytes, "response_deserializer": bytes}
            put = channel.unary_unary("/etcdserverpb.KV/Put", **plain)
            get = channel.unary_unary("/etcdserverpb.KV/Range", **plain)
            for _ in range(100):
                await asyncio.sleep(0.1)
                try:
                    await put(PUT, timeout=2)
                except grpc.aio.AioRpcError:
                    continue
                break
            assert VALUE in await get(RANGE)
            for mode, at_once in AT_ONCE.items():
                method, request = (get, RANGE) if "read" in mode else (put, PUT)
                begun = time.perf_counter()
                found[mode] = await calls(method, request, at_once, begun + seconds) / (time.perf_counter() - begun)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    asked = parser.parse_args()
    if shutil.which("etcd") is None:
        parser.error("there is no program etcd: install Debian's etcd-server")
    print(json.dumps(asyncio.run(measure(asked.seconds))))
