"""Replicated objects: commands and reads a second of a dictionary among three processes of this machine.

    python benchmarks/replicated.py                       three members; the first one calls
    python benchmarks/replicated.py --peer-python PYTHON  beside ReplDict of pysyncobj, which that Python has
    python benchmarks/replicated.py --redis               beside Redis with two replicas: the program redis-server
    python benchmarks/replicated.py --etcd                beside three members of etcd: the program etcd

Commands are `Dict.put` of 100 bytes: without waiting for each (until the last one is applied), by 64 tasks that await
each, and by one. Reads: what the member has, and linearizable ones by 64 tasks. Rates are those of the caller, the best
of `--runs`; processor time, in microseconds for each command or read, that of the caller and of both others together.
`allows` is the rate at which two processors would be busy, or the caller's one: what this machine could do if nobody
else worked on it. The load is printed: on a machine that others work on, rates are those of what they leave.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any, NamedTuple

from ordercast.replicated import Dict, Member, join

NAMES = ("A", "B", "C")
VALUE = "v" * 80
AT_ONCE = 200
PEERS = Path(__file__).parent / "peers"
Mode = Callable[[Dict[str], Member, float], Awaitable[int]]


async def put(store: Dict[str], group: Member, end: float) -> int:
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


async def put_awaited(store: Dict[str], _: Member, end: float) -> int:
    """64 tasks."""
    return await _by_tasks(lambda: store.put("key", VALUE), end, 64)


async def put_one(store: Dict[str], _: Member, end: float) -> int:
    """One task."""
    return await _by_tasks(lambda: store.put("key", VALUE), end, 1)


async def read(store: Dict[str], _: Member, end: float) -> int:
    """What the member has."""
    count = 0
    while time.perf_counter() < end:
        for _number in range(1000):
            store.get("key")
        count += 1000
    return count


async def read_fresh(store: Dict[str], _: Member, end: float) -> int:
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


class Measured(NamedTuple):
    """What is known of a mode."""

    rate: float
    caller: float
    others: float

    @property
    def allows(self) -> float:
        """Calls a second on two processors of which nobody else uses any."""
        return 1e6 / max(self.caller, (self.caller + self.others) / 2)


def measure(mode: str, seconds: float) -> Measured:
    """Calls a second, and microseconds of processor time for each."""
    context = multiprocessing.get_context("spawn")
    found: Queue[tuple[float, float, int]] = context.Queue()
    group = f"bench-{secrets.token_hex(4)}"
    processes = [context.Process(target=process, args=(name, group, mode, seconds, found)) for name in NAMES]
    for each in processes:
        each.start()
    caller, *others = sorted((found.get(timeout=60 + 10 * seconds) for _ in NAMES), reverse=True)
    for each in processes:
        each.join(30)
    rate, used, calls = caller
    return Measured(rate, 1e6 * used / calls, 1e6 * sum(each[1] for each in others) / calls)


def peer(line: list[str], seconds: float) -> dict[str, float]:
    """The figures of another program, or nothing."""
    done = subprocess.run([*line, "--seconds", str(seconds)], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        print(f"{line[-1]} was not measured: {done.stderr.strip().splitlines()[-1:]}")
        return {}
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Prints a table."""
    description: Any = __doc__
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--runs", type=int, default=3, help="of each measurement, ours and those of peers")
    parser.add_argument("--only", choices=list(MODES), help="one of them")
    parser.add_argument("--peer-python", help="a Python that has pysyncobj")
    parser.add_argument("--etcd", action="store_true", help="measure etcd, too")
    parser.add_argument("--redis", action="store_true", help="measure redis-server, too")
    asked = parser.parse_args()
    lines = {"pysyncobj": [asked.peer_python, str(PEERS / "pysyncobj_dict.py")]} if asked.peer_python else {}
    if asked.etcd:
        lines["etcd"] = [sys.executable, str(PEERS / "etcd_dict.py")]
    if asked.redis:
        lines["redis"] = [sys.executable, str(PEERS / "redis_dict.py")]
    modes = [asked.only] if asked.only else list(MODES)
    ours = {mode: list[Measured]() for mode in modes}
    others = {name: dict.fromkeys(modes, 0.0) for name in lines}
    for _ in range(asked.runs):  # alternating, so that all have the same share of good and bad moments
        for name, line in lines.items():
            for mode, rate in peer(line, asked.seconds).items():
                others[name][mode] = max(others[name].get(mode, 0.0), rate)
        for mode in modes:
            ours[mode].append(measure(mode, asked.seconds))
    print(
        f"{'':16}{'a second':>11}{'caller':>9}{'others':>9}{'allows':>11}" + "".join(f"{name:>12}" for name in others)
    )
    for mode in modes:
        rate = max(each.rate for each in ours[mode])
        least = min(ours[mode], key=lambda each: each.caller + each.others)
        print(f"{mode:16}{rate:11,.0f}{least.caller:9.2f}{least.others:9.2f}{least.allows:11,.0f}", end="")
        print("".join(f"{found[mode]:12,.0f}" if found[mode] else f"{'–':>12}" for found in others.values()))
    print(f"load {os.getloadavg()[0]:.1f}, Python {sys.version.split()[0]}, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
