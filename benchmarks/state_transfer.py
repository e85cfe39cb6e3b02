"""State transfer: how fast a member that joins gets the state, and what that costs the group.

    python benchmarks/state_transfer.py                  a transfer alone, then 100 MB beside the traffic of a group
    python benchmarks/state_transfer.py --size 1024      megabytes of the first

All processes share the cores of this machine. Alone: one donor and one joiner, with a key, in a process each; time is
from the joiner's first connection to the end of its `load`, and processor time is that of each process meanwhile. The
longest delay is that of a timer of 2 ms in their event loops. Beside a group: three members, of which the first sends
as fast as the group takes it, the third gives its state, and one more joins. Messages are counted at the second member:
before the join, while the state is transferred, and after it, when the group has the same members. The slowdown is that
between the last two: in messages a second, which is what users see and what other programs of the machine disturb, and
in messages for a second of processor time of the three members, which those disturb little.
"""

import argparse
import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ordercast
from ordercast.live.state_transfer.connection import Request
from ordercast.live.state_transfer.donor import Donor
from ordercast.live.state_transfer.joiner import Source, StateLoader
from ordercast.live.transport.addresses import Address
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.wire.keys import GroupKeys, keys_from_file, new_key

PART = 1 << 20
ADDRESS = Address("127.0.0.1", 31_337)
VIEW = GroupView(1, (Incarnation("A", 1, "-"), Incarnation("D", 2, "-")), (0, 1), b"measured", 2)
SECONDS = 3.0
"""Of each measurement of the group's rate."""


class Blob:
    """A state of so many bytes."""

    def __init__(self, size: int) -> None:
        self.size, self.part, self.loaded = size, os.urandom(PART), 0

    def save(self) -> Iterator[bytes]:
        """The same part again and again."""
        for start in range(0, self.size, PART):
            yield self.part[: self.size - start]

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        """Counts."""
        async for part in parts:
            self.loaded += len(part)


async def longest_delay(found: list[float]) -> None:
    """Appends the delays of a timer."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.002)
        found.append(time.perf_counter() - begun - 0.002)


# --- a transfer alone ---


async def give(size: int, keys: GroupKeys | None, told: Connection) -> None:
    """The donor."""
    delays: list[float] = []
    measuring = asyncio.create_task(longest_delay(delays))
    donor = Donor(
        *(Blob(size), ADDRESS, "measured"),
        name="A",
        keys=lambda: keys,
        failure_timeout=3,
        state_timeout=600,
        is_busy=lambda: False,
    )
    donor.offer(VIEW, VIEW.members[1:])
    donor.save(VIEW.number)
    told.send("ready")
    begun = time.process_time()
    while donor.waiting:
        await asyncio.sleep(0.01)
    told.send({"cpu": time.process_time() - begun, "delay": max(delays)})
    measuring.cancel()


async def take(size: int, keys: GroupKeys | None, told: Connection) -> None:
    """The joiner."""
    delays: list[float] = []
    measuring = asyncio.create_task(longest_delay(delays))
    loader = StateLoader(
        *(Blob(size), Request(VIEW.number, VIEW.tag, "D", 2), [Source("A", 0, ADDRESS, lambda: False)]),
        group="measured",
        keys=keys,
        failure_timeout=3,
        state_timeout=600,
    )
    begun, used = time.perf_counter(), time.process_time()
    loaded = await loader.load()
    seconds = time.perf_counter() - begun
    told.send({"rate": loaded.size / seconds, "cpu": time.process_time() - used, "delay": max(delays)})
    measuring.cancel()


def run(role: Any, *arguments: Any) -> None:
    """In a process of its own."""
    asyncio.run(role(*arguments))


def alone(size: int, keys: GroupKeys | None) -> tuple[dict[str, float], dict[str, float]]:
    """One transfer: what the donor and the joiner measured."""
    (ours, donors), (mine, joiners) = multiprocessing.Pipe(), multiprocessing.Pipe()
    donor = multiprocessing.Process(target=run, args=(give, size, keys, donors))
    donor.start()
    ours.recv()
    joiner = multiprocessing.Process(target=run, args=(take, size, keys, joiners))
    joiner.start()
    found = ours.recv(), mine.recv()
    donor.join()
    joiner.join()
    return found


# --- beside a group ---


async def member(name: str, order: str, key: Path, size: int, told: Connection) -> None:
    """A, B or C: the first sends, the second counts."""
    settings = ordercast.Settings(order=order)
    names = ["A", "B", "C"]
    group = await ordercast.join("measured", members=names, name=name, settings=settings, key=key, state=Blob(size))
    sending = asyncio.create_task(send(group)) if name == "A" else None
    counted = [0]
    reading = asyncio.create_task(read(group, counted))
    told.send("open")
    loop = asyncio.get_running_loop()
    while (asked := await loop.run_in_executor(None, told.recv)) != "end":
        told.send({"count": counted[0], "now": time.perf_counter(), "cpu": time.process_time(), "asked": asked})
    for task in (sending, reading):
        if task is not None:
            task.cancel()
    await group.abort("measured")


async def send(group: ordercast.Group) -> None:
    """As fast as the group takes it."""
    payload = bytes(100)
    while True:
        for _ in range(32):
            await group.send(payload)
        await asyncio.sleep(0)


async def read(group: ordercast.Group, counted: list[int]) -> None:
    """Counts messages."""
    async for batch in group.batches():
        counted[0] += len(batch)


async def joining(key: Path, size: int, told: Connection) -> None:
    """D."""
    state = Blob(size)
    begun = time.perf_counter()
    group = await ordercast.join("measured", contacts="local", name="D", key=key, state=state)
    told.send({"seconds": time.perf_counter() - begun, "loaded": state.loaded, "cpu": time.process_time()})
    reading = asyncio.create_task(read(group, [0]))
    await asyncio.get_running_loop().run_in_executor(None, told.recv)
    reading.cancel()


def ask(pipes: dict[str, Connection]) -> dict[str, float]:
    """What the second member has counted, when, and the processor time that all members have used until then."""
    for pipe in pipes.values():
        pipe.send("count")
    found: dict[str, dict[str, float]] = {name: pipe.recv() for name, pipe in pipes.items()}
    return {**found["B"], "cpu": sum(each["cpu"] for each in found.values())}


def rate(first: dict[str, float], last: dict[str, float], by: str = "now") -> float:
    """Messages in a second, or for one of processor time."""
    return (last["count"] - first["count"]) / (last[by] - first[by])


def beside_group(order: str, size: int, key: Path) -> dict[str, float]:
    """Rates before, during and after the transfer of a state."""
    pipes, processes = {}, []
    for name in "ABC":
        pipes[name], theirs = multiprocessing.Pipe()
        processes.append(multiprocessing.Process(target=run, args=(member, name, order, key, size, theirs)))
        processes[-1].start()
    for pipe in pipes.values():
        pipe.recv()
    time.sleep(1)
    begun = ask(pipes)
    time.sleep(SECONDS)
    before = ask(pipes)
    ours, theirs = multiprocessing.Pipe()
    processes.append(multiprocessing.Process(target=run, args=(joining, key, size, theirs)))
    processes[-1].start()
    joined: dict[str, float] = ours.recv()
    during = ask(pipes)
    time.sleep(0.5)
    later = ask(pipes)
    time.sleep(SECONDS)
    after = ask(pipes)
    for pipe in (*pipes.values(), ours):
        pipe.send("end")
    for process in processes:
        process.join(10)
        process.kill()
    return {
        "before": rate(begun, before),
        "during": rate(before, during),
        "after": rate(later, after),
        "dearer": 1 - rate(before, during, "cpu") / rate(later, after, "cpu"),
        "seconds": joined["seconds"],
        "joiner_cpu": joined["cpu"],
        "loaded": joined["loaded"],
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512, help="megabytes of a transfer alone")
    parser.add_argument("--beside", type=int, default=100, help="megabytes of a transfer beside a group; 0: none")
    parser.add_argument("--orders", default="partial,total,priority,sequenced")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_text(new_key() + "\n")
        key.chmod(0o600)
        for keys in (keys_from_file(key), None):
            found = [alone(options.size * 1_000_000, keys) for _ in range(options.repeat)]
            donor, joiner = max(found, key=lambda each: each[1]["rate"])
            print(
                f"{options.size} MB alone, {'with a key' if keys else 'plain'}: {joiner['rate'] / 1e6:.0f} MB/s "
                f"(worst {min(each['rate'] for _, each in found) / 1e6:.0f}); processor: donor {donor['cpu']:.2f} s, "
                f"joiner {joiner['cpu']:.2f} s; longest delay: {max(donor['delay'], joiner['delay']) * 1e3:.1f} ms"
            )
        for order in options.orders.split(",") if options.beside else ():
            runs = [beside_group(order, options.beside * 1_000_000, key) for _ in range(options.repeat)]
            slower = statistics.median(1 - each["during"] / each["after"] for each in runs)
            typical = {name: statistics.median(each[name] for each in runs) for name in runs[0]}
            print(
                f"{options.beside} MB beside {order}: joined after {typical['seconds']:.2f} s; messages a second: "
                f"before {typical['before']:.0f}, meanwhile {typical['during']:.0f}, after {typical['after']:.0f}; "
                f"slowdown {slower:.0%}, by processor time {typical['dearer']:.0%}; "
                f"joiner's processor time {typical['joiner_cpu']:.2f} s"
            )


if __name__ == "__main__":
    main()
