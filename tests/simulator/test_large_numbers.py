"""Runs whose senders' numbers pass powers of two at which a counter of fewer bits would begin anew."""

import pytest

from ordercast.model.config import GroupConfig, Rules
from ordercast.model.faults import Loss
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.protocols.registry import PROTOCOLS, machine_class
from ordercast.simulator import simulate
from ordercast.swarm.run_audit import failures_of


@pytest.mark.parametrize("power", [16, 31, 32])
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_a_number_of_many_digits_is_a_number_like_any_other(protocol: str, power: int) -> None:
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=3, first_seq=((1 << power) - 4,) * 3),
        network=Network(channel=machine_class(protocol, Rules.SOUND).needs),
        workload=Workload(messages=12),
        faults=(Loss(rate=0.1),),
    ).with_default_timeouts()
    assert list(failures_of(config)) == []
    result = simulate(config)
    assert (result.complete, result.counters.delivered) == (True, 3 * 3 * 12)
