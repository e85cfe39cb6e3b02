"""What logs cost a live group: three members in one process, with and without, at full speed and at a given load."""

import asyncio
import os
import secrets
import shutil
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import ordercast

MEMBERS = ("A", "B", "C")
_TURN = 0.002
"""Seconds between two times that a paced sender sends what is due."""


@dataclass
class Run:
    """Of one group: what was sent to all, or the medians of several runs."""

    cpu: float
    """Processor microseconds of a message and member, until all of it is on the disks."""
    others: float
    """Of these, those outside the event loop: the threads of logs."""
    rate: float
    """Messages a second, until the last member was delivered the last one."""
    written: float
    """The same, until the last one is on the last disk."""
    cores: float
    """Processors that were busy while messages were sent and delivered."""


async def group_of(folder: Path | None, order: str) -> list[ordercast.Group]:
    """Three members, with logs in this folder or without."""
    name = f"log-{os.getpid()}-{secrets.token_hex(4)}"
    joining = (
        ordercast.join(name, members=MEMBERS, name=each, order=order, log=None if folder is None else folder / each)
        for each in MEMBERS
    )
    return list(await asyncio.gather(*joining))


async def _burst(groups: list[ordercast.Group], payload: bytes, count: int, rate: float | None) -> None:
    """Returns when all members were delivered all. `rate`: messages a second of all together; None: full speed."""
    begun = time.perf_counter()

    async def take(group: ordercast.Group) -> None:
        left = count
        while left > 0:
            left -= len(await group.receive_batch())

    async def send(group: ordercast.Group) -> None:
        for number in range(count // len(groups)):
            if rate is not None:
                while number >= (time.perf_counter() - begun) * rate / len(groups):
                    await asyncio.sleep(_TURN)
            await group.send(payload)

    await asyncio.gather(*map(take, groups), *map(send, groups))


async def run(folder: Path | None, order: str, size: int, count: int, rate: float | None = None) -> Run:
    """One group, after some messages that are not measured."""
    groups, payload = await group_of(folder, order), bytes(size)
    await _burst(groups, payload, count // 30 * len(groups), None)
    begun, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
    await _burst(groups, payload, count, rate)
    delivered, busy = time.perf_counter() - begun, time.process_time() - cpu
    await asyncio.gather(*(group.close() for group in groups))  # which waits for the disks
    written, cpu, own = time.perf_counter() - begun, time.process_time() - cpu, time.thread_time() - own
    each = 1e6 / count / len(groups)
    return Run(cpu * each, (cpu - own) * each, count / delivered, count / written, busy / delivered)


def medians(runs: Iterable[Run]) -> Run:
    """Field by field."""
    found = list(runs)
    return Run(*(statistics.median(vars(each)[name] for each in found) for name in vars(found[0])))


def in_turns(folder: Path, order: str, size: int, count: int, turns: int, rate: float | None = None) -> tuple[Run, Run]:
    """Without and with logs, in turns: the medians."""
    count -= count % len(MEMBERS)
    found: dict[bool, list[Run]] = {False: [], True: []}
    for _ in range(turns):
        for logged in (False, True):
            found[logged].append(asyncio.run(run(folder / "live" if logged else None, order, size, count, rate)))
            if logged:
                shutil.rmtree(folder / "live")
    return medians(found[False]), medians(found[True])


def told(order: str, size: int, without: Run, with_logs: Run) -> str:
    """Both, and how they compare."""
    lines = []
    for name, one in (("without", without), ("with logs", with_logs)):
        lines.append(
            f"{order}, {size} B, {name:9}: {one.cpu:.2f} µs ({one.others:.2f} of it in threads of logs), "
            f"{one.rate:,.0f}/s delivered, {one.written:,.0f}/s on the disks, {one.cores:.2f} processors busy"
        )
    more = with_logs.cpu - without.cpu
    lines.append(f"{'':11}with logs: {more:+.2f} µs, {with_logs.rate / without.rate:.2f} of the throughput")
    return "\n".join(lines)
