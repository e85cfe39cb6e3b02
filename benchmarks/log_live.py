"""What logs cost a live group: with and without, at full speed and at a given load, three members in three processes.

So are groups run: each member has an interpreter of its own, and a thread of its log that shares only that one's lock.
All of them share the processors of this machine, and its disk, if their folders are on one.
"""

import asyncio
import json
import multiprocessing
import os
import secrets
import shutil
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import ordercast

MEMBERS = ("A", "B", "C")
_TURN = 0.002
"""Seconds between two times that a paced sender sends what is due."""
_TOGETHER = 60.0
"""Seconds that members wait for each other."""
Folders = Sequence[Path] | None
"""One for each member; None: they have no logs."""


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
    datagrams: float
    """Sent by all members, for a thousand messages."""


@dataclass
class _Share:
    """What one member has measured."""

    begun: float
    delivered: float
    written: float
    busy: float
    """Processor seconds until all was delivered."""
    cpu: float
    own: float
    """Those of the event loop."""
    datagrams: int


async def group_of(folder: Path | None, order: str) -> list[ordercast.Group]:
    """Three members in this process, with logs in this folder or without."""
    name = f"log-{os.getpid()}-{secrets.token_hex(4)}"
    joining = (
        ordercast.join(name, members=MEMBERS, name=each, order=order, log=None if folder is None else folder / each)
        for each in MEMBERS
    )
    return list(await asyncio.gather(*joining))


async def _burst(group: ordercast.Group, payload: bytes, count: int, rate: float | None) -> None:
    """Sends a third of so many messages and returns when all were delivered here. `rate`: messages a second of all."""
    begun = time.perf_counter()

    async def take() -> None:
        left = count
        while left > 0:
            left -= len(await group.receive_batch())

    async def send() -> None:
        for number in range(count // len(MEMBERS)):
            if rate is not None:
                while number >= (time.perf_counter() - begun) * rate / len(MEMBERS):
                    await asyncio.sleep(_TURN)
            await group.send(payload)

    await asyncio.gather(take(), send())


async def _member(  # noqa: PLR0913, PLR0917 - what is measured
    group: str, name: str, order: str, folder: Path | None, ready: Barrier, size: int, count: int, rate: float | None
) -> _Share:
    joined = await ordercast.join(group, members=MEMBERS, name=name, order=order, log=folder, timeout=_TOGETHER)
    payload = bytes(size)
    await _burst(joined, payload, count // 30 * len(MEMBERS), None)
    await asyncio.sleep(0.2)
    ready.wait(_TOGETHER)
    begun, cpu, own, sent = time.monotonic(), time.process_time(), time.thread_time(), joined.stats().datagrams_sent
    await _burst(joined, payload, count, rate)
    delivered, busy, sent = time.monotonic(), time.process_time() - cpu, joined.stats().datagrams_sent - sent
    await joined.close()  # which waits for the disk
    return _Share(
        *(begun, delivered, time.monotonic(), busy, time.process_time() - cpu, time.thread_time() - own, sent)
    )


def in_processes(member: Callable[[str], dict[str, Any]]) -> list[dict[str, Any]]:
    """What the members find, each in a process of its own: those end in any case."""
    pipes = []
    for name in MEMBERS:
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            status = 1
            try:
                os.write(writing, json.dumps(member(name)).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        pipes.append((process, reading))
    found = []
    for process, reading in pipes:
        with os.fdopen(reading, "rb") as told:
            found.append(told.read())
        os.waitpid(process, 0)
    if not all(found):
        raise RuntimeError("a member did not end well")
    return [json.loads(each) for each in found]


def run(folders: Folders, order: str, size: int, count: int, rate: float | None = None) -> Run:
    """One group, after some messages that are not measured."""
    group, ready = f"log-{secrets.token_hex(4)}", multiprocessing.get_context("fork").Barrier(len(MEMBERS))

    def member(name: str) -> dict[str, Any]:
        folder = None if folders is None else folders[MEMBERS.index(name)] / name
        return asdict(asyncio.run(_member(group, name, order, folder, ready, size, count, rate)))

    shares = [_Share(**each) for each in in_processes(member)]
    begun, each = min(share.begun for share in shares), 1e6 / count / len(MEMBERS)
    delivered = max(share.delivered for share in shares) - begun
    cpu, own = sum(share.cpu for share in shares), sum(share.own for share in shares)
    return Run(
        *(cpu * each, (cpu - own) * each, count / delivered, count / (max(s.written for s in shares) - begun)),
        *(sum(share.busy for share in shares) / delivered, sum(share.datagrams for share in shares) / count * 1e3),
    )


def medians(runs: Iterable[Run]) -> Run:
    """Field by field."""
    found = list(runs)
    return Run(*(statistics.median(vars(each)[name] for each in found) for name in vars(found[0])))


def in_turns(
    folders: Sequence[Path], order: str, size: int, count: int, turns: int, rate: float | None = None
) -> tuple[Run, Run]:
    """Without and with logs, in turns: the medians. `folders`: one for each member, or one for all."""
    count -= count % len(MEMBERS)
    found: dict[bool, list[Run]] = {False: [], True: []}
    places = [folders[at % len(folders)] / f"live-{secrets.token_hex(4)}" for at in range(len(MEMBERS))]
    for _ in range(turns):
        for logged in (False, True):
            found[logged].append(run(places if logged else None, order, size, count, rate))
            if logged:
                for place in places:
                    shutil.rmtree(place)
    return medians(found[False]), medians(found[True])


def told(order: str, size: int, without: Run, with_logs: Run) -> str:
    """Both, and how they compare."""
    lines = []
    for name, one in (("without", without), ("with logs", with_logs)):
        lines.append(
            f"{order}, {size} B, {name:9}: {one.cpu:.2f} µs ({one.others:.2f} of it in threads of logs), "
            f"{one.rate:,.0f}/s delivered, {one.written:,.0f}/s on the disks, {one.cores:.2f} processors busy, "
            f"{one.datagrams:.1f} datagrams for 1,000 messages"
        )
    more = with_logs.cpu - without.cpu
    lines.append(f"{'':11}with logs: {more:+.2f} µs, {with_logs.rate / without.rate:.2f} of the throughput")
    return "\n".join(lines)
