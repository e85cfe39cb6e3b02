"""Live groups beside their peers: three processes, or more, on this machine, one order for all, nothing lost.

    python benchmarks/live.py                     ordercast alone
    python benchmarks/live.py --peers             beside every peer that is installed; it says which are not, and why
    python benchmarks/live.py --peers --members 8 --sizes 64,1024 --modes all

What is counted: ordered messages that are handed to one member's application in a second, the median of the members,
over a window after a warm-up. The sender makes one call for each message, every delivery is looked at, and in every run
the order of the first messages is compared at all members. Latency: one message under way, from sending to its delivery
at the sender. Processor time is that of all processes together for a message that all have heard; memory is that of
the largest process. All share the cores of this machine: the figures say what a message costs, not what a network
carries. Repetitions go round by round, so that a neighbour who disturbs one contestant disturbs all; the best of them
is shown, and the worst behind it.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contestants import peers
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

HERE = Path(__file__).parent / "peers"
MODES = "one,first,all,latency"
TIME_LIMIT = 120


@dataclass(frozen=True)
class Contestant:
    """A program that prints its figures for a size and a mode as a line of JSON."""

    name: str
    command: tuple[str, ...]
    missing: str = ""
    """Why it cannot be run here."""

    def figures(self, size: int, mode: str, seconds: float, members: int) -> dict[str, Any]:
        """What one run of it prints; what went wrong, if it did."""
        arguments = ["--size", str(size), "--mode", mode, "--seconds", str(seconds), "--members", str(members)]
        try:
            run = subprocess.run(  # noqa: S603 (our own programs)
                [*self.command, *arguments], capture_output=True, text=True, timeout=TIME_LIMIT, check=False
            )
            found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
        except subprocess.TimeoutExpired:
            return {"error": f"took longer than {TIME_LIMIT} s"}
        except (IndexError, ValueError):
            return {"error": (run.stderr.strip().splitlines() or ["printed nothing"])[-1][:80]}
        return found


def ordercast(name: str, *options: str) -> Contestant:
    """Ourselves."""
    return Contestant(name, (sys.executable, str(HERE / "ordercast_group.py"), *options))


OURS = [
    ordercast("ordercast sequenced"),
    ordercast("ordercast sequenced, uvloop", "--uvloop"),
    ordercast("ordercast sequenced, no key", "--insecure"),
    ordercast("ordercast sequenced, MTU 1500", "--mtu", "1400"),
    ordercast("ordercast total", "--order", "total"),
    ordercast("ordercast total, stable", "--order", "total", "--delivery", "stable"),
    ordercast("ordercast priority", "--order", "priority"),
    ordercast("ordercast partial", "--order", "partial"),
    ordercast("ordercast partial, stable", "--order", "partial", "--delivery", "stable"),
]


def throughput(found: list[dict[str, Any]]) -> str:
    """The best of the repetitions, the worst, what a message costs, and the memory of the largest process."""
    rates = sorted((figures["rate"] for figures in found if "rate" in figures), reverse=True)
    if not rates:
        return f"[red]{found[0].get('error', '–')}[/]"
    disagree = any(figures.get("agree") is False for figures in found)
    costs = min(figures["cpu_us"] for figures in found if "cpu_us" in figures)
    memory = max(figures["memory_mib"] for figures in found if "memory_mib" in figures)
    return f"{rates[0]:,.0f} / {rates[-1]:,.0f}\n[dim]{costs:.1f} µs, {memory:.0f} MiB[/]" + (
        "\n[red]orders differ[/]" if disagree else ""
    )


def latency(found: list[dict[str, Any]]) -> str:
    """The best median and the best 99th percentile."""
    medians = [figures["p50_us"] for figures in found if "p50_us" in figures]
    if not medians:
        return f"[red]{found[0].get('error', '–')}[/]"
    return f"{min(medians):,.0f} / {min(figures['p99_us'] for figures in found if 'p99_us' in figures):,.0f}"


def run(asked: argparse.Namespace, console: Console) -> None:
    """All contestants, all sizes, round by round."""
    contestants = list(OURS)
    if asked.peers:
        for peer in peers(asked.peer_python):
            if peer.missing:
                console.print(f"[yellow]{peer.name} is not compared: {peer.missing}[/]")
            else:
                contestants.append(Contestant(peer.name, peer.command))
    if asked.only:
        contestants = [each for each in contestants if any(word in each.name for word in asked.only.split(","))]
    sizes = [int(size) for size in asked.sizes.split(",")]
    modes = asked.modes.split(",")
    cases = [(size, mode) for mode in modes for size in (sizes if mode != "latency" else sizes[:1])]
    found: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=asked.repeat * len(cases) * len(contestants))
        for _ in range(asked.repeat):
            for size, mode in cases:
                for each in contestants:
                    progress.update(task, advance=1, description=f"{each.name}, {size} B, {mode}")
                    figures = each.figures(size, mode, asked.seconds, asked.members)
                    found.setdefault((each.name, size, mode), []).append(figures)
                    if asked.out:
                        with asked.out.open("a") as out:
                            line = {"contestant": each.name, "size": size, "mode": mode, **figures}
                            print(json.dumps(line), file=out)
    titles = {
        "one": "Messages a second, one member sends (not the sequencer): best / worst",
        "first": "Messages a second, the first member sends (sequencer, coordinator, leader): best / worst",
        "all": "Messages a second, all send: best / worst",
        "latency": "Latency of a single message in µs, at a sender that is not the sequencer: median / 99th percentile",
    }
    for mode in modes:
        table = Table(title=titles[mode], title_justify="left")
        table.add_column("")
        shown = [size for size, each in cases if each == mode]
        for size in shown:
            table.add_column(f"{size} B", justify="right")
        for each in contestants:
            show = latency if mode == "latency" else throughput
            table.add_row(each.name, *[show(found[each.name, size, mode]) for size in shown])
        console.print(table)


def main() -> None:
    """Reads the arguments, and says what is run on which machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64,1024,8192,65536", help="bytes of a message")
    parser.add_argument("--modes", default=MODES, help="who sends, and latency, which takes the first size only")
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="that are measured, in each run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="contestants with one of these words in their names")
    parser.add_argument("--peers", action="store_true", help="beside the peers that are installed")
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has pysyncobj and nats-py")
    parser.add_argument("--out", type=Path, help="a file to append the figures of every run to")
    asked = parser.parse_args()
    console = Console(width=150)
    load = os.getloadavg()[0]
    console.print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}")
    console.print(f"{asked.members} members, {asked.repeat} repetitions of {asked.seconds:g} s")
    run(asked, console)


if __name__ == "__main__":
    main()
