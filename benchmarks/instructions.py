"""What a simulated receipt costs in instructions of the processor, here and in another tree.

    python benchmarks/instructions.py --against /tmp/before
    python benchmarks/instructions.py --only st --losses 0.05

Instructions are counted by Valgrind (`apt install valgrind`), the same in each run, however busy the machine is. Each
cell is the difference of a long and a short run, so that what is loaded at the start is not counted. Everybody sends at
once, and nothing is recorded.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from command_line import parser_for

HERE = Path(__file__).resolve().parent.parent
PROTOCOLS = ("spo", "po", "st", "to", "prito", "prio", "sequencer")
ON_ONE_CHANNEL = ("st", "to", "prito", "prio")


def receipts_of(tree: Path, protocol: str, nodes: int, loss: float, receipts: int) -> int:
    """Runs about so many receipts with the code of that tree; returns how many they were."""
    sys.path.insert(0, str(tree / "src"))
    from ordercast.model.config import GroupConfig  # noqa: PLC0415 (of that tree)
    from ordercast.model.faults import Loss  # noqa: PLC0415
    from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload  # noqa: PLC0415
    from ordercast.simulator import simulate  # noqa: PLC0415

    network = Network(channel=Channel.ONE if protocol in ON_ONE_CHANNEL else Channel.MANY)
    spread = 1.0 if protocol in {"to", "prito", "prio", "sequencer"} else 0.5
    work = Workload(messages=max(2, receipts // (nodes * (nodes - 1))), spread=spread, pattern=Pattern.EVERYBODY)
    run = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes, timing=work.timing(network, nodes)),
        network=network,
        workload=work,
        faults=(Loss(rate=loss),) if loss else (),
        seed=1,
        record=TraceDetail.NONE,
    )
    return simulate(run).counters.received


def counted(tree: Path, protocol: str, nodes: int, loss: float, receipts: int) -> tuple[int, int]:
    """Instructions of a process that does that, and the receipts."""
    words = [sys.executable, __file__, "--one", str(tree), protocol, str(nodes), str(loss), str(receipts)]
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(words, capture_output=True, check=True, env=environment)  # noqa: S603 - compiles what it imports
    ended = subprocess.run([*valgrind, *words], capture_output=True, text=True, check=True, env=environment)  # noqa: S603
    found = re.search(r"I\s+refs:\s+([\d,]+)", ended.stderr)
    assert found is not None, ended.stderr
    return int(found[1].replace(",", "")), json.loads(ended.stdout)


def each(tree: Path, protocol: str, nodes: int, loss: float, receipts: int) -> float:
    """Instructions of one receipt."""
    short, few = counted(tree, protocol, nodes, loss, receipts // 2)
    long, many = counted(tree, protocol, nodes, loss, receipts)
    return (long - short) / (many - few)


def main() -> None:
    """Prints a row for each protocol, size and loss."""
    parser = parser_for(__doc__, "half a minute for a row and a tree")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--only", default=",".join(PROTOCOLS), help="protocols")
    parser.add_argument("--nodes", default="4,16")
    parser.add_argument("--losses", default="0,0.05")
    parser.add_argument("--receipts", type=int, default=6_000, help="of the longer run")
    parser.add_argument("--one", nargs=5, help="for this program itself")
    asked = parser.parse_args()
    if asked.one:
        tree, protocol, nodes, loss, receipts = asked.one
        print(receipts_of(Path(tree), protocol, int(nodes), float(loss), int(receipts)))
        return
    trees = [HERE] if asked.against is None else [asked.against.resolve(), HERE]
    print("| protocol | nodes | loss | instructions a receipt |\n|---|---|---|---|")
    for protocol in asked.only.split(","):
        for nodes in map(int, asked.nodes.split(",")):
            for loss in map(float, asked.losses.split(",")):
                cells = [each(tree, protocol, nodes, loss, asked.receipts) for tree in trees]
                change = f" ({100 * (cells[-1] / cells[0] - 1):+.1f} %)" if len(cells) > 1 else ""
                print(
                    f"| {protocol} | {nodes} | {loss:.0%} | {' → '.join(f'{cell:,.0f}' for cell in cells)}{change} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
