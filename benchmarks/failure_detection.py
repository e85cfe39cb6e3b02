"""What an idle group costs, and how fast it notices that a member is gone.

    python benchmarks/failure_detection.py [--members 64] [--processes 8] [--seconds 10] [--order partial]

The members are spread over some processes on loopback, with the default failure timeout. Prints the datagrams a second
of the whole group, the processor time of a member, and how long after the death of one member the first other one
suspected it.
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from ordercast import Group, GroupClosed, Settings, join
from ordercast.live.settings import Order

FAILURE_TIMEOUT = 3.0


def tell(line: str) -> None:
    """At once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Suspicions(logging.Handler):
    """Tells when a member is suspected."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line for each suspicion."""
        if "suspects" in record.msg:
            tell(json.dumps({"suspected": time.monotonic()}))


async def take_part(group: str, order: str, names: list[str], mine: list[str]) -> None:
    """Some members of the group; does what standard input says."""
    settings = Settings.local(order=order, failure_timeout=FAILURE_TIMEOUT)
    groups: list[Group] = await asyncio.gather(
        *(join(group, name=name, members=names, settings=settings, timeout=120) for name in mine)
    )
    tell(json.dumps({"open": len(groups)}))
    loop = asyncio.get_running_loop()
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        if line == "measure":
            sent = sum(each.stats().datagrams_sent for each in groups)
            tell(json.dumps({"sent": sent, "cpu": time.process_time(), "at": time.monotonic()}))
        elif line == "crash":
            member = groups[-1]._member  # noqa: SLF001 (nobody else can do this)
            member.ending.end(GroupClosed("it crashed"))
            member.ending.disconnect()
            tell(json.dumps({"crashed": time.monotonic()}))
    os._exit(0)


class Process:
    """Some of the members."""

    def __init__(self, arguments: list[str]) -> None:
        self.child = subprocess.Popen(  # noqa: S603
            [sys.executable, __file__, "--part", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str) -> dict[str, float]:
        """An answer to one line."""
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.read()

    def read(self) -> dict[str, float]:
        """The next line."""
        assert self.child.stdout is not None
        found: dict[str, float] = json.loads(self.child.stdout.readline())
        return found


def main() -> None:
    """Starts the processes, measures, lets one member crash."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=64)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--order", choices=[str(order) for order in Order], default="partial")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    names = [f"M{place:02}" for place in range(asked.members)]
    if asked.part:
        logging.getLogger("ordercast").addHandler(Suspicions())
        group, mine = asked.part
        asyncio.run(take_part(group, asked.order, names, mine.split(",")))
        return
    tell(
        f"{asked.members} members in {asked.processes} processes on loopback, order {asked.order}, failure timeout "
        f"{FAILURE_TIMEOUT} s, {asked.seconds:g} s; Python {platform.python_version()}, {os.cpu_count()} cores, load "
        f"average {os.getloadavg()[0]:.1f}"
    )
    group = f"idle {os.getpid()}"
    common = ["--members", str(asked.members), "--order", asked.order]
    parts = [names[place :: asked.processes] for place in range(asked.processes)]
    processes = [Process([group, ",".join(part), *common]) for part in parts]
    try:
        for process in processes:
            process.read()
        measure(processes, asked.members, asked.seconds)
    finally:
        for process in processes:
            process.child.kill()
            process.child.wait()


def measure(processes: list[Process], members: int, seconds: float) -> None:
    """In a group that is open."""
    time.sleep(2)
    before = [process.ask("measure") for process in processes]
    time.sleep(seconds)
    after = [process.ask("measure") for process in processes]
    pairs = list(zip(before, after, strict=True))
    rate = sum((last["sent"] - first["sent"]) / (last["at"] - first["at"]) for first, last in pairs)
    cpu = sum((last["cpu"] - first["cpu"]) / (last["at"] - first["at"]) for first, last in pairs) / members
    tell(f"{rate:,.0f} datagrams a second in all, {rate / members:.1f} of each member")
    tell(f"{100 * cpu:.2f} % of a core for each member")
    crashed = processes[-1].ask("crash")["crashed"]
    suspected = min(process.read()["suspected"] for process in processes_that_watch(processes, members))
    tell(f"a crash is noticed after {suspected - crashed:.2f} s")


def processes_that_watch(processes: list[Process], members: int) -> list[Process]:
    """Those of the members that watch the last one: the three places after it."""
    return [processes[place % len(processes)] for place in {0, 1, 3 if members > 5 else 2}]


if __name__ == "__main__":
    main()
