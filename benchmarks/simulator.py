"""How fast the simulator is: data units received per second on one core, for SPO.

Each line is the best of several runs in this one process; nothing here is a test. Run it on a quiet machine:

    make bench
"""

import platform
import tempfile
import time
from pathlib import Path

from command_line import parser_for

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Loss
from ordercast.model.runs import Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.simulator import simulate

REPEATS = 3


def config(nodes: int, spread: float, loss: float, record: TraceDetail, receipts: int) -> RunConfig:
    """A saturated run of about so many receipts."""
    network = Network()
    work = Workload(messages=receipts // (nodes * (nodes - 1)), spread=spread, pattern=Pattern.EVERYBODY)
    return RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=nodes, timing=work.timing(network, nodes)),
        network=network,
        workload=work,
        faults=(Loss(rate=loss),) if loss else (),
        seed=1,
        record=record,
    )


def measure(run: RunConfig, *, traced: bool) -> tuple[float, int]:
    """Receipts a second of the best of several runs, and the receipts of one."""
    best, receipts = 0.0, 0
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            result = simulate(run, Path(folder) / "trace" if traced else None)
            took = time.process_time() - start
        assert result.complete
        receipts = result.counters.received
        best = max(best, receipts / took)
    return best, receipts


def main() -> None:
    """Prints the table."""
    parser = parser_for(__doc__, "some minutes")
    parser.add_argument("receipts", nargs="?", type=int, default=150_000, help="of each run; default: 150000")
    receipts = parser.parse_args().receipts
    print(f"Python {platform.python_version()} on {platform.machine()}; everybody sends at once; best of {REPEATS}")
    print(f"{'nodes':>5} {'spread':>6} {'loss':>5} {'record':>10} {'receipts':>9} {'receipts/s':>10} {'µs each':>8}")
    for nodes in (4, 16, 64):
        for spread, loss, record in (
            (0.5, 0.0, TraceDetail.NONE),
            (1.0, 0.0, TraceDetail.NONE),
            (0.5, 0.05, TraceDetail.NONE),
            (0.5, 0.0, TraceDetail.DELIVERIES),
            (0.5, 0.0, TraceDetail.ALL),
        ):
            speed, count = measure(config(nodes, spread, loss, record, receipts), traced=record is not TraceDetail.NONE)
            told = f"{nodes:>5} {spread:>6} {loss:>5.0%} {record.value:>10} {count:>9,}"
            print(f"{told} {speed:>10,.0f} {1e6 / speed:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
