"""What ST costs beside SPO, and what losses cost it.

The first table is CPU time for each data unit received, without loss, of both protocols on the same channel in this
one process. The second is virtual time: messages acknowledged per millisecond on a shared medium of 1 Gbit/s, relative
to the same run without loss. Nothing here is a test.

    make bench
"""

import platform
import time

from command_line import parser_for

from ordercast.model.config import MICROSECOND, GroupConfig, RecoveryPolicy
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.simulator import simulate

REPEATS = 3
SEEDS = 5


def cost(protocol: str, nodes: int, spread: float) -> float:
    """Microseconds for each receipt, best of several runs."""
    network = Network(channel=Channel.ONE)
    work = Workload(messages=60_000 // (nodes * (nodes - 1)), spread=spread, pattern=Pattern.EVERYBODY)
    group = GroupConfig(nodes=nodes, timing=work.timing(network, nodes), log_limit=4000)
    run = RunConfig(protocol=protocol, group=group, network=network, workload=work, record=TraceDetail.NONE)
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        result = simulate(run)
        best = min(best, (time.process_time() - start) / result.counters.received * 1e6)
        assert result.complete
    return best


def throughput(nodes: int, loss: float, recovery: RecoveryPolicy) -> float:
    """Messages per virtual millisecond, mean of several seeds."""
    network = Network(
        channel=Channel.ONE, propagation=10 * MICROSECOND, jitter=20 * MICROSECOND, bits_per_second=1_000_000_000
    )
    work = Workload(messages=2_000 // nodes, spread=0.5, pattern=Pattern.EVERYBODY, size=1_000)
    group = GroupConfig(nodes=nodes, window=16, timing=work.timing(network, nodes), recovery=recovery)
    total = 0.0
    for seed in range(SEEDS):
        run = RunConfig(
            protocol="st",
            group=group,
            network=network,
            workload=work,
            faults=(Loss(rate=loss),),
            seed=seed,
            record=TraceDetail.NONE,
        )
        result = simulate(run)
        assert result.complete
        total += result.counters.sent / result.virtual_time * 1e6
    return total / SEEDS


def main() -> None:
    """Prints the two tables."""
    parser_for(__doc__, "some minutes").parse_args()
    print(f"Python {platform.python_version()} on {platform.machine()}; everybody sends at once; best of {REPEATS}")
    print(f"{'nodes':>5} {'spread':>6} {'spo µs':>7} {'st µs':>7} {'st/spo':>6}")
    for nodes in (4, 16):
        for spread in (0.5, 1.0):
            spo, st = cost("spo", nodes, spread), cost("st", nodes, spread)
            print(f"{nodes:>5} {spread:>6} {spo:>7.1f} {st:>7.1f} {st / spo:>6.2f}", flush=True)
    print(f"\nst, 2,000 messages of 1,000 bytes to half of the group, 1 Gbit/s, window 16; mean of {SEEDS} seeds")
    heads = "   ".join(f"{way.value:>9} {'relative':>8}" for way in RecoveryPolicy)
    print(f"{'nodes':>5} {'loss':>5}   {heads}")
    for nodes in (8, 16):
        bases: dict[RecoveryPolicy, float] = {}
        for loss in (0.0, 0.001, 0.01, 0.05):
            speeds = {recovery: throughput(nodes, loss, recovery) for recovery in RecoveryPolicy}
            bases = bases or speeds
            told = "   ".join(f"{speeds[way]:>9.1f} {speeds[way] / bases[way]:>8.2f}" for way in RecoveryPolicy)
            print(f"{nodes:>5} {loss:>5.1%}   {told}", flush=True)


if __name__ == "__main__":
    main()
