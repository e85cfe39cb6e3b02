"""How late a lone message is delivered, with a log and without: three members in three processes, as in reality.

One sends, another answers what it is delivered, and the first measures until it is delivered the answer: two messages,
one after the other. The logs of several members in one process would wait for each other.
"""

import asyncio
import json
import os
import secrets
import statistics
import time
from pathlib import Path

import ordercast

MEMBERS = ("A", "B", "C")
PAUSE = 0.02
"""Seconds between two of them: more than a disk takes to sync."""
_END = b"end"


async def _member(group: str, name: str, order: str, folder: Path | None, count: int) -> list[float]:
    log = None if folder is None else folder / name
    joined = await ordercast.join(group, members=MEMBERS, name=name, order=order, log=log, timeout=30)
    delays: list[float] = []
    if name == MEMBERS[0]:
        for _ in range(count):
            await asyncio.sleep(PAUSE)
            begun = time.perf_counter()
            await joined.send(bytes(100))
            while (await joined.receive()).sender != MEMBERS[1]:
                pass
            delays.append(time.perf_counter() - begun)
        await joined.send(_END)
    async for message in joined:
        if message.payload == _END:
            break
        if name == MEMBERS[1] and message.sender == MEMBERS[0]:
            await joined.send(bytes(100))
    await joined.close()
    return delays


def round_trip(order: str, folder: Path | None, count: int = 200) -> float:
    """The median in milliseconds."""
    group, processes = f"trips-{secrets.token_hex(4)}", []
    reading, writing = os.pipe()
    for name in MEMBERS:
        process = os.fork()
        if not process:
            status = 1
            try:
                delays = asyncio.run(_member(group, name, order, folder, count))
                if delays:
                    os.write(writing, json.dumps(statistics.median(delays) * 1e3).encode())
                status = 0
            finally:
                os._exit(status)
        processes.append(process)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        found = told.read()
    statuses = [os.waitpid(process, 0)[1] for process in processes]
    if any(statuses):
        raise RuntimeError("a member did not end well")
    return float(json.loads(found))


def round_trips(folder: Path, order: str, turns: int = 3) -> str:
    """Without and with logs, in turns."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(turns):
        for logged in (False, True):
            place = folder / f"trips-{order}-{turn}" if logged else None
            found[logged].append(round_trip(order, place))
    without, logged_ones = (", ".join(f"{each:.2f}" for each in found[logged]) for logged in (False, True))
    return f"{order}, 100 B there and back, p50 of {turns} runs: {without} ms without, {logged_ones} ms with logs"
