"""TO, PriTO and PriO in random configurations: every run finishes, falls silent and keeps its promises.

A run is decided by its protocol and number alone: `run_and_audit(draw_config(NUMBER, protocol="prito"))` brings a
failure back.
"""

import pytest

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Crash, Loss
from ordercast.model.machine import Level
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Workload
from ordercast.simulator import simulate
from ordercast.swarm.draw import draw_config
from tests.swarm.audited_runs import failures, run_and_audit

PROTOCOLS = ("to", "prito", "prio")
CHUNK = 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("first", range(0, 4, CHUNK))
def test_a_swarm_of_random_runs_holds(protocol: str, first: int) -> None:
    for number in range(first, first + CHUNK):
        result, verdict = run_and_audit(draw_config(number, protocol=protocol, receipts=600))
        assert not failures(result, verdict), f"number {number}"
        assert result.counters.delivered > 0


def test_the_swarm_is_of_all_sorts() -> None:
    """What a swarm is worth depends on what it draws."""
    configs = [draw_config(number, protocol="prito") for number in range(200)]
    assert {config.protocol for config in configs} == {"prito"}
    assert {config.network.channel for config in configs} == {Channel.ONE}
    assert {config.workload.priorities for config in configs} == {1, 2, 3, 9}
    assert {config.workload.urgent for config in configs} == {0.0, 0.1, 0.5}
    assert {config.group.priority.synchronises for config in configs} == {False, True}
    assert {config.group.quota for config in configs} >= {1, 2, 256}
    assert {config.network.receive_buffer for config in configs} == {0, 4, 16}
    rates = {fault.rate for config in configs for fault in config.faults if isinstance(fault, Loss)}
    assert rates == {0.0, 0.01, 0.05, 0.1, 0.2, 0.3}
    kinds = {type(fault).__name__ for config in configs for fault in config.faults}
    assert kinds == {"Loss", "Bursts", "Duplicates", "Pause", "Split"}
    assert all(config.with_default_timeouts() == config for config in configs)
    assert len({config.name() for config in configs}) == 200


def test_what_is_drawn_for_others_does_not_depend_on_priorities() -> None:
    for number in range(20):
        spo, total = draw_config(number), draw_config(number, protocol="prito")
        assert (spo.workload.priorities, spo.workload.urgent, spo.seed) == (1, 0.0, total.seed)
        assert spo.group.priority == GroupConfig(nodes=2).priority


# --- losses that a group brings upon itself ---


@pytest.mark.parametrize("protocol", PROTOCOLS[:2])
@pytest.mark.parametrize(("nodes", "buffer", "drained"), [(8, 4, False), (16, 4, True), (16, 16, False)])
def test_receivers_that_overrun_do_not_keep_a_group_from_agreeing(
    protocol: str, nodes: int, buffer: int, drained: bool
) -> None:
    """All answer at one instant, and no receiver has room for all: the same ones would be lost for ever."""
    network = Network(channel=Channel.ONE, jitter=0, receive_time=5_000, receive_buffer=buffer, drained=drained)
    work = Workload(messages=4, pattern=Pattern.EVERYBODY, priorities=9)
    group = GroupConfig(nodes=nodes, polls_to_abort=10**9)
    config = RunConfig(protocol=protocol, group=group, network=network, workload=work).with_default_timeouts()
    result, verdict = run_and_audit(config)
    assert not failures(result, verdict)
    assert result.counters.lost > 0
    assert result.counters.recoveries <= 4 * work.messages * nodes, "each going back brings something"


@pytest.mark.parametrize("rate", [0.3, 0.5])
def test_each_going_back_brings_something_however_much_is_lost(rate: float) -> None:
    """Of sixteen nodes hardly ever all hear a unit: (1 - 0.3)^16 is 0.3 %, (1 - 0.5)^16 is 0.002 %."""
    network, work = Network(channel=Channel.ONE), Workload(messages=3, priorities=9)
    group = GroupConfig(nodes=16, polls_to_abort=10**9)
    config = RunConfig(protocol="prito", group=group, network=network, workload=work, faults=(Loss(rate=rate),))
    result, verdict = run_and_audit(config.with_default_timeouts())
    assert not failures(result, verdict)
    assert result.counters.recoveries <= 5 * work.messages * 16


# --- a group that is given up ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_gives_up_a_group_in_which_one_has_failed_has_told_the_truth(protocol: str) -> None:
    for seed in range(6):
        network = Network(channel=Channel.ONE)
        work = Workload(messages=40, priorities=9)
        faults = (Loss(rate=0.02), Crash(node=1, at=(1 + seed) * 1_000_000))
        group = GroupConfig(nodes=4, polls_to_abort=8)
        run = RunConfig(protocol=protocol, group=group, network=network, workload=work, faults=faults, seed=seed)
        result, verdict = run_and_audit(run.with_default_timeouts())
        assert result.aborted
        assert verdict.holds, failures(result, verdict)


# --- what urgency is worth ---


def test_urgent_packets_wait_less_than_others_and_hardly_more_than_in_channel_order() -> None:
    network = Network(channel=Channel.ONE, bits_per_second=100_000_000)
    work = Workload(messages=150, priorities=9, urgent=0.1, gap=400_000, size=500)
    results = {
        protocol: simulate(
            RunConfig(
                protocol=protocol, group=GroupConfig(nodes=6), network=network, workload=work
            ).with_default_timeouts()
        )
        for protocol in ("to", "prito")
    }
    assert all(result.complete for result in results.values())
    waiting = {
        protocol: [result.counters.waiting[priority].percentile(50) for priority in (9, 1)]
        for protocol, result in results.items()
    }
    urgent, other = waiting["prito"]
    assert urgent < 0.8 * other
    assert abs(waiting["to"][0] - waiting["to"][1]) < 0.2 * waiting["to"][0], "TO knows no priorities"
    assert urgent < 1.15 * waiting["to"][0]
    acknowledged = [result.counters.latency[Level.ACKNOWLEDGED].percentile(50) for result in results.values()]
    assert acknowledged[1] < 1.1 * acknowledged[0]
