"""A member behind the contract of machines: what every machine owes its host; nodes fail and join."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.config import MILLISECOND, GroupConfig, Rules, SequencerConfig
from ordercast.model.faults import Crash, Loss, Split
from ordercast.model.machine import (
    CancelTimer,
    Input,
    LogSizes,
    Machine,
    Numbered,
    Output,
    Reached,
    Submit,
    Suspect,
    ViewInstalled,
)
from ordercast.model.nodes import everybody, mask_of
from ordercast.model.runs import Network, RunConfig, TraceDetail, Workload
from ordercast.protocols.membership.by_node import SETTINGS, by_node
from ordercast.protocols.membership.machine import Phase
from ordercast.simulator.simulation import Simulation
from tests.protocols.contract import test_contract as contract
from tests.protocols.contract.group import Group

ORDERS = ("spo", "po", "st", "to", "prito", "prio", "sequencer")
SELECTIVE = {"spo", "st"}
HASTY = replace(SETTINGS, patience=1, suspected_patience=0)
CASES: list[Callable[[str, Rules], None]] = [
    contract.test_equal_inputs_give_equal_outputs,
    contract.test_a_machine_that_is_restored_before_every_input_does_the_same,
    contract.test_outputs_hold_nothing_that_can_change,
    contract.test_a_snapshot_is_a_value_that_later_inputs_do_not_change,
    contract.test_the_list_of_outputs_belongs_to_the_host,
    contract.test_nothing_lives_outside_of_the_declared_state,
    contract.test_a_fresh_machine_waits_for_nothing_and_holds_nothing,
    contract.test_levels_rise_one_by_one_and_each_once,
    contract.test_a_group_that_was_given_up_answers_nothing,
    contract.test_a_unit_of_another_protocol_is_discarded_and_changes_nothing,
    contract.test_a_timer_that_was_never_set_does_no_harm,
    contract.test_a_timer_that_does_not_run_does_nothing,
    contract.test_without_views_suspicion_changes_nothing,
    contract.test_where_everything_goes_to_all_a_subset_is_refused,
    contract.test_a_machine_says_which_network_it_needs,
    contract.test_what_it_waits_for_is_said_in_words,
]


@pytest.mark.parametrize("protocol", ORDERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__.removeprefix("test_"))
def test_it_is_a_machine_like_any_other(
    case: Callable[[str, Rules], None], protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "group_of", group_of)
    monkeypatch.setattr(contract, "machine_class", lambda name, _: by_node(name))
    case(protocol, Rules.SOUND)


@pytest.mark.parametrize("protocol", ORDERS)
def test_messages_to_nobody_or_to_strangers_are_refused(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "group_of", group_of)
    for destinations in (0, -1, 1 << contract.NODES, (1 << contract.NODES) + 1):
        contract.test_messages_to_nobody_or_to_strangers_are_refused(protocol, Rules.SOUND, destinations)


def config_of(nodes: int = 3, **settings: Any) -> GroupConfig:
    known = {name: value for name, value in settings.items() if name in {"window", "quota", "priority"}}
    return GroupConfig(**{"nodes": nodes, "window": 4, "views": True, **known})


def group_of(protocol: str, rules: Rules = Rules.SOUND, *, founders: int | None = None, **settings: Any) -> Group:
    del rules
    return Group(by_node(protocol, founders), config_of(**settings))


def _tells_once(group: Group, told: set[tuple[int, ...]], node: int, machine: Machine, event: Input) -> list[Output]:
    """Each message is numbered once, and reaches each level once, also if it is sent again in a later view.

    The timers of an epoch end with it.
    """
    did = machine.handle(event)
    if any(isinstance(output, ViewInstalled) for output in did):
        cancelled = {output.name for output in did if isinstance(output, CancelTimer)}
        assert {name for name in group.timers[node] if not name.startswith("view.")} <= cancelled
    for output in did:
        if isinstance(output, Reached | Numbered):
            level = output.level if isinstance(output, Reached) else 0
            row = (node, output.packet.source, output.packet.first, level)
            assert row not in told
            told.add(row)
    return did


@pytest.mark.parametrize("protocol", ORDERS)
def test_those_that_stay_deliver_the_same_once_and_fall_silent(protocol: str) -> None:
    """Timers fire at any time, so that members suspect each other wrongly, and some are excluded."""
    excluded = 0
    for seed in range(12):
        group = Group(by_node(protocol, None, HASTY), config_of())
        told: set[tuple[int, ...]] = set()
        group.watch = partial(_tells_once, group, told)
        chance = Random(seed)
        contract.submit_all(group, protocol, chance)
        for _ in group.disturbed(chance, 400):
            if chance.random() < 0.03:
                group.give(chance.randrange(3), Suspect(chance.randrange(8)))
        assert group.settle()
        machines: Any = group.machines
        staying = [node for node, machine in enumerate(machines) if machine.member.phase is Phase.MEMBER]
        excluded += len(machines) - len(staying)
        assert len({machines[node].member.current.view for node in staying}) == 1
        for node in staying:
            assert machines[node].waits_for() == ()
            assert machines[node].log_sizes() == LogSizes(0, 0, 0, 0, 0)
            log = group.delivered[node]
            assert len(set(log)) == len(log)
            if protocol not in SELECTIVE:
                assert set(log) == set(group.delivered[staying[0]])
                assert {seq for source, seq in log if source == node} == set(
                    range(machines[node].outputs.packets.numbered_below)
                )
    assert excluded > 0


# --- nodes fail, and the others go on ---


def simulated(protocol: str, seed: int, *faults: Any, nodes: int = 4, messages: int = 40) -> Any:
    kind: Any = by_node(protocol)
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=nodes, views=True, sequencer=SequencerConfig(resilience=nodes)),
        network=Network(channel=kind.needs),
        workload=Workload(messages=messages),
        faults=faults,
        seed=seed,
        record=TraceDetail.NONE,
    )
    return Simulation(config, machine=kind).run()


@pytest.mark.parametrize("protocol", ORDERS)
def test_in_the_simulator_the_others_go_on_without_one_that_crashes(protocol: str) -> None:
    for seed in range(3):
        node = seed % 4
        result = simulated(protocol, seed, Crash(node=node, at=2 * MILLISECOND), Loss(rate=0.05 * seed))
        assert (result.complete, result.stalled, result.aborted, result.left) == (True, False, False, (node,))


@pytest.mark.parametrize("protocol", ORDERS)
def test_in_the_simulator_a_minority_that_was_cut_off_is_excluded(protocol: str) -> None:
    result = simulated(protocol, 1, Split(side=(3,), at=2 * MILLISECOND, lasting=300 * MILLISECOND))
    assert (result.complete, result.stalled, result.left) == (True, False, (3,))


@pytest.mark.parametrize("protocol", ORDERS)
def test_without_failures_no_view_changes(protocol: str) -> None:
    result = simulated(protocol, 1, Loss(rate=0.1))
    assert (result.complete, result.stalled, result.left) == (True, False, ())


@pytest.mark.parametrize("protocol", ORDERS)
def test_nodes_that_are_no_founders_join(protocol: str) -> None:
    for seed in range(4):
        group = group_of(protocol, founders=1 + seed % 2)
        views: list[list[ViewInstalled]] = [[], [], []]

        def watched(
            node: int, machine: Machine, event: Input, views: list[list[ViewInstalled]] = views
        ) -> list[Output]:
            did = machine.handle(event)
            views[node] += [output for output in did if isinstance(output, ViewInstalled)]
            return did

        group.watch = watched
        chance = Random(f"joins/{seed}")
        for number in range(9):
            group.submit(number % 3, f"m{number}")
            for _ in group.disturbed(chance, 40, loss=0.1):
                pass
        assert group.settle()
        last = [told[-1] for told in views]
        assert last[0] == last[1] == last[2]
        assert last[0].members == everybody(3)
        assert group.machines[0].waits_for() == ()
        own = [{seq for source, seq in log if source == 2} for log in group.delivered]
        assert own[2] == {0, 1, 2}, "what it submitted before it was a member is sent"
        assert own[0] == own[1] == own[2]


@pytest.mark.parametrize("protocol", ORDERS)
def test_whoever_is_suspected_wrongly_stays(protocol: str) -> None:
    group = group_of(protocol)
    group.submit(0, "x")
    group.give(0, Suspect(mask_of([2])))
    assert group.settle()
    assert [len(log) for log in group.delivered] == [1, 1, 1]
    views: Any = [machine.member.current.view for machine in group.machines]  # type: ignore[attr-defined]
    assert {(view.number, len(view.members)) for view in views} == {(1, 3)}


def test_what_a_node_waits_for_names_nodes_not_places() -> None:
    """E1 is gone: E3 has place 1, and E2 place 0."""
    kind = by_node("spo", (1, 2))
    machine: Any = kind(1, GroupConfig(nodes=3, views=True))
    machine.handle(Submit(0b110, (1,), b"x"))
    assert [line for line in machine.waits_for() if "E3" in line]
    assert not [line for line in machine.waits_for() if "E2" in line or "E1" in line]
