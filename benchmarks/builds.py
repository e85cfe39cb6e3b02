"""How fast the simulator and the explorer are in several builds of ordercast, in one run: pure, compiled, or older.

Each row is measured in turn in every build, each time by a process of its own, and the best of all rounds is printed
with its ratio to the first column: CPU time, since other programs run too. What was counted must be equal.

    make compiled
    python benchmarks/builds.py compiled=build/compiled

Another checkout's folder `src` can be named as well: what it counts may differ, and then that is said.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command_line import parser_for

RECEIPTS = 60_000
HERE = "sources"
ORDERED = {"st", "to", "prito", "prio"}
PROTOCOLS = ("spo", "po", "st", "to", "prito", "prio", "sequencer")


def simulated(protocol: str) -> tuple[list[int], float]:
    """Receipts and virtual time of a saturated run of four nodes, and its CPU time."""
    from ordercast.model.runs import Channel, Network, RunConfig, TraceDetail  # noqa: PLC0415
    from ordercast.simulator import simulate  # noqa: PLC0415
    from simulator import config  # noqa: PLC0415 - each process has its own ordercast

    run = config(4, 0.5, 0.0, TraceDetail.NONE, RECEIPTS)
    network = Network(channel=Channel.ONE if protocol in ORDERED else Channel.MANY)
    run = RunConfig(
        protocol=protocol, group=run.group, network=network, workload=run.workload, seed=1, record=TraceDetail.NONE
    )
    start = time.process_time()
    result = simulate(run)
    took = time.process_time() - start
    assert result.complete
    return [result.counters.received, result.virtual_time], took


def explored(protocol: str) -> tuple[list[int], float]:
    """States and edges of a search without the reduction, and its CPU time."""
    from explorer import SEARCHES, searched  # noqa: PLC0415
    from ordercast.explorer.scenarios import scenario  # noqa: PLC0415

    lines, bounds = next((lines, bounds) for name, lines, bounds in SEARCHES if name == protocol)
    report, took = searched(scenario(protocol, lines, **bounds), reduced=False)
    return [report.states, report.edges], took


MEASURED: dict[str, Callable[[str], tuple[list[int], float]]] = {
    "simulated, receipts/s": simulated,
    "explored, states/s": explored,
}


def child(what: str, protocol: str, folder: Path) -> dict[str, Any]:
    """Measures one row in one build."""
    program = [sys.executable, __file__, "--one", what, protocol]
    environment = {**os.environ, "PYTHONPATH": str(folder.resolve())}
    run = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def main() -> None:
    """Prints the table."""
    if sys.argv[1:2] == ["--one"]:
        what, protocol = sys.argv[2:]
        counts, took = MEASURED[what](protocol)
        print(json.dumps({"counts": counts, "took": took}))
        return
    parser = parser_for(__doc__, "some minutes")
    parser.add_argument("builds", nargs="+", metavar="NAME=FOLDER", help="a build beside the sources of this checkout")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--only", nargs="*", default=PROTOCOLS, help="protocols; default: all")
    asked = parser.parse_args()
    builds = {HERE: Path(__file__).parents[1] / "src"}
    builds |= {name: Path(folder) for name, _, folder in (each.partition("=") for each in asked.builds)}
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()} on {platform.machine()}; best of {asked.rounds}; load {load:.1f}")
    print(f"{'':22}{'':10}" + "".join(f"{name:>18}" for name in builds))
    for what in MEASURED:
        for protocol in asked.only:
            rounds = [{name: child(what, protocol, builds[name]) for name in builds} for _ in range(asked.rounds)]
            counts = [each["counts"] for each in rounds[0].values()]
            speeds = [max(one[name]["counts"][0] / one[name]["took"] for one in rounds) for name in builds]
            shown = "".join(f"{speed:>11,.0f} {speed / speeds[0]:>5.2f}x" for speed in speeds)
            same = "" if all(each == counts[0] for each in counts) else f"  counts differ: {counts}"
            print(f"{what:22}{protocol:10}{shown}{same}", flush=True)


if __name__ == "__main__":
    main()
