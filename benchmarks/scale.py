"""What a message costs as a group grows, counted in datagrams, bytes and processor time.

    python benchmarks/scale.py                                   all tables
    python benchmarks/scale.py lone --sizes 3,8,16,24            one sender, a message each 20 ms
    python benchmarks/scale.py flood --sizes 8,16                all send messages of 64 bytes, as fast as they can
    python benchmarks/scale.py lone --source ../base/src         the same with another tree, for comparison
    python benchmarks/scale.py simulated --sizes 3,16,64         units of a lone message in the simulator
    sudo python benchmarks/scale.py network --sizes 3,8 --lines 2:0,100:1 --bytes 64,1024      with delay and loss

Members are spread over as many processes as the machine has cores (`--processes`), since a process for each of 24
members measures mostly how the system switches between them. Every message goes to all; nothing is lost on purpose.

lone: datagrams that all members together send for one message, the idle group's own (heartbeats) not counted: they are
measured before, and shown. Latency is from sending to delivery at the sender, which is neither sequencer nor relay.
flood: messages a second delivered at the median member, and what each cost: processor time of all members by message
and member, datagrams and bytes by message, and copies: units sent again, or discarded as duplicates, by unit.
network: each member is a process in a network namespace, on the switch of `tests/network`; `--lines` are milliseconds
of a round trip and per cent of frames lost. One member sends, neither the sequencer nor the relay, and all receive.
Messages a second are those of the slowest member after the first third of the time; datagrams, bytes, packets that
links repeated and units that protocols sent again are those of all members for a message; TCP: one stream from that
sender to one member, with BBR and with CUBIC. Needs root.
simulated: units that all nodes send for one message, without datagrams and clocks, so the same on every machine. Each
unit goes to all nodes but the sequencer's offers and acknowledgments.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ORDERS = "sequenced,partial,partial:stable,total,total:stable,priority"
MODES = ["lone", "flood", "network", "simulated"]
NETWORK_HEADS = "order", "bytes", "messages/s", "MB/s", "datagrams", "bytes sent", "repeated/100", "again/100"
PAYLOAD = bytes(64)
APART = 0.02  # seconds between lone messages
QUIET = 0.5  # seconds in which the idle group is counted
SETTLES = 0.5  # seconds after the group opened, and before it is counted
TIME_LIMIT = 120.0


class Shared:
    """What the processes of one run have in common."""

    def __init__(self, context: Any, processes: int) -> None:
        self.barrier = context.Barrier(processes)
        self.results = context.Queue()


async def all_there(shared: Shared) -> None:
    """Waits for the other processes, while this one goes on."""
    await asyncio.get_running_loop().run_in_executor(None, shared.barrier.wait, TIME_LIMIT)


def counted(groups: list[Any]) -> dict[str, float]:
    """What the members of this process have sent, and the processor time that it took."""
    stats = [group.stats() for group in groups]
    return {
        "datagrams": sum(each.datagrams_sent for each in stats),
        "bytes": sum(each.bytes_sent for each in stats),
        "units": sum(each.units_sent for each in stats),
        "again": sum(each.retransmissions for each in stats),
        "duplicates": sum(sum(each.units_discarded.get(why, 0) for why in ("duplicate", "old")) for each in stats),
        "recoveries": sum(each.recoveries for each in stats),
        "processor": time.process_time(),
    }


def difference(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """What was counted between."""
    return {name: after[name] - before[name] for name in before}


async def lone(groups: list[Any], asked: argparse.Namespace, *, sends: bool, shared: Shared) -> dict[str, Any]:
    """The last member of the last process sends."""

    async def read(group: Any) -> None:
        for _ in range(asked.messages):
            await group.receive()

    await asyncio.sleep(SETTLES)
    idle = counted(groups)
    await asyncio.sleep(QUIET)
    idle = difference(idle, counted(groups))
    await all_there(shared)
    before, begun = counted(groups), time.perf_counter()
    latencies: list[float] = []

    async def send(group: Any) -> None:
        for number in range(asked.messages):
            await asyncio.sleep(max(0.0, begun + number * APART - time.perf_counter()))
            sent = time.perf_counter()
            await group.send(PAYLOAD)
            await group.receive()
            latencies.append(time.perf_counter() - sent)

    tasks = [read(group) for group in (groups[:-1] if sends else groups)]
    if sends:
        tasks.append(send(groups[-1]))
    await asyncio.gather(*tasks)
    await all_there(shared)
    seconds = time.perf_counter() - begun
    return {"idle": idle, "used": difference(before, counted(groups)), "seconds": seconds, "latencies": latencies}


async def flood(groups: list[Any], asked: argparse.Namespace, *, sends: bool, shared: Shared) -> dict[str, Any]:
    """All send; what is delivered in the measured time counts."""
    del sends
    delivered = [0] * len(groups)
    over = asyncio.Event()

    async def send(group: Any) -> None:
        while not over.is_set():
            for _ in range(100):
                await group.send(PAYLOAD)
            await asyncio.sleep(0)

    async def read(place: int, group: Any) -> None:
        async for batch in group.batches():
            delivered[place] += len(batch)

    tasks = [asyncio.create_task(send(group)) for group in groups]
    tasks += [asyncio.create_task(read(place, group)) for place, group in enumerate(groups)]
    await asyncio.sleep(asked.warm_up)
    before, had, begun = counted(groups), list(delivered), time.perf_counter()
    await asyncio.sleep(asked.seconds)
    used, seconds = difference(before, counted(groups)), time.perf_counter() - begun
    rates = [(now - then) / seconds for now, then in zip(delivered, had, strict=True)]
    await all_there(shared)
    over.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {"used": used, "seconds": seconds, "rates": rates}


async def run_members(place: int, names: list[str], order: str, asked: argparse.Namespace, shared: Shared) -> None:
    """The members of one process."""
    import ordercast  # noqa: PLC0415 (only here: `--source` says which one)

    group = f"scale-{order.replace(':', '-')}-{len(names)}-{os.getppid()}"
    mine = names[place :: asked.processes]
    kind, _, delivery = order.partition(":")
    settings = ordercast.Settings(order=kind, delivery=delivery) if delivery else ordercast.Settings(order=kind)
    joining = [ordercast.join(group, members=names, name=name, settings=settings) for name in mine]
    groups = await asyncio.gather(*(_opened(each) for each in joining))
    await all_there(shared)
    sends = names[-1] in mine
    measure = lone if asked.mode == "lone" else flood
    found: dict[str, Any]
    try:
        found = await asyncio.wait_for(measure(list(groups), asked, sends=sends, shared=shared), TIME_LIMIT)
    except (TimeoutError, Exception) as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    shared.results.put(found)
    shared.results.close()
    shared.results.join_thread()
    os._exit(0)  # without closing the group: what that costs is measured elsewhere


async def _opened(joining: Any) -> Any:
    return await joining


def one_process(place: int, names: list[str], order: str, asked: argparse.Namespace, shared: Shared) -> None:
    """Runs in a process of its own."""
    if asked.source:
        sys.path.insert(0, str(Path(asked.source).resolve()))
    asyncio.run(run_members(place, names, order, asked, shared))


def measured(order: str, size: int, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """What each process found."""
    context = multiprocessing.get_context("spawn")
    shared = Shared(context, asked.processes)
    names = [f"m{number:02}" for number in range(size)]
    arguments = [(place, names, order, asked, shared) for place in range(asked.processes)]
    processes = [context.Process(target=one_process, args=each) for each in arguments]
    for process in processes:
        process.start()
    try:
        found = [shared.results.get(timeout=2 * TIME_LIMIT) for _ in processes]
    except Exception:
        found = [{"error": "no answer"}]
    for process in processes:
        process.join(5)
        if process.is_alive():
            process.kill()
    return found


def lone_row(found: list[dict[str, Any]], asked: argparse.Namespace) -> dict[str, float]:
    """The figures of a lone message."""
    seconds = max(each["seconds"] for each in found)
    idle = {name: sum(each["idle"][name] for each in found) / QUIET for name in found[0]["idle"]}
    used = {name: sum(each["used"][name] for each in found) for name in found[0]["used"]}
    by_message = {name: (used[name] - idle[name] * seconds) / asked.messages for name in used}
    latencies = [latency for each in found for latency in each["latencies"]]
    return {
        "datagrams": by_message["datagrams"],
        "bytes": by_message["bytes"],
        "units": by_message["units"],
        "idle datagrams/s": idle["datagrams"],
        "latency ms": 1e3 * statistics.median(latencies),
        "CPU ms": 1e3 * by_message["processor"],
        "recoveries": used["recoveries"],
        "seconds": seconds,
    }


def flood_row(found: list[dict[str, Any]], asked: argparse.Namespace) -> dict[str, float]:
    """The figures of a busy group."""
    del asked
    rates = [rate for each in found for rate in each["rates"]]
    used = {name: sum(each["used"][name] for each in found) for name in found[0]["used"]}
    seconds = statistics.mean(each["seconds"] for each in found)
    delivered = max(1.0, sum(rates) * seconds)
    messages = delivered / len(rates)
    return {
        "delivered/s": statistics.median(rates),
        "least": min(rates),
        "CPU µs by delivery": 1e6 * used["processor"] / delivered,
        "datagrams/1000": 1e3 * used["datagrams"] / messages,
        "bytes": used["bytes"] / messages,
        "units/1000": 1e3 * used["units"] / messages,
        "again %": 100 * used["again"] / max(1.0, used["units"]),
        "duplicates %": 100 * used["duplicates"] / max(1.0, used["units"]),
        "recoveries": used["recoveries"],
    }


def simulated_row(order: str, size: int, messages: int) -> dict[str, float]:
    """The figures of a lone message in the simulator, with the rules that live groups use."""
    from ordercast.live.settings import protocol_of  # noqa: PLC0415 (the other modes use another tree, perhaps)
    from ordercast.model.config import MILLISECOND, GroupConfig, Rules  # noqa: PLC0415
    from ordercast.model.machine import Level  # noqa: PLC0415
    from ordercast.model.runs import Network, RunConfig, ScriptedSend, Workload  # noqa: PLC0415
    from ordercast.protocols.registry import machine_class  # noqa: PLC0415
    from ordercast.simulator import simulate  # noqa: PLC0415

    kind, _, delivery = order.partition(":")
    protocol = protocol_of(kind)
    needs = machine_class(protocol, Rules.SOUND).needs
    sends = [ScriptedSend(node=size - 1, at=20 * number * MILLISECOND, priority=1) for number in range(messages)]
    network = Network(channel=needs, drained=True)
    run = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=size, polls_late=True, delivers_stable=delivery == "stable"),
        network=network,
        workload=Workload(script=tuple(sends)),
    ).with_default_timeouts()
    begun = time.process_time()
    counters = simulate(run).counters
    return {
        "units": counters.packets() / messages,
        "receipts": counters.interrupts / messages,
        "bytes": counters.bytes / messages,
        "acknowledged, µs": counters.latency[Level.ACKNOWLEDGED].percentile(50) / 1e3,
        "CPU ms": 1e3 * (time.process_time() - begun) / messages,
    }


def show(mode: str, asked: argparse.Namespace) -> None:
    """Measures and prints one table."""
    asked.mode = mode
    table, rows = Table(title=f"{mode}: {asked.source or 'this tree'}, {asked.processes} processes"), []
    for order in asked.orders.split(","):
        for size in map(int, asked.sizes.split(",")):
            found = [] if mode == "simulated" else measured(order, size, asked)
            wrong = [each["error"] for each in found if "error" in each]
            figures: dict[str, float] = {}
            if mode == "simulated":
                figures = simulated_row(order, size, asked.messages)
            elif not wrong:
                figures = (lone_row if mode == "lone" else flood_row)(found, asked)
            rows.append({"order": order, "n": size, **figures, **({"error": wrong[0]} if wrong else {})})
            if asked.json:
                print(json.dumps({"mode": mode, **rows[-1]}), flush=True)
    heads = ["order", "n", *next((list(row)[2:] for row in rows if "error" not in row), []), "error"]
    for head in heads:
        table.add_column(head, justify="left" if head in {"order", "error"} else "right")
    for row in rows:
        table.add_row(*(_text(row.get(head, "")) for head in heads))
    if not asked.json:
        Console(width=150).print(table)


def show_network(asked: argparse.Namespace) -> None:
    """Measures and prints a table for each line and number of members."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    long_lines = import_module("benchmarks.long_lines")
    from tests.network.lab import laboratory  # noqa: PLC0415 (it needs root)
    from tests.network.switch import Weather  # noqa: PLC0415

    for line in asked.lines.split(","):
        delay, _, loss = line.partition(":")
        weather = Weather(delay=float(delay) / 2e3, loss=float(loss or 0) / 100)
        for size in map(int, asked.sizes.split(",")):
            title = f"network: {size} members, {delay} ms round trip, {loss or 0} % loss, one sends"
            table = Table(title=title)
            for head in NETWORK_HEADS:
                table.add_column(head, justify="left" if head == "order" else "right")
            with tempfile.TemporaryDirectory() as folder, laboratory(size, Path(folder), weather) as lab:
                for length in map(int, asked.bytes.split(",")):
                    for order in asked.orders.split(","):
                        kind, _, delivery = order.partition(":")
                        settings = {"delivery": delivery} if delivery else {}
                        found = long_lines.run_group(lab, kind, "B", asked.seconds, size=length, settings=settings)
                        rate = min(long_lines.rate(each, 1) for each in found)
                        handed = max(1, min(each["handed"] for each in found))
                        used = {
                            key: sum(each[key] for each in found) / handed
                            for key in ("datagrams", "bytes", "repeated", "copies")
                        }
                        table.add_row(
                            *(order, f"{length:,}", f"{rate:,.0f}", f"{rate * length / 1e6:.1f}"),
                            *(f"{used['datagrams']:.3f}", f"{used['bytes']:,.0f}"),
                            *(f"{100 * used['repeated']:.2f}", f"{100 * used['copies']:.2f}"),
                        )
                for congestion in ("bbr", "cubic"):
                    rate = long_lines.tcp_rate(lab, "B", "C", asked.seconds, congestion)()
                    table.add_row(f"TCP, {congestion}", "", "", f"{rate / 1e6:.1f}", "", "", "", "")
            Console(width=120).print(table)


def _text(value: object) -> str:
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = [mode for mode in MODES if mode != "network"]
    parser.add_argument("modes", nargs="*", default=usual, help=f"{', '.join(MODES)}; all but network if none is named")
    parser.add_argument("--sizes", default="3,8,16", help="members")
    parser.add_argument(
        "--lines", default="2:0,100:0,100:1,20:5", help="network: round trips in ms, and loss in per cent"
    )
    parser.add_argument("--bytes", default="64,1024", help="network: of a message")
    parser.add_argument("--orders", default=ORDERS, help="`:stable` behind an order: delivery of what is stable")
    parser.add_argument("--messages", type=int, default=50, help="lone")
    parser.add_argument("--warm-up", type=float, default=1.5, help="flood: seconds before it is counted")
    parser.add_argument("--seconds", type=float, default=3.0, help="flood and network: seconds that are counted")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--source", default="", help="the `src` directory of another tree")
    parser.add_argument("--json", action="store_true", help="a line for each run")
    asked = parser.parse_args()
    for mode in asked.modes:
        if mode == "network":
            show_network(asked)
        else:
            show(mode, asked)


if __name__ == "__main__":
    main()
