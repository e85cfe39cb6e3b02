"""Replicated objects: commands and reads a second of a dictionary among three processes of this machine.

    python benchmarks/replicated.py                       three members; the first one calls
    python benchmarks/replicated.py --peer-python PYTHON  beside ReplDict of pysyncobj, which that Python has

Commands are `Dict.put` of 100 bytes: without waiting for each (until the last one is applied), by 64 tasks that await
each, and by one. Reads: what the member has, and linearizable ones by 64 tasks. Rates are those of the caller,
processor time is that of all three processes for each command or read. The load of the machine is printed: others that
work on it take their share.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import secrets
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from ordercast.replicated import Dict, Members, join

NAMES = ("A", "B", "C")
VALUE = "v" * 80
AT_ONCE = 200
PEER = Path(__file__).parent / "peers" / "pysyncobj_dict.py"
Mode = Callable[[Dict[str], Members, float], Awaitable[int]]


async def put(store: Dict[str], group: Members, end: float) -> int:
    """Without waiting."""
    count = 0
    while time.perf_counter() < end:
        for number in range(AT_ONCE):
            last = store.put(f"key{number % 50}", VALUE)
        count += AT_ONCE
        await asyncio.sleep(0)
        await group.drain()
    await last
    return count


async def _by_tasks(one: Callable[[], Awaitable[object]], end: float, tasks: int) -> int:
    count = 0

    async def work() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await one()
            count += 1

    await asyncio.gather(*(work() for _ in range(tasks)))
    return count


async def put_awaited(store: Dict[str], _: Members, end: float) -> int:
    """64 tasks."""
    return await _by_tasks(lambda: store.put("key", VALUE), end, 64)


async def put_one(store: Dict[str], _: Members, end: float) -> int:
    """One task."""
    return await _by_tasks(lambda: store.put("key", VALUE), end, 1)


async def read(store: Dict[str], _: Members, end: float) -> int:
    """What the member has."""
    count = 0
    while time.perf_counter() < end:
        for _number in range(1000):
            store.get("key")
        count += 1000
    return count


async def read_fresh(store: Dict[str], _: Members, end: float) -> int:
    """64 tasks, linearizable."""
    return await _by_tasks(lambda: store.get("key", fresh=True), end, 64)


MODES: dict[str, Mode] = {
    "put": put,
    "put, 64 await": put_awaited,
    "put, 1 awaits": put_one,
    "local read": read,
    "fresh read, 64": read_fresh,
}


async def member(name: str, group: str, mode: str, seconds: float) -> tuple[float, float, int]:
    """Rate (of the caller), processor time, and how many calls."""
    store: Dict[str] = Dict()
    async with join(group, store, members=NAMES, name=name, check_interval=0) as members:
        await store.put(f"ready {name}", "")
        await store.until(lambda: len(store.items("ready ")) == len(NAMES))
        used, begun, count = time.process_time(), time.perf_counter(), 0
        if name == NAMES[0]:
            count = await MODES[mode](store, members, begun + seconds)
            rate = count / (time.perf_counter() - begun)
            await store.put("end", "")
        else:
            await store.until(lambda: "end" in store)
            rate = 0.0
        used = time.process_time() - used
        await store.put(f"done {name}", "")
        await store.until(lambda: len(store.items("done ")) == len(NAMES))
    return rate, used, count


def process(name: str, group: str, mode: str, seconds: float, found: "Queue[tuple[float, float, int]]") -> None:
    """A member in a process of its own."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        from uvloop import new_event_loop as factory  # noqa: PLC0415 (if it is installed)
    with asyncio.Runner(loop_factory=factory) as runner:
        found.put(runner.run(member(name, group, mode, seconds)))


def measure(mode: str, seconds: float) -> tuple[float, float]:
    """Calls a second, and microseconds of processor time of all for each."""
    context = multiprocessing.get_context("spawn")
    found: Queue[tuple[float, float, int]] = context.Queue()
    group = f"bench-{secrets.token_hex(4)}"
    processes = [context.Process(target=process, args=(name, group, mode, seconds, found)) for name in NAMES]
    for each in processes:
        each.start()
    results = [found.get(timeout=60 + 10 * seconds) for _ in NAMES]
    for each in processes:
        each.join(30)
    calls = sum(count for _, _, count in results)
    return max(rate for rate, _, _ in results), 1e6 * sum(used for _, used, _ in results) / max(1, calls)


def peer(python: str, seconds: float) -> dict[str, float]:
    """The figures of pysyncobj, or nothing."""
    line = [python, str(PEER), "--seconds", str(seconds)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603 (our own)
    if done.returncode:
        print(f"pysyncobj was not measured: {done.stderr.strip().splitlines()[-1:]}")
        return {}
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Prints a table."""
    description: Any = __doc__
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--only", choices=list(MODES), help="one of them")
    parser.add_argument("--peer-python", help="a Python that has pysyncobj")
    asked = parser.parse_args()
    others = peer(asked.peer_python, asked.seconds) if asked.peer_python else {}
    print(f"{'':18}{'a second':>12}{'µs of processor':>18}{'pysyncobj':>12}    load {os.getloadavg()[0]:.1f}")
    for mode in [asked.only] if asked.only else MODES:
        rate, used = measure(mode, asked.seconds)
        other = f"{others[mode]:12,.0f}" if mode in others else f"{'–':>12}"
        print(f"{mode:18}{rate:12,.0f}{used:18.1f}{other}    load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
