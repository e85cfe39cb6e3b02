"""Redis with two replicas, measured like `benchmarks/replicated.py`; needs the program redis-server.

The caller is one Python process that speaks the protocol of Redis itself, without a client library. What it awaits is
`SET` and `WAIT 1`: one replica has it, too, as one other member has at least with us. Without waiting, `SET` alone is
sent, 5,000 at most without an answer. Nothing is on disk, here as there. Redis replicates without agreement: what a
master has answered is lost if it fails and no replica had it; a read asks the master, which may have been replaced.
"""

import argparse
import asyncio
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack

VALUE = b"v" * 80
SET = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$80\r\n" + VALUE + b"\r\n"
WAIT = b"*3\r\n$4\r\nWAIT\r\n$1\r\n1\r\n$4\r\n5000\r\n"
GET = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
AT_ONCE, IN_FLIGHT = 200, 5_000
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def free_port() -> int:
    """One that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


async def put(port: int, end: float) -> int:
    """Without waiting."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = answered = 0
    while time.perf_counter() < end or answered < sent:
        if time.perf_counter() < end and sent - answered < IN_FLIGHT:
            writer.write(SET * AT_ONCE)
            sent += AT_ONCE
            await asyncio.sleep(0)
        else:
            answered += (await reader.read(1 << 16)).count(b"\n")
    writer.close()
    return answered


async def _by_connections(port: int, end: float, count: int, one: Callable[[Connection], Awaitable[object]]) -> int:
    done = 0

    async def work() -> None:
        nonlocal done
        connection = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            await one(connection)
            done += 1
        connection[1].close()

    await asyncio.gather(*(work() for _ in range(count)))
    return done


async def _put_safely(connection: Connection) -> None:
    reader, writer = connection
    writer.write(SET + WAIT)
    await reader.readline()
    assert await reader.readline() != b":0\r\n", "no replica has it"


async def _read(connection: Connection) -> None:
    reader, writer = connection
    writer.write(GET)
    await reader.readexactly(len(b"$80\r\n") + len(VALUE) + 2)


MODES: dict[str, Callable[[int, float], Awaitable[int]]] = {
    "put": put,
    "put, 64 await": lambda port, end: _by_connections(port, end, 64, _put_safely),
    "put, 1 awaits": lambda port, end: _by_connections(port, end, 1, _put_safely),
    "fresh read, 64": lambda port, end: _by_connections(port, end, 64, _read),
}


def servers(stack: ExitStack) -> int:
    """A master and two replicas; the port of the master."""
    folder, master = stack.enter_context(tempfile.TemporaryDirectory()), free_port()
    for port in (master, free_port(), free_port()):
        line = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        line += [] if port == master else ["--replicaof", "127.0.0.1", str(master)]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.terminate)
    return master


async def measure(seconds: float) -> dict[str, float]:
    """Calls a second, by mode."""
    found = {}
    with ExitStack() as stack:
        port = servers(stack)
        for _ in range(100):
            await asyncio.sleep(0.1)
            try:
                await _put_safely(await asyncio.open_connection("127.0.0.1", port))
            except (OSError, AssertionError):
                continue
            break
        for mode, run in MODES.items():
            begun = time.perf_counter()
            found[mode] = await run(port, begun + seconds) / (time.perf_counter() - begun)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    print(json.dumps(asyncio.run(measure(parser.parse_args().seconds))))
