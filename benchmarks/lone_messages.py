"""How late a lone message is delivered, with a log and without: three members in three processes, as in reality.

One sends, with a pause that is longer than a sync, and the time in the message; the others measure when they are
delivered it, by the clock of the machine. The logs of several members in one process would wait for each other.
"""

import asyncio
import secrets
import statistics
import struct
import time
from pathlib import Path

from log_live import MEMBERS, in_processes

import ordercast

PAUSE = 0.02
"""Seconds between two of them: more than a disk takes to sync."""
_TIME = struct.Struct("<d")
_SIZE = 100


async def _member(group: str, name: str, order: str, folder: Path | None, count: int) -> list[float]:
    log = None if folder is None else folder / name
    joined = await ordercast.join(group, members=MEMBERS, name=name, order=order, log=log, timeout=30)

    async def send() -> None:
        for _ in range(count):
            await asyncio.sleep(PAUSE)
            await joined.send(_TIME.pack(time.monotonic()).ljust(_SIZE))

    sending = asyncio.create_task(send()) if name == MEMBERS[0] else None
    delays = []
    for _ in range(count):
        [sent] = _TIME.unpack_from((await joined.receive()).payload)
        delays.append(time.monotonic() - sent)
    if sending is not None:
        await sending
    await joined.close()
    return delays


def lone_message(order: str, folder: Path | None, count: int = 200) -> list[float]:
    """The medians of the members, in milliseconds."""
    group = f"lone-{secrets.token_hex(4)}"

    def member(name: str) -> dict[str, float]:
        return {"median": statistics.median(asyncio.run(_member(group, name, order, folder, count))) * 1e3}

    return [each["median"] for each in in_processes(member)]


def lone_messages(folder: Path, order: str, turns: int = 3) -> str:
    """Without and with logs, in turns: the medians of the turns, for each member."""
    found: dict[bool, list[list[float]]] = {False: [], True: []}
    for turn in range(turns):
        for logged in (False, True):
            place = folder / f"alone-{order}-{turn}" if logged else None
            found[logged].append(lone_message(order, place))
    shown = {
        logged: ", ".join(f"{statistics.median(each):.2f}" for each in zip(*runs, strict=True))
        for logged, runs in found.items()
    }
    return (
        f"{order}, a lone message of {_SIZE} B is at {', '.join(MEMBERS)} after p50 {shown[False]} ms without, "
        f"{shown[True]} ms with logs"
    )
