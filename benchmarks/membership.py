"""How long views take: members that crash, leave and join while all send, on loopback.

    python benchmarks/membership.py [--members 5] [--times 10] [--order total]... [--no-peers]

All members are in this process, in one event loop, each with a socket of its own, and send a short message every few
milliseconds. For each order it prints, as the median and the worst of so many view changes: from the first suspicion to
the first message that any member delivers in the new view, and that all do; from the call of `leave` or `join` to the
same; how long nobody was delivered anything; and the datagrams that one view change takes in an idle group.

Then the same of JGroups (its FLUSH stack, with a transfer of state) and of Corosync (CPG), where they are installed. In
Corosync the daemons are members for good, and only their clients come and go, which is a message like any other: the
row that compares with our crash is that of a daemon, which includes its timeout.
"""

import argparse
import asyncio
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import itertools

from ordercast import Group, GroupAborted, GroupClosed, Message, Settings, View, join
from ordercast.live.settings import Order

FAILURE_TIMEOUT = 0.5
GAP = 0.005
"""Seconds between two messages of a member."""


PEERS = {
    "JGroups": ("jgroups_views.py", "/usr/share/java/jgroups.jar"),
    "Corosync": ("corosync_views.py", "/usr/sbin/corosync"),
}
"""Their drivers, and what they need."""
_AT_MOST = 10  # seconds; then something is wrong


class Suspicions(logging.Handler):
    """When members suspect each other."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Notes the time of a suspicion."""
        if "suspects" in record.msg:
            self.times.append(time.perf_counter())


class Talker:
    """One member, which sends and reads until it is gone."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.first: dict[int, float] = {}
        """When it was delivered the first message of each view."""
        self.deliveries: list[float] = []
        self.views: dict[int, float] = {}
        """When it was told each view."""
        self.talks = True
        self.tasks = [asyncio.create_task(task) for task in (self._send(), self._read())]

    async def _send(self) -> None:
        try:
            while True:
                if self.talks:
                    await self.group.send(b"0123456789abcdef")
                await asyncio.sleep(GAP)
        except (GroupAborted, GroupClosed):
            pass

    async def _read(self) -> None:
        try:
            async for event in self.group.events():
                now = time.perf_counter()
                if isinstance(event, View):
                    self.views[event.number] = now
                elif isinstance(event, Message):
                    self.deliveries.append(now)
                    self.first.setdefault(event.view, now)
        except GroupAborted:
            pass


class Change(NamedTuple):
    """One view change, in milliseconds."""

    view: float
    """Until all were told the new view."""
    first: float
    """Until somebody was delivered a message of the new view."""
    all: float
    """Until all were."""
    pause: float
    """The longest time in which a member that stays was delivered nothing."""


def free_addresses(count: int) -> list[str]:
    """Addresses that nobody uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket(AF_INET, SOCK_DGRAM)) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


async def found(order: str, names: list[str], failure_timeout: float = FAILURE_TIMEOUT) -> list[Talker]:
    """A new group, which talks."""
    name = f"bench {os.getpid()} {time.monotonic_ns()}"
    settings = Settings.local(order=order, failure_timeout=failure_timeout)
    members = dict(zip(names, free_addresses(len(names)), strict=True))
    groups = await asyncio.gather(*(join(name, name=each, members=members, settings=settings) for each in names))
    talkers = [Talker(group) for group in groups]
    await asyncio.sleep(0.2)
    return talkers


async def end(talkers: list[Talker]) -> None:
    """All close together."""
    await asyncio.gather(*(talker.group.close(10) for talker in talkers))
    for talker in talkers:
        sending, reading = talker.tasks
        sending.cancel()
        await reading


def crash(talker: Talker) -> None:
    """The member says nothing any more, and hears nothing, as if its process had been killed."""
    member = talker.group._member  # noqa: SLF001 (nobody else can do this)
    member.ending.end(GroupClosed("it crashed"))
    member.ending.disconnect()


async def changed(stay: list[Talker], began: Callable[[], float | None], asked: float) -> Change:
    """Waits until all that stay were delivered something in the next view."""
    number = stay[0].group.stats().view + 1
    while not all(number in talker.first for talker in stay):
        if time.perf_counter() > asked + _AT_MOST:
            raise SystemExit(f"no view after {_AT_MOST} s: {[(each.group.stats(), each.first) for each in stay]}")
        await asyncio.sleep(0.001)
    since = began() or asked
    firsts = [talker.first[number] for talker in stay]
    views = [talker.views[number] for talker in stay]
    pauses = []
    for talker in stay:
        times = [each for each in talker.deliveries if each >= asked - 0.1]
        pauses.append(max(after - before for before, after in itertools.pairwise(times)))
    return Change(
        *(1000 * each for each in (max(views) - since, min(firsts) - since, max(firsts) - since, max(pauses)))
    )


async def crashes(order: str, names: list[str], victim: int, suspicions: Suspicions) -> Change:
    """One member of a new group crashes."""
    talkers = await found(order, names)
    suspicions.times.clear()
    gone = talkers.pop(victim)
    asked = time.perf_counter()
    crash(gone)
    change = await changed(talkers, lambda: suspicions.times[0] if suspicions.times else None, asked)
    await end(talkers)
    return change


async def leaves(order: str, names: list[str], victim: int, _: Suspicions) -> Change:
    """One member of a new group leaves."""
    talkers = await found(order, names)
    gone = talkers.pop(victim)
    gone.talks = False
    asked = time.perf_counter()
    leaving = asyncio.create_task(gone.group.leave())
    change = await changed(talkers, lambda: None, asked)
    await leaving
    await end(talkers)
    return change


async def joins(order: str, names: list[str], _: int, __: Suspicions) -> Change:
    """One member joins a new group."""
    talkers = await found(order, names[:-1])
    group = talkers[0].group
    contacts = [str(group._member.address)]  # noqa: SLF001 (its port was chosen)
    asked = time.perf_counter()
    joining = asyncio.ensure_future(join(group.name, contacts=contacts, name=names[-1]))
    change = await changed(talkers, lambda: None, asked)
    talkers.append(Talker(await joining))
    await end(talkers)
    return change


async def datagrams(order: str, names: list[str]) -> int:
    """Sent by all for one leave in a group that sends nothing else, and hardly any heartbeats."""
    talkers = await found(order, names, failure_timeout=120)
    for talker in talkers:
        talker.talks = False
    await asyncio.sleep(0.5)

    def sent() -> int:
        return sum(talker.group.stats().datagrams_sent for talker in talkers)

    before = sent()
    await talkers[-1].group.leave()
    await asyncio.sleep(0.3)
    used = sent() - before
    talkers.pop()
    await end(talkers)
    return used


async def measure(order: str, members: int, times: int) -> None:
    """Prints the rows of one order."""
    names = [chr(ord("A") + place) for place in range(members)]
    suspicions = Suspicions()
    logging.getLogger("ordercast").addHandler(suspicions)
    events: dict[str, tuple[Callable[..., Awaitable[Change]], int]] = {
        "first member crashes": (crashes, 0),
        "last member crashes": (crashes, members - 1),
        "first member leaves": (leaves, 0),
        "last member leaves": (leaves, members - 1),
        "a member joins": (joins, 0),
    }
    for title, (happens, victim) in events.items():
        found = [await happens(order, names, victim, suspicions) for _ in range(times)]
        columns = [f"{statistics.median(each):.1f} / {max(each):.1f}" for each in zip(*found, strict=True)]
        tell(f"| {order} | {title} | {' | '.join(columns)} |")
    counts = [await datagrams(order, names) for _ in range(3)]
    tell(f"| {order} | datagrams of a leave | {statistics.median(counts):.0f} | | | |")


def tell(line: str) -> None:
    """At once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Prints what it ran, and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=5)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--order", action="append", choices=[str(order) for order in Order])
    parser.add_argument("--no-peers", action="store_true")
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    tell(
        f"{asked.members} members in one process on loopback, each sends 16 bytes every {GAP * 1000:.0f} ms, "
        f"failure timeout {FAILURE_TIMEOUT} s, {asked.times} times; Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, load average {load:.1f}"
    )
    tell("| order | event | view told to all, ms: median / worst | first new delivery | at all | longest pause |")
    tell("|---|---|---|---|---|---|")
    for order in asked.order or [str(order) for order in Order]:
        asyncio.run(measure(order, asked.members, asked.times))
    if not asked.no_peers:
        for peer, (script, needed) in PEERS.items():
            compare(peer, script, needed, asked.members, asked.times)


def compare(peer: str, script: str, needed: str, members: int, times: int) -> None:
    """Prints the rows of another system."""
    if not Path(needed).exists():
        tell(f"{peer}: not compared, {needed} is missing")
        return
    command = [sys.executable, str(Path(__file__).parent / "peers" / script)]
    command += ["--members", str(members), "--times", str(max(1, times // 2))]  # joins and ends come twice in each
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode != 0:
        tell(f"{peer}: not compared, its driver failed: {(ran.stderr.strip().splitlines() or ['no reason'])[-1]}")
        return
    events: dict[str, list[dict[str, float]]] = {}
    for line in ran.stdout.splitlines():
        found = json.loads(line)
        events.setdefault(found.pop("event"), []).append(found)
    for state in events.pop("state", []):
        tell(f"| {peer} | transfer of 100 MB of state: {state['rate']:.0f} MB/s | | | | {state['pause']:.1f} |")
    for event, all_found in events.items():
        columns = [[each[name] for each in all_found] for name in ("view", "first", "all", "pause")]
        shown = " | ".join(f"{statistics.median(each):.1f} / {max(each):.1f}" for each in columns)
        tell(f"| {peer} | {event} | {shown} |")


if __name__ == "__main__":
    main()
