"""The fault `quit`: the host of a node gives the group up, and the others go on."""

import pytest

from ordercast.model.config import MILLISECOND, GroupConfig, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Leave, Quit, Suspicion
from ordercast.model.option_parsing import parse_fault
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.protocols.registry import PROTOCOLS, machine_class
from ordercast.simulator.simulate import simulate
from ordercast.swarm.draw_membership import draw_changing
from ordercast.swarm.run_audit import failures_of


def a_run(protocol: str, *faults: Quit | Leave) -> RunConfig:
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=4, views=True),
        workload=Workload(messages=10),
        network=Network(channel=machine_class(protocol, Rules.SOUND).needs),
        faults=faults,
    )
    return config.with_default_timeouts()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_others_go_on_without_it_and_nobody_waits(protocol: str) -> None:
    config = a_run(protocol, Quit(node=1, at=2 * MILLISECOND))
    result = simulate(config)
    assert result.aborted_nodes == (1,)
    assert result.complete
    assert not any(result.waits)
    assert not failures_of(config)


def test_who_has_left_does_not_give_up_any_more() -> None:
    result = simulate(a_run("to", Leave(node=1, at=MILLISECOND), Quit(node=1, at=900 * MILLISECOND)))
    assert result.aborted_nodes == ()
    assert result.left == (1,)


def test_it_is_written_as_other_faults_are_and_wrong_values_are_refused() -> None:
    assert parse_fault("quit node=E2 at=3ms") == Quit(node=1, at=3 * MILLISECOND)
    with pytest.raises(ConfigError, match="a quit needs `at` >= 0, not -1"):
        Quit(node=1, at=-1)
    with pytest.raises(ConfigError, match="the fault 'quit' needs a group with views"):
        RunConfig(protocol="to", group=GroupConfig(nodes=3), faults=(Quit(node=1, at=0),))


def test_random_runs_have_hosts_that_give_up_and_suspicions_at_one_moment() -> None:
    quits = moments = 0
    for number in range(200):
        faults = draw_changing(number, "st").faults
        quits += any(isinstance(fault, Quit) for fault in faults)
        times = [fault.at for fault in faults if isinstance(fault, Suspicion)]
        moments += len(set(times)) < len(times)
    assert quits >= 10
    assert moments >= 10
