"""What it costs a live member to record: processor time of three members in one process, for each message sent.

Processor time, since what else the machine does matters less to it; the threads that write are part of it. Run it on a
quiet machine all the same:

    python benchmarks/recording.py
"""

import asyncio
import gc
import platform
import shutil
import tempfile
import time
from pathlib import Path
from typing import Literal

from command_line import parser_for

from ordercast import Group, join

MEMBERS = ("A", "B", "C")
MESSAGES = 30_000
SIZE = 100
REPEATS = 3
Detail = Literal["none", "deliveries", "all"]
DETAILS: tuple[Detail, ...] = ("none", "deliveries", "all")


async def send_all(order: str, record: Path | None, detail: Detail) -> None:
    """All members send as fast as the group takes it, and receive everything."""

    async def take_part(name: str) -> None:
        kept: Literal["deliveries", "all"] = "deliveries" if detail == "deliveries" else "all"
        joining = join("recording", members=MEMBERS, name=name, order=order, record=record, record_detail=kept)
        async with joining as group:
            await asyncio.gather(talk(group), listen(group))

    async def talk(group: Group) -> None:
        for _ in range(MESSAGES):
            await group.send(bytes(SIZE))

    async def listen(group: Group) -> None:
        heard = 0
        while heard < MESSAGES * len(MEMBERS):
            heard += len(await group.receive_batch())

    await asyncio.gather(*map(take_part, MEMBERS))


def measured(order: str, detail: Detail) -> float:
    """Microseconds of processor time for each message sent, at all members together; the best of several runs."""
    best = float("inf")
    for _ in range(REPEATS):
        folder = Path(tempfile.mkdtemp(prefix="ordercast-"))
        gc.collect()
        start = time.process_time()
        asyncio.run(send_all(order, None if detail == "none" else folder, detail))
        best = min(best, time.process_time() - start)
        shutil.rmtree(folder)
    return best / (MESSAGES * len(MEMBERS)) * 1e6


def main() -> None:
    """Prints a table."""
    parser_for(__doc__, "some minutes").parse_args()
    print(f"{platform.python_version()}, {MESSAGES:,} messages of {SIZE} bytes by each of {len(MEMBERS)} members")
    print(f"{'order':12}{'none':>10}{'deliveries':>12}{'all':>10}   microseconds for each message sent")
    for order in ("partial", "total", "sequenced"):
        figures = [measured(order, detail) for detail in DETAILS]
        print(f"{order:12}{figures[0]:10.1f}{figures[1]:12.1f}{figures[2]:10.1f}")


if __name__ == "__main__":
    main()
