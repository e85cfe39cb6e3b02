"""What a message costs on its way, in processor time and in bytecode instructions, here and in another tree.

    python benchmarks/data_path.py                              this tree
    python benchmarks/data_path.py --against /tmp/before        beside another checkout of the project, alternating
    python benchmarks/data_path.py --sender C --mtu 1400        by one that is neither sequencer nor relay, in links

Three members in one process and one event loop, over sockets of this machine; one sends as fast as the group takes it,
all receive. Nothing is encrypted, since older trees have no key of the user's own. Instructions are those of the
project's own functions, counted by the interpreter: the same in each run but for how many messages share a packet,
however busy the machine is. What a machine does when a timer fires is not counted: while instructions are counted all
takes some twenty times as long, so that as many more timers fire for a message. Processor time is user and system time
of the process, the best of all runs; the two trees take turns, run by run. Bytes are those at the sockets of all.
"""

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent.parent
MEMBERS = ["A", "B", "C"]


class Instructions:
    """Counts the instructions of the functions below a folder, but not what a machine does when a timer fires."""

    def __init__(self, folder: str) -> None:
        self.folder, self.count = folder, 0
        self.in_timer = False

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:
        del event, argument
        if self.in_timer or not frame.f_code.co_filename.startswith(self.folder):
            return None
        if frame.f_code.co_qualname == "Host._fire":
            self.in_timer = True
            return self._timer
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._one

    def _timer(self, frame: FrameType, event: str, argument: object) -> Any:
        del frame, argument
        self.in_timer = event != "return"
        return self._timer

    def _one(self, frame: FrameType, event: str, argument: object) -> Any:
        del frame, argument
        self.count += event == "opcode"
        return self._one

    def start(self) -> None:
        """From now on."""
        sys.settrace(self._called)

    def stop(self) -> None:
        """No more."""
        sys.settrace(None)


async def measured(  # noqa: PLR0913 (what a run is)
    tree: Path, order: str, size: int, count: int, what: str, *, sender: str, mtu: int
) -> Counter[str]:
    """One run, with the code of that tree: the sums of all messages. `mtu`: bytes of a packet; 0: no links."""
    sys.path.insert(0, str(tree / "src"))
    from ordercast import Settings, join  # noqa: PLC0415 (of that tree)

    settings = Settings(order=order, failure_timeout=60, mtu=mtu or None)
    name = f"measured {os.getpid()}"
    groups = await asyncio.gather(
        *(join(name, name=each, members=MEMBERS, settings=settings, insecure=True) for each in MEMBERS)
    )
    payload = bytes(size)

    async def receive(group: Any, messages: int) -> None:
        for _ in range(messages):
            await group.receive()

    async def burst(messages: int) -> None:
        receiving = [asyncio.create_task(receive(group, messages)) for group in groups]
        for _ in range(messages):
            await groups[MEMBERS.index(sender)].send(payload)
        await asyncio.gather(*receiving)

    await burst(count // 4)
    gc.collect()
    gc.disable()
    found: Counter[str] = Counter(messages=count)
    counter = Instructions(str(tree / "src" / "ordercast"))
    before, used = [group.stats() for group in groups], time.process_time_ns()
    if what == "instructions":
        counter.start()
    await burst(count)
    counter.stop()
    found["nanoseconds"] = time.process_time_ns() - used
    after = [group.stats() for group in groups]
    found["datagrams"] = sum(now.datagrams_sent - then.datagrams_sent for then, now in zip(before, after, strict=True))
    found["bytes"] = sum(now.bytes_sent - then.bytes_sent for then, now in zip(before, after, strict=True))
    found["instructions"] = counter.count
    await asyncio.gather(*(group.close() for group in groups))
    return found


def run(tree: Path, order: str, size: int, count: int, what: str, asked: argparse.Namespace) -> dict[str, float]:
    """In a process of its own: per message."""
    words = [sys.executable, __file__, "--one", str(tree), order, str(size), str(count), what]
    words += ["--sender", asked.sender, "--mtu", str(asked.mtu)]
    ended = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)  # noqa: S603 (ourselves)
    sums = json.loads(ended.stdout)
    return {name: value / sums["messages"] for name, value in sums.items()}


def main() -> None:
    """Prints a row for each order and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--orders", default="partial,total,priority,sequenced")
    parser.add_argument("--sizes", default="64,8192", help="bytes of a message")
    parser.add_argument("--times", type=int, default=8, help="runs of each")
    parser.add_argument("--sender", choices=MEMBERS, default=MEMBERS[0])
    parser.add_argument("--mtu", type=int, default=0, help="bytes of a packet of links; 0: datagrams are not cut")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        tree, order, size, count, what = asked.one
        found = measured(Path(tree), order, int(size), int(count), what, sender=asked.sender, mtu=asked.mtu)
        sys.stdout.write(json.dumps(asyncio.run(found)))
        return
    trees = [HERE] if asked.against is None else [asked.against.resolve(), HERE]
    sys.stdout.write(f"{' beside '.join(map(str, reversed(trees)))}; load {os.getloadavg()[0]:.1f}\n")
    sys.stdout.write("| order | bytes | instructions a message | µs of processor time | bytes at the sockets |\n")
    sys.stdout.write("|---|---|---|---|---|\n")
    for order in asked.orders.split(","):
        for size in map(int, asked.sizes.split(",")):
            count = max(500, min(20_000, 8_000_000 // size))
            counted: list[list[float]] = [[] for _ in trees]
            used: list[list[float]] = [[] for _ in trees]
            sent: list[list[float]] = [[] for _ in trees]
            for turn in range(asked.times):
                for tree, instructions, seconds, octets in zip(trees, counted, used, sent, strict=True):
                    if turn < 3:
                        row = run(tree, order, size, count // 5, "instructions", asked)
                        instructions.append(row["instructions"])
                    row = run(tree, order, size, count, "time", asked)
                    seconds.append(row["nanoseconds"] / 1000)
                    octets.append(row["bytes"])
            kinds = (counted, 0), (used, 2), (sent, 0)
            cells = [_beside([min(each) for each in kind], digits) for kind, digits in kinds]
            sys.stdout.write(f"| {order} | {size} | {' | '.join(cells)} |\n")
            sys.stdout.flush()


def _beside(best: list[float], digits: int) -> str:
    """What it is here, and what it was there."""
    if len(best) == 1:
        return f"{best[0]:.{digits}f}"
    there, here = best
    return f"{there:.{digits}f} → {here:.{digits}f} ({100 * (here / there - 1):+.1f} %)"


if __name__ == "__main__":
    main()
