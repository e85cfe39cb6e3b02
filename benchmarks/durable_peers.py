"""What others take to tell that a message is on the disk, beside `benchmarks/log.py`; each only where it is installed.

- NATS JetStream: `nats-server` with a stream in files, one server; `sync_interval: always` where the server has it
  (2.10 and later; older ones sync every two minutes and answer at once).
- Redis Streams: `redis-server` with `appendfsync always`, one server.
- PySyncObj: a replicated object with a journal at three nodes in one process; the journal is a mapped file.
"""

import asyncio
import os
import shutil
import socket
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LONE, MANY, OUTSTANDING = 100, 20_000, 500
_START = 10.0  # seconds for a server to answer


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Until a server answers; raises `RuntimeError`."""
    until = time.monotonic() + _START
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise RuntimeError("the server does not answer")


async def measured(publish: Callable[[bytes], Awaitable[object]], size: int) -> str:
    """A lone message at a time, and then many with a bound on what is outstanding."""
    payload, delays = os.urandom(size), []
    for _ in range(LONE):
        begun = time.perf_counter()
        await publish(payload)
        delays.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    waiting: set[asyncio.Task[object]] = set()
    for _ in range(MANY):
        waiting.add(asyncio.ensure_future(publish(payload)))
        if len(waiting) >= OUTSTANDING:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*waiting)
    rate = MANY / (time.perf_counter() - begun)
    return f"{size:>5} B: a lone message p50 {statistics.median(delays) * 1e3:.1f} ms; {rate:>9,.0f}/s"


async def nats(folder: Path) -> list[str]:
    """NATS JetStream."""
    program = shutil.which("nats-server")
    if program is None or find_spec("nats") is None:
        return ["NATS JetStream: not installed (nats-server, nats-py)"]
    import nats as client  # noqa: PLC0415 (where it is installed)

    for sync in ("  sync_interval: always\n", ""):
        port, store = free_port(), folder / f"nats{len(sync)}"
        store.mkdir()
        config = store / "config"
        config.write_text(f"listen: 127.0.0.1:{port}\njetstream {{\n  store_dir: {store}\n{sync}}}\n")
        server = subprocess.Popen([program, "-c", str(config)], stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            wait_for(port)
            connection = await client.connect(f"nats://127.0.0.1:{port}")
            stream = connection.jetstream()
            await stream.add_stream(name="S", subjects=["s"])
            how = "sync always" if sync else "this server cannot sync always: it answers before"
            publish = partial(stream.publish, "s", timeout=60)
            found = [f"NATS JetStream, {how}, {await measured(publish, size)}" for size in (100, 1024)]
            await connection.close()
        except RuntimeError:
            continue  # it does not know the option
        else:
            return found
        finally:
            server.terminate()
            server.wait()
    return ["NATS JetStream: the server did not start"]


class Redis:
    """A connection with as much of the protocol as is needed: commands, and replies in their order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: list[asyncio.Future[bytes]] = []
        self._task = asyncio.ensure_future(self._read())

    async def add(self, payload: bytes) -> bytes:
        """Appends a message to a stream: its identifier."""
        parts = (b"XADD", b"s", b"*", b"m", payload)
        self._writer.write(b"*5\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    async def _read(self) -> None:
        done = 0
        while line := await self._reader.readline():
            if line.startswith(b"$"):
                line = await self._reader.readline()
            self._waiting[done].set_result(line)
            done += 1

    def close(self) -> None:
        """Ends it."""
        self._task.cancel()
        self._writer.close()


async def redis(folder: Path) -> list[str]:
    """Redis Streams."""
    program = shutil.which("redis-server")
    if program is None:
        return ["Redis Streams: not installed (redis-server)"]
    port, store = free_port(), folder / "redis"
    store.mkdir()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(store), "--save", ""]
    command = [program, *options, "--appendonly", "yes", "--appendfsync", "always"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603
    try:
        wait_for(port)
        connection = Redis(*await asyncio.open_connection("127.0.0.1", port))
        found = [f"Redis Streams, appendfsync always, {await measured(connection.add, size)}" for size in (100, 1024)]
        connection.close()
        return found
    finally:
        server.terminate()
        server.wait()


def pysyncobj(folder: Path) -> list[str]:
    """PySyncObj, one message at a time: its calls wait in threads."""
    if find_spec("pysyncobj") is None:
        return ["PySyncObj: not installed"]
    from pysyncobj import SyncObj, SyncObjConf, replicated_sync  # noqa: PLC0415 (where it is installed)

    class Appended(SyncObj):  # type: ignore[misc] # it has no types
        def __init__(self, own: str, others: list[str], journal: Path) -> None:
            super().__init__(own, others, SyncObjConf(journalFile=str(journal), dynamicMembershipChange=False))
            self._count = 0

        @replicated_sync  # type: ignore[untyped-decorator]
        def add(self, payload: bytes) -> int:
            self._count += len(payload)
            return self._count

    addresses = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    nodes: list[Any] = [
        Appended(own, [each for each in addresses if each != own], folder / f"journal{place}")
        for place, own in enumerate(addresses)
    ]
    until = time.monotonic() + _START
    while not nodes[0].isReady() and time.monotonic() < until:
        time.sleep(0.05)
    found = []
    for size in (100, 1024):
        payload, delays = os.urandom(size), []
        for _ in range(LONE):
            begun = time.perf_counter()
            nodes[0].add(payload)
            delays.append(time.perf_counter() - begun)
        median = statistics.median(delays) * 1e3
        found.append(f"PySyncObj, journals of three nodes, {size:>5} B: a lone message p50 {median:.1f} ms")
    for node in nodes:
        node.destroy()
    return found


def durable_logs(folder: Path) -> list[str]:
    """All that are installed."""
    return [*asyncio.run(nats(folder)), *asyncio.run(redis(folder)), *pysyncobj(folder)]
