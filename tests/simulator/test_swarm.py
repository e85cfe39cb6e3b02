"""Random configurations and a grid of them: every run finishes, falls silent and keeps what its service promises.

A run is decided by its number alone: `run_and_audit(draw_config(NUMBER))` brings a failure back.
"""

import sys
from itertools import product

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Loss
from ordercast.model.runs import Channel, Network, RunConfig, Workload
from ordercast.swarm.draw import draw_config
from tests.swarm.audited_runs import failures, run_and_audit

CHUNK = 5


@pytest.mark.parametrize("first", range(0, 5, CHUNK))
def test_a_swarm_of_random_runs_holds(first: int) -> None:
    for number in range(first, first + CHUNK):
        result, verdict = run_and_audit(draw_config(number, receipts=2_000))
        assert not failures(result, verdict), f"number {number}"
        assert result.counters.delivered > 0


def test_the_swarm_is_of_all_sorts() -> None:
    """What a swarm is worth depends on what it draws."""
    configs = [draw_config(number) for number in range(200)]
    assert {config.group.nodes for config in configs} == set(range(2, 17))
    assert {config.network.channel for config in configs} == {Channel.ONE, Channel.MANY}
    assert len({config.workload.pattern for config in configs}) == 5
    kinds = {type(fault).__name__ for config in configs for fault in config.faults}
    assert kinds >= {"Loss", "Bursts", "Duplicates", "Pause", "Split"}
    assert any(config.network.receive_buffer for config in configs)
    assert any(config.group.first_seq for config in configs)
    assert {config.group.infer_losses for config in configs} == {False, True}
    assert len({config.name() for config in configs}) == 200


# --- a grid ---

Ground = tuple[str, Channel]
"""A protocol and a channel that it runs on."""
GROUNDS: list[Ground] = [("spo", Channel.ONE), ("spo", Channel.MANY), ("st", Channel.ONE)]


def at(ground: Ground, nodes: int, spread: float, loss: float, receipts: int) -> RunConfig:
    """The run at a point of the grid, with about so many receipts."""
    protocol, channel = ground
    network = Network(channel=channel)
    workload = Workload(messages=max(2, receipts // (nodes * (nodes - 1))), spread=spread)
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes, polls_to_abort=10**9, timing=workload.timing(network, nodes)),
        network=network,
        workload=workload,
        faults=(Loss(rate=loss),),
        seed=nodes,
    )


def require_good(config: RunConfig, loss: float) -> int:
    """Runs and judges it; gives back how many deliveries it had."""
    result, verdict = run_and_audit(config)
    assert not failures(result, verdict), config.to_json()
    assert (result.counters.lost > 0) == (loss > 0)
    return result.counters.delivered


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("nodes", [2, 3, 9])
def test_a_small_grid_holds(nodes: int, ground: Ground) -> None:
    for spread, loss in product((0.1, 0.5, 1.0), (0.0, 0.3)):
        require_good(at(ground, nodes, spread, loss, receipts=300), loss)


@pytest.mark.soak
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("nodes", range(2, 17))
def test_a_large_grid_holds(nodes: int, ground: Ground) -> None:
    points = list(product((0.1, 0.2, 0.3, 0.5, 0.75, 1.0), (0.0, 0.01, 0.05, 0.1, 0.2, 0.3)))
    delivered = sum(require_good(at(ground, nodes, *point, receipts=6_000), point[1]) for point in points)
    say(
        f"grid: {ground[0]}, {nodes} nodes on {ground[1].value}: {len(points)} runs, {delivered:,} deliveries, all good"
    )


def say(line: str) -> None:
    """To whoever waits for it: standard error is what reaches people from a worker."""
    sys.stderr.write(f"\n{line}")
    sys.stderr.flush()
