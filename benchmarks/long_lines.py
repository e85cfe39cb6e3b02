"""Groups on long and lossy lines: throughput, and what a message costs in datagrams, bytes and copies.

    sudo python -m benchmarks.long_lines                       # everything, about ten minutes
    sudo python -m benchmarks.long_lines delay loss            # some of: delay, loss, heavy, pause, fairness
    sudo python -m benchmarks.long_lines loss --orders sequenced,partial --seconds 10

Each member is a process in a network namespace, on the switch of `tests/network`, which delays and loses each frame;
`tc netem` is not needed. One member sends 1 KiB messages to all as fast as `send` lets it, neither the sequencer nor
the relay unless `--sender A`; everybody reads. MB/s are 10^6 bytes of messages a second that the slowest member was
handed after the first third of the time. Datagrams and bytes are those of all members, at their sockets, for each
message handed out; copies are units that a protocol sent again, for each 100 messages; `repeated` are packets that the
links sent again, for each 100 messages. Beside it: one TCP stream on the same line, with BBR and with CUBIC.
"""

import argparse
import asyncio
import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tests.network.lab import Lab, Process, laboratory
from tests.network.switch import Weather

import ordercast
from ordercast.live.group import Group

ORDERS = "sequenced,partial,total,priority"
SIZE = 1024
LINE = 12.5e6  # bytes a second: 100 Mbit
DELAY = Weather(delay=0.05)
NETWORKS = {
    "delay": ("100 ms round trip, no loss, 100 Mbit/s to each", Weather(delay=0.05, rate=LINE, queue=0.1)),
    "loss": ("100 ms round trip, 1 % loss", Weather(delay=0.05, loss=0.01)),
}


# --- one member, in a process of its own ---


async def joined(job: dict[str, Any]) -> Group:
    """Its group, which is open."""
    settings = ordercast.Settings(order=job["order"], **job.get("settings", {}))
    group = await ordercast.join(
        job["group"], members=job["members"], name=job["name"], settings=settings, key=job["key"], timeout=60
    )
    print("open", job["group"], flush=True)
    return group


async def flood(job: dict[str, Any]) -> dict[str, Any]:
    """Sends for so many seconds, if it is a sender; reads until the end. What it was handed, by the time."""
    group = await joined(job)
    until, handed, payload = time.monotonic() + job["seconds"], 0, bytes(job.get("size", SIZE))
    timeline: list[tuple[float, int]] = []

    async def send() -> int:
        sent = 0
        while time.monotonic() < until:
            await group.send(payload)
            sent += 1
            if not sent % 64:
                await asyncio.sleep(0)
        return sent

    sending = asyncio.create_task(send()) if job["sends"] else None

    async def read() -> None:
        nonlocal handed
        if (pause := job.get("pauses")) is not None:
            begin, end = pause
            await asyncio.sleep(begin)
            timeline.append((time.monotonic(), 0))
            await asyncio.sleep(end - begin)
        async for batch in group.batches():
            handed += len(batch)
            timeline.append((time.monotonic(), handed))

    reading = asyncio.create_task(read())
    watching = asyncio.create_task(watch(group))
    await asyncio.sleep(max(0, until - time.monotonic()))
    before = timeline[:]
    counts = stats(group)
    if sending is not None:
        sending.cancel()
    await group.abort("measured")
    await asyncio.gather(reading, watching, *([sending] if sending else []), return_exceptions=True)
    return {"until": until, "seconds": job["seconds"], "timeline": before, "seen": watching.result(), **counts}


async def watch(group: Group) -> list[tuple[float, int, int, int, int]]:
    """Ten times a second: the time, and what was sent until then."""
    found = []
    while not group._member.left.done():  # noqa: SLF001
        counts = stats(group)
        found.append((time.monotonic(), *(counts[each] for each in ("bytes", "datagrams", "copies", "unread"))))
        await asyncio.sleep(0.1)
    return found


async def some(job: dict[str, Any]) -> dict[str, Any]:
    """Sends so many messages and reads all; how long it took from the opening."""
    group = await joined(job)
    begun, total = time.monotonic(), job["messages"] * len(job["members"])

    async def send() -> None:
        for _ in range(job["messages"]):
            await group.send(bytes(job["size"]))

    sending = asyncio.create_task(send())
    try:
        for _ in range(total):
            await group.receive()
        await sending
        seconds = time.monotonic() - begun
        counts = stats(group)
        await group.close(30)
    except ordercast.GroupAborted as error:
        return {"seconds": None, "why": str(error), **stats(group)}
    return {"seconds": seconds, **counts}


def stats(group: Group) -> dict[str, Any]:
    """What a member has sent so far."""
    found = group.stats()
    return {
        "bytes": found.bytes_sent,
        "datagrams": found.datagrams_sent,
        "copies": found.retransmissions,
        "requests": found.retransmission_requests,
        "repeated": found.packets_repeated,
        "handed": sum(found.messages_delivered.values()),
        "unread": found.unread_bytes,
    }


def tcp_out(job: dict[str, Any]) -> dict[str, Any]:
    """One TCP stream: sends until the time is over."""
    with socket.create_connection((job["to"], 7999), 30) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, job["congestion"].encode())
        until = time.monotonic() + job["seconds"]
        while time.monotonic() < until:
            line.sendall(bytes(1 << 16))
    return {}


def tcp_in(job: dict[str, Any]) -> dict[str, Any]:
    """The other end: bytes by the time."""
    timeline: list[tuple[float, int]] = []
    with socket.create_server((job["at"], 7999)) as server:
        print("open tcp", flush=True)
        line, _ = server.accept()
        until, count = time.monotonic() + job["seconds"], 0
        with line:
            while data := line.recv(1 << 20):
                count += len(data)
                timeline.append((time.monotonic(), count))
    return {"until": until, "seconds": job["seconds"], "timeline": timeline}


WORK: dict[str, Callable[[dict[str, Any]], Any]] = {"flood": flood, "some": some, "tcp_out": tcp_out, "tcp_in": tcp_in}


def member(text: str) -> None:
    """Does one job, and prints what came of it."""
    job = json.loads(text)
    work = WORK[job["work"]]
    found = asyncio.run(work(job)) if asyncio.iscoroutinefunction(work) else work(job)
    print(json.dumps({"report": found}), flush=True)


# --- the laboratory ---


def start(lab: Lab, name: str, **job: Any) -> Process:
    """A process of this module where a member is at home."""
    told = json.dumps({"name": name, "key": str(lab.key), **job})
    return lab.run(name, [sys.executable, "-m", "benchmarks.long_lines", "--member", told])


def report(process: Process, seconds: float) -> dict[str, Any]:
    """What it printed, when it has ended."""
    process.wait(seconds)
    if "report" not in process.reports:
        raise RuntimeError(f"{process.name}: {process.errors[-2000:]}")
    return process.reports["report"]


def run_group(
    lab: Lab, order: str, senders: str, seconds: float, port: int = 7000, **more: Any
) -> list[dict[str, Any]]:
    """One group for so long: the reports of all."""
    return ended(begin_group(lab, order, senders, seconds, port, **more), seconds)


def begin_group(
    lab: Lab, order: str, senders: str, seconds: float, port: int = 7000, *, names: str = "", **more: Any
) -> list[Process]:
    """The members of a group, when it is open. `pauses`: by name, when an application does not read."""
    pauses = more.pop("pauses", {})
    chosen = [name for name in lab.names if not names or name in names]
    members = {name: address for name, address in lab.members(port).items() if name in chosen}
    common = {"work": "flood", "group": f"lines{port}", "order": order, "members": members, "seconds": seconds, **more}
    processes = [start(lab, name, **common, sends=name in senders, pauses=pauses.get(name)) for name in chosen]
    for process in processes:
        process.wait_open(1)
    return processes


def ended(processes: list[Process], seconds: float) -> list[dict[str, Any]]:
    """Their reports."""
    return [report(process, seconds + 60) for process in processes]


def rate(found: dict[str, Any], unit: int = SIZE) -> float:
    """Bytes a second, after the first third of the time."""
    begin = found["until"] - found["seconds"] * 2 / 3
    inside = [(at, count) for at, count in found["timeline"] if begin <= at <= found["until"]]
    if len(inside) < 2:
        return 0.0
    return float((inside[-1][1] - inside[0][1]) * unit / (found["until"] - begin))


def tcp_rate(lab: Lab, by: str, to: str, seconds: float, congestion: str = "cubic") -> Callable[[], float]:
    """Starts one stream; its bytes a second, when it has ended."""
    address = lab.members(7999)[to].rpartition(":")[0]
    server = start(lab, to, work="tcp_in", at=address, seconds=seconds)
    server.wait_open(1)
    client = start(lab, by, work="tcp_out", to=address, seconds=seconds, congestion=congestion)

    def result() -> float:
        client.wait(seconds + 60)
        return rate(report(server, 60), 1)

    return result


def table(title: str, *heads: str) -> Table:
    """An empty one."""
    made = Table(title=title)
    for number, head in enumerate(heads):
        made.add_column(head, justify="right" if number else "left")
    return made


def throughput(name: str, asked: argparse.Namespace, console: Console) -> None:
    """One line for each order, and one for TCP."""
    title, weather = NETWORKS[name]
    made = table(title, "order", "MB/s", "datagrams", "bytes", "copies/100", "repeated/100")
    with tempfile.TemporaryDirectory() as folder, laboratory(3, Path(folder), weather) as lab:
        for order in asked.orders.split(","):
            found = run_group(lab, order, asked.sender, asked.seconds)
            handed = max(1, min(each["handed"] for each in found))
            totals = {
                key: sum(each[key] for each in found) / handed for key in ("datagrams", "bytes", "copies", "repeated")
            }
            made.add_row(
                order,
                f"{min(map(rate, found)) / 1e6:.2f}",
                f"{totals['datagrams']:.2f}",
                f"{totals['bytes']:,.0f}",
                f"{100 * totals['copies']:.2f}",
                f"{100 * totals['repeated']:.2f}",
            )
        for congestion in ("bbr", "cubic"):
            stream = tcp_rate(lab, "B", "C", asked.seconds, congestion)() / 1e6
            made.add_row(f"one TCP stream, {congestion}", f"{stream:.2f}", "", "", "", "")
    console.print(made)


def heavy(asked: argparse.Namespace, console: Console) -> None:
    """Four members, a fifth of all frames lost, 600 messages in all."""
    made = table("4 members, 20 % loss, 600 messages of 100 bytes", "order", "seconds", "datagrams", "copies/100")
    with tempfile.TemporaryDirectory() as folder, laboratory(4, Path(folder), Weather(loss=0.2)) as lab:
        for order in asked.orders.split(","):
            members = lab.members()
            common = {
                "work": "some",
                "group": "heavy",
                "order": order,
                "members": members,
                "messages": 150,
                "size": 100,
            }
            processes = [start(lab, name, **common) for name in lab.names]
            found = [report(process, 150) for process in processes]
            times = [each["seconds"] for each in found]
            text = f"{max(times):.2f}" if None not in times else next(each["why"] for each in found if "why" in each)
            datagrams, copies = (sum(each[key] for each in found) / 600 for key in ("datagrams", "copies"))
            made.add_row(order, text, f"{datagrams:.2f}", f"{100 * copies:.1f}")
    console.print(made)


def pause(asked: argparse.Namespace, console: Console) -> None:
    """One reader of three stops for four seconds: what is sent meanwhile, and whether the group goes on."""
    made = table(
        "the application of C does not read from second 1 to 5; 3 members, 2 ms round trip, A and B send",
        *(
            "order",
            "MB/s before",
            "MB sent in seconds 3 to 5",
            "datagrams",
            "copies",
            "unread MB at most",
            "MB/s after",
        ),
    )
    with tempfile.TemporaryDirectory() as folder, laboratory(3, Path(folder), Weather(delay=0.001)) as lab:
        for order in asked.orders.split(","):
            found = run_group(lab, order, "AB", 9, pauses={"C": [1.0, 5.0]})
            begin = found[0]["until"] - 9

            def sent(
                first: float, last: float, column: int, found: list[dict[str, Any]] = found, begin: float = begin
            ) -> int:
                total = 0
                for each in found:
                    inside = [row[column] for row in each["seen"] if begin + first <= row[0] <= begin + last]
                    total += inside[-1] - inside[0] if inside else 0
                return total

            unread = max(row[4] for each in found for row in each["seen"])
            handed = [(at - begin, count) for at, count in found[2]["timeline"] if at - begin > 6]
            after = (handed[-1][1] - handed[0][1]) * SIZE / (handed[-1][0] - handed[0][0]) if len(handed) > 1 else 0
            first = [(at - begin, count) for at, count in found[0]["timeline"] if at - begin < 1]
            before = first[-1][1] * SIZE if first else 0
            made.add_row(
                order,
                f"{before / 1e6:.1f}",
                f"{sent(3, 5, 1) / 1e6:.2f}",
                f"{sent(3, 5, 2):,}",
                f"{sent(3, 5, 3):,}",
                f"{unread / 1e6:.1f}",
                f"{after / 1e6:.1f}",
            )
    console.print(made)


def fairness(asked: argparse.Namespace, console: Console) -> None:
    """Two groups, or a group and TCP, on one narrow line to C."""
    weather = Weather(delay=0.01, rate=2.5e6, queue=0.1)
    made = table(
        "20 Mbit/s to each, 20 ms round trip, queues of 100 ms: MB/s at C",
        "order",
        "alone",
        "two groups",
        "beside TCP",
        "TCP",
    )
    seconds = 2 * asked.seconds
    with tempfile.TemporaryDirectory() as folder, laboratory(3, Path(folder), weather) as lab:
        for order in asked.orders.split(","):
            alone = min(map(rate, run_group(lab, order, asked.sender, asked.seconds)))
            groups = [begin_group(lab, order, asked.sender, seconds, port) for port in (7000, 7100)]
            both = [min(map(rate, ended(each, seconds))) / 1e6 for each in groups]
            beside = begin_group(lab, order, asked.sender, seconds)
            stream = tcp_rate(lab, asked.sender, "C", seconds)
            tcp = stream()
            made.add_row(
                *(order, f"{alone / 1e6:.2f}", " and ".join(f"{each:.2f}" for each in both)),
                *(f"{min(map(rate, ended(beside, seconds))) / 1e6:.2f}", f"{tcp / 1e6:.2f}"),
            )
    console.print(made)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=[*NETWORKS, "heavy", "pause", "fairness"])
    parser.add_argument("--orders", default=ORDERS)
    parser.add_argument("--seconds", type=float, default=9.0)
    parser.add_argument("--sender", default="B")
    parser.add_argument("--member", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.member:
        member(asked.member)
        return
    console = Console(width=120)
    others = {"heavy": heavy, "pause": pause, "fairness": fairness}
    for name in asked.tables:
        if name in NETWORKS:
            throughput(name, asked, console)
        else:
            others[name](asked, console)


if __name__ == "__main__":
    main()
