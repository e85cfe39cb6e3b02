"""What TO, PriTO and PriO cost beside ST, what losses cost TO, and what urgency is worth.

The first table is CPU time for each data unit received, without loss, all protocols on the same channel in this one
process. The others are virtual time: messages per millisecond and copies under loss on a shared medium of 1 Gbit/s;
and how long messages wait, by priority, in a stream of mostly urgent ones. Nothing here is a test.

    make bench
"""

import platform
import time
from typing import Any

from command_line import parser_for

from ordercast.model.config import MICROSECOND, GroupConfig, PriorityConfig, RecoveryPolicy
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.simulator import RunResult, simulate

REPEATS = 3
SEEDS = 3


def cost(protocol: str, nodes: int) -> float:
    """Microseconds for each receipt, best of several runs."""
    network = Network(channel=Channel.ONE)
    work = Workload(messages=60_000 // (nodes * (nodes - 1)), pattern=Pattern.EVERYBODY, priorities=9)
    group = GroupConfig(nodes=nodes, timing=work.timing(network, nodes), log_limit=4000)
    run = RunConfig(protocol=protocol, group=group, network=network, workload=work, record=TraceDetail.NONE)
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        result = simulate(run)
        best = min(best, (time.process_time() - start) / result.counters.received * 1e6)
        assert result.complete
    return best


def under_loss(protocol: str, nodes: int, loss: float, recovery: RecoveryPolicy) -> tuple[float, float]:
    """Messages per virtual millisecond, and copies for each message; means of several seeds."""
    network = Network(
        channel=Channel.ONE, propagation=10 * MICROSECOND, jitter=20 * MICROSECOND, bits_per_second=1_000_000_000
    )
    work = Workload(messages=2_000 // nodes, pattern=Pattern.EVERYBODY, size=1_000)
    group = GroupConfig(nodes=nodes, window=16, timing=work.timing(network, nodes), recovery=recovery)
    speed = copies = 0.0
    for seed in range(SEEDS):
        result = simulate(
            RunConfig(
                protocol=protocol,
                group=group,
                network=network,
                workload=work,
                faults=(Loss(rate=loss),),
                seed=seed,
                record=TraceDetail.NONE,
            )
        )
        assert result.complete
        speed += result.counters.sent / result.virtual_time * 1e6 / SEEDS
        copies += result.counters.retransmitted / result.counters.sent / SEEDS
    return speed, copies


def urgent_stream(protocol: str, *, synchronises: bool = True, loss: float = 0.0) -> RunResult:
    """Six nodes, nine of ten packets of the highest of nine priorities."""
    network, work = Network(channel=Channel.ONE), Workload(messages=400, gap=50 * MICROSECOND, priorities=9, urgent=0.9)
    group = GroupConfig(
        nodes=6,
        priority=PriorityConfig(synchronises=synchronises),
        timing=work.timing(network, 6),
        polls_to_abort=10**6,
    )
    return simulate(
        RunConfig(
            protocol=protocol,
            group=group,
            network=network,
            workload=work,
            faults=(Loss(rate=loss),),
            record=TraceDetail.NONE,
        )
    )


def main() -> None:
    """Prints the tables."""
    parser_for(__doc__, "some minutes").parse_args()
    print(f"Python {platform.python_version()} on {platform.machine()}; everybody sends at once; best of {REPEATS}")
    print(f"{'nodes':>5} {'st µs':>7} {'to µs':>7} {'prito µs':>8}")
    for nodes in (4, 16):
        print(
            f"{nodes:>5} {cost('st', nodes):>7.1f} {cost('to', nodes):>7.1f} {cost('prito', nodes):>8.1f}", flush=True
        )

    print(f"\n2,000 messages of 1,000 bytes to everybody, 1 Gbit/s, window 16; messages/ms and copies; {SEEDS} seeds")
    print(f"{'nodes':>5} {'loss':>5} {'to':>14} {'st selective':>14} {'st go-back-n':>14}")
    rows = (("to", RecoveryPolicy.SELECTIVE), ("st", RecoveryPolicy.SELECTIVE), ("st", RecoveryPolicy.GO_BACK_N))
    for loss in (0.0, 0.001, 0.01, 0.05):
        found = [under_loss(protocol, 8, loss, recovery) for protocol, recovery in rows]
        told = " ".join(f"{speed:>8.1f} {copies:>5.2f}" for speed, copies in found)
        print(f"{8:>5} {loss:>5.1%} {told}", flush=True)

    print("\nsix nodes, nine of ten packets urgent (9), 400 by each node in 20 ms; waiting in µs: median, longest")
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("to", {}),
        ("prito", {}),
        ("prio", {}),
        ("prito, runs not ended", {"synchronises": False}),
        ("to, 0.1 % loss", {"loss": 0.001}),
        ("prito, 0.1 % loss", {"loss": 0.001}),
    )
    for name, how in cases:
        counters = urgent_stream(name.split(",")[0], **how).counters
        waited = [(priority, counters.waiting[priority]) for priority in (9, 8, 1)]
        told = "   ".join(f"{who}: {by.percentile(50) / 1e3:>6.0f} {by.highest / 1e3:>6.0f}" for who, by in waited)
        print(f"{name:>22}   {told}   {counters.control:>6} control units", flush=True)


if __name__ == "__main__":
    main()
