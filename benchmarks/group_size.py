"""What a message costs as a group grows: members in one process, every message to all, nothing lost.

    python benchmarks/group_size.py
    python benchmarks/group_size.py --sizes 2,4,8,16,32 --orders sequenced,total --messages 500

Each member sends as many messages of 64 bytes as `--messages` says, as fast as back-pressure lets it, and reads until
it has all of them. All members share one core, so the processor time says what the group costs in all; the time on
the clock is no better than that. `latency` is of single messages afterwards, from sending to delivery at the sender.
"""

import argparse
import asyncio
import os
import statistics
import time

from rich.console import Console
from rich.table import Table

import ordercast

PAYLOAD = bytes(64)
SINGLE = 20


async def member(name: str, names: list[str], order: str, messages: int) -> tuple[float, float, list[float]]:
    """Seconds on the clock and of the processor until it has everything; then how long single messages take."""
    group = f"size-{order}-{len(names)}-{os.getpid()}"
    async with ordercast.join(group, members=names, name=name, order=order) as joined:
        begun, worked = time.perf_counter(), time.process_time()

        async def send() -> None:
            for _ in range(messages):
                await joined.send(PAYLOAD)

        sending = asyncio.create_task(send())
        for _ in range(messages * len(names)):
            await joined.receive()
        await sending
        taken = time.perf_counter() - begun, time.process_time() - worked
        latencies = []
        if name == names[-1]:  # not the sequencer, nor the relay
            for _ in range(SINGLE):
                sent = time.perf_counter()
                await joined.send(PAYLOAD)
                await joined.receive()
                latencies.append(time.perf_counter() - sent)
        else:
            for _ in range(SINGLE):
                await joined.receive()
        return *taken, latencies


async def measured(order: str, size: int, messages: int) -> tuple[float, float, float]:
    """Messages a second, microseconds of processor time for a message, median latency in milliseconds."""
    names = [f"m{number}" for number in range(size)]
    found = await asyncio.gather(*(member(name, names, order, messages) for name in names))
    sent = messages * size
    seconds, worked = max(each[0] for each in found), max(each[1] for each in found)
    return sent / seconds, 1e6 * worked / sent, 1e3 * statistics.median(found[-1][2])


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2,3,4,8,16")
    parser.add_argument("--orders", default="sequenced,partial,total,priority")
    parser.add_argument("--messages", type=int, default=1000, help="by each member")
    asked = parser.parse_args()
    table = Table(title=f"{asked.messages} messages of 64 bytes by each member, to all, members in one process")
    for head in ("order", "members", "messages a second", "µs of processor a message", "latency, ms"):
        table.add_column(head, justify="left" if head == "order" else "right")
    for order in asked.orders.split(","):
        for size in map(int, asked.sizes.split(",")):
            rate, cost, latency = asyncio.run(measured(order, size, asked.messages))
            table.add_row(order, str(size), f"{rate:,.0f}", f"{cost:.1f}", f"{latency:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
