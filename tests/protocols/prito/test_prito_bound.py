"""How long a packet of PriTO waits at most, whatever is more urgent; and that without ends of runs it starves.

With d the longest way of a unit, and timers of T (`run`) and δ (`status`) that fire before 2T and 2δ: after d everybody
has the packet, after 2δ + d more everybody knows that, after 2δ + d more everybody knows that everybody knows (it is
acknowledged). It waits for less than 2T until a marker is sent that covers it, which everybody has after d more, and
knows everybody to have after 2δ + d more: 2T + 5d + 6δ.
"""

from itertools import product

import pytest

from ordercast.model.config import MICROSECOND, GroupConfig, PriorityConfig
from ordercast.model.faults import Fault, Loss, Miss, UnitKind
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
from ordercast.simulator import RunResult, simulate


def stream(
    *,
    nodes: int = 3,
    messages: int = 400,
    gap: int = 40 * MICROSECOND,
    pattern: Pattern = Pattern.STEADY,
    synchronises: bool = True,
    faults: tuple[Fault, ...] = (),
    seed: int = 0,
    jitter: int = 50 * MICROSECOND,
) -> RunConfig:
    """Nearly all packets are urgent, and more come than can be acknowledged before the next."""
    network = Network(channel=Channel.ONE, jitter=jitter)
    work = Workload(messages=messages, gap=gap, pattern=pattern, priorities=3, urgent=0.9)
    group = GroupConfig(
        nodes=nodes,
        priority=PriorityConfig(synchronises=synchronises),
        timing=work.timing(network, nodes),
        polls_to_abort=10**9,
    )
    return RunConfig(
        protocol="prito", group=group, network=network, workload=work, faults=faults, seed=seed, record=TraceDetail.NONE
    )


def longest(result: RunResult) -> int:
    """The longest time from the send of any packet to its delivery anywhere."""
    assert result.complete, result.waits
    return max(waited.highest for waited in result.counters.waiting.values())


def way(config: RunConfig) -> int:
    """d."""
    return config.network.propagation + config.network.jitter


def bound(config: RunConfig) -> int:
    """2T + 5d + 6δ."""
    timing = config.group.timing
    return 2 * timing.run + 5 * way(config) + 6 * timing.status


def after_a_loss(config: RunConfig, patience: int = 1) -> int:
    """What one lost unit adds: until somebody asks, until the group has gone back, and until all is said once more."""
    return 4 * patience * config.group.timing.poll + 4 * way(config) + bound(config)


CALM = list(product((2, 3, 6, 12), (Pattern.STEADY, Pattern.POISSON, Pattern.BURSTY), range(3)))


@pytest.mark.parametrize(("nodes", "pattern", "seed"), CALM)
def test_without_loss_nothing_waits_longer_than_the_bound(nodes: int, pattern: Pattern, seed: int) -> None:
    config = stream(nodes=nodes, messages=400 // nodes, pattern=pattern, seed=seed, gap=(20 + 20 * seed) * MICROSECOND)
    result = simulate(config)
    assert result.counters.recoveries == 0
    assert longest(result) <= bound(config)


def test_without_ends_of_runs_a_packet_waits_until_the_stream_ends() -> None:
    short, long = (stream(messages=messages, synchronises=False) for messages in (400, 1_200))
    lasts = {config: config.workload.messages * config.workload.gap for config in (short, long)}
    assert all(lasts[config] > 3 * bound(config) for config in lasts)
    for config, duration in lasts.items():
        assert longest(simulate(config)) > 0.7 * duration
    ended = stream(messages=1_200)
    assert longest(simulate(ended)) <= bound(ended)


def test_the_bound_is_not_far_from_what_happens() -> None:
    config = stream()
    assert longest(simulate(config)) > bound(config) / 3


@pytest.mark.parametrize("kind", [UnitKind.DATA, UnitKind.CONTROL])
def test_one_lost_unit_adds_no_more_than_one_going_back(kind: UnitKind) -> None:
    for node, source, nth in product(range(3), range(3), (1, 7, 30)):
        config = stream(messages=60, faults=(Miss(node=node, source=source, nth=nth, kind=kind),))
        result = simulate(config)
        assert result.counters.lost <= 1
        assert result.counters.recoveries <= 3
        assert longest(result) <= bound(config) + after_a_loss(config)


@pytest.mark.parametrize(("rate", "seed"), list(product((0.005, 0.02, 0.1), range(4))))
def test_each_lost_unit_adds_no_more_than_one_going_back(rate: float, seed: int) -> None:
    config = stream(nodes=4, messages=60, faults=(Loss(rate=rate),), seed=seed)
    result = simulate(config)
    assert result.counters.lost > 0
    assert longest(result) <= bound(config) + result.counters.lost * after_a_loss(config, patience=4)
