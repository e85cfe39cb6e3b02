"""Nodes with durable logs: killed and started again, alone or all together, on disks that lose, tear and fail."""

import pytest
from msgspec.structs import replace

from ordercast.model.config import MILLISECOND, GroupConfig, RecoveryPolicy, Rules
from ordercast.model.errors import ConfigError
from ordercast.model.faults import DiskFailure, Fault, Join, Loss, Restart, Return
from ordercast.model.option_parsing import format_option, parse_fault
from ordercast.model.runs import WITH_LOGS, Network, RunConfig, ScriptedSend, Workload, with_later_nodes
from ordercast.protocols.registry import machine_class
from ordercast.swarm.draw_restarts import draw_restarting
from ordercast.trace.schema import EventField, EventRow
from tests.simulator.test_changing_groups import simulated

ORDERS = sorted(WITH_LOGS)
ALL = tuple(Restart(node=node, at=2 * MILLISECOND, after=(5 + node) * MILLISECOND) for node in range(3))


def config_of(protocol: str, *faults: Fault, messages: int = 20, seed: int = 0) -> RunConfig:
    return RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=with_later_nodes(3, faults), views=True),
        network=Network(channel=machine_class(protocol, Rules.SOUND).needs),
        workload=Workload(messages=messages),
        faults=faults,
        seed=seed,
        logs=True,
    ).with_default_timeouts()


def rows_of(rows: list[EventRow], kind: str) -> list[tuple[int, int | None, int | None]]:
    """Node, source and seq."""
    found = [row for row in rows if row[EventField.EVENT] == kind]
    return [(row[EventField.NODE], row[EventField.SOURCE], row[EventField.SEQ]) for row in found]


@pytest.mark.parametrize("protocol", ORDERS)
def test_what_is_delivered_is_written_in_its_order(protocol: str) -> None:
    result, rows = simulated(config_of(protocol))
    assert result.complete
    for node in range(3):
        delivered = [row for row in rows_of(rows, "deliver") if row[0] == node]
        assert [row for row in rows_of(rows, "durable") if row[0] == node] == delivered


@pytest.mark.parametrize("protocol", ORDERS)
def test_one_that_is_started_again_joins_with_its_log(protocol: str) -> None:
    result, rows = simulated(config_of(protocol, Restart(node=1, at=2 * MILLISECOND, after=20 * MILLISECOND)))
    assert (result.complete, result.members) == (True, (0, 2, 3))
    [(node, old, found)] = rows_of(rows, "restart")
    assert (node, old) == (3, 1)
    assert found is not None
    assert found >= len([row for row in rows_of(rows, "durable") if row[0] == 1]) > 0


@pytest.mark.parametrize("protocol", ORDERS)
def test_all_are_killed_and_go_on(protocol: str) -> None:
    result, rows = simulated(config_of(protocol, *ALL))
    assert (result.complete, result.members, result.view) == (True, (3, 4, 5), 1)
    assert len(rows_of(rows, "restart")) == 3


def test_two_of_three_go_on_with_the_log_of_the_one_that_is_blocked() -> None:
    result, rows = simulated(config_of("to", *ALL[:2]))
    assert (result.complete, result.members) == (True, (3, 4))
    logs = {node: [row[1:] for row in rows_of(rows, "durable") if row[0] == node] for node in range(5)}
    assert logs[3][: len(logs[2])] == logs[2]


def test_one_of_three_waits() -> None:
    result, _ = simulated(config_of("to", *ALL[:1], DiskFailure(node=1, at=0), DiskFailure(node=2, at=0)))
    assert not result.complete
    sentence = "E2, E3, which were in the last view (0: E1, E2, E3): start so many of them that a majority is there"
    assert result.waits[3] == (sentence,)


def test_a_lost_disk_is_that_of_a_new_node() -> None:
    result, rows = simulated(config_of("st", *ALL[:1], Return(node=1, at=200 * MILLISECOND)))
    assert (result.complete, result.members) == (True, (2, 3, 4))
    assert [row[0] for row in rows_of(rows, "restart")] == [3]


def test_one_whose_disk_fails_leaves() -> None:
    result, _ = simulated(config_of("prito", DiskFailure(node=1, at=2 * MILLISECOND)))
    assert (result.complete, result.members) == (True, (0, 2))


def test_one_that_joins_is_sent_the_log() -> None:
    result, rows = simulated(config_of("to", Join(node=2, at=4 * MILLISECOND), messages=30))
    assert result.complete
    logs = [[row[1:] for row in rows_of(rows, "durable") if row[0] == node] for node in range(3)]
    assert logs[0] == logs[1] == logs[2]


@pytest.mark.parametrize("number", range(8))
def test_random_restarts_lose_nothing_that_is_durable(number: int) -> None:
    simulated(draw_restarting(number, ORDERS[number % len(ORDERS)]))


def test_one_that_was_killed_before_its_view_was_on_its_disk_begins_with_those_that_know_it() -> None:
    """A random run: it had told as heard those of the view that it knew, which is not the last one."""
    simulated(draw_restarting(2143, "sequencer"))


def test_who_gave_up_a_plan_with_which_the_others_began_waits_for_nobody_any_more() -> None:
    """It did not hear that they had begun; it was in their view, was left out of the next one, and is refused."""
    config = draw_restarting(5094, "st")
    result, rows = simulated(replace(config, group=replace(config.group, recovery=RecoveryPolicy.SELECTIVE)))
    assert [node for node, _, _ in rows_of(rows, "abort")] == [6]
    assert (result.complete, result.members) == (True, (5, 7, 8, 10))


def test_equal_seeds_give_equal_runs() -> None:
    config = draw_restarting(5, "to")
    first, again = simulated(config)[1], simulated(RunConfig.from_json(config.to_json()))[1]
    assert first == again


def test_a_log_is_of_one_order_to_all() -> None:
    with pytest.raises(ConfigError, match="spo has no log: its nodes deliver different messages"):
        config_of("spo")
    with pytest.raises(ConfigError, match="the fault 'restart' needs a run with logs"):
        RunConfig(protocol="to", group=GroupConfig(nodes=6, views=True), faults=ALL)
    to_one = Workload(script=(ScriptedSend(node=0, to=(1,)),))
    with pytest.raises(ConfigError, match="every message goes to all nodes"):
        RunConfig(protocol="st", group=GroupConfig(nodes=3, views=True), workload=to_one, logs=True)


def test_a_run_without_logs_has_the_name_that_it_had() -> None:
    config = RunConfig(protocol="to", group=GroupConfig(nodes=3))
    assert "logs" not in config.to_json()


@pytest.mark.parametrize("text", ["restart node=E2 at=3ms after=9ms power=false", "disk node=E1 at=3ms"])
def test_faults_of_logs_are_options(text: str) -> None:
    fault = parse_fault(text)
    assert parse_fault(format_option(fault)) == fault


def test_losses_do_not_keep_a_group_from_beginning_anew() -> None:
    result, _ = simulated(config_of("st", *ALL, Loss(rate=0.3)))
    assert (result.complete, result.stalled) == (True, False)
