"""What every machine owes its host, whatever its protocol: one suite, held against all of them.

See `ordercast.model.machine` for the contract. What a protocol promises to applications is tested where the protocol
is; what is asked here a simulator, an explorer and a live host rely on.
"""

from enum import Enum
from random import Random
from typing import Any

import msgspec
import pytest

from ordercast.model.config import (
    GroupConfig,
    LossInference,
    PaperRules,
    PriorityConfig,
    RecoveryPolicy,
    Rules,
    SequencerConfig,
    SequencerReadings,
)
from ordercast.model.declared_state import DeclaredState, declared_names
from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import (
    Abort,
    Deliver,
    Discard,
    Drained,
    Echo,
    GiveUp,
    Input,
    Level,
    LogSizes,
    Machine,
    Output,
    Reached,
    Receive,
    SetTimer,
    Submit,
    Suspect,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.runs import Channel
from ordercast.model.units import Unit
from ordercast.protocols.registry import PROTOCOLS, machine_class
from tests.protocols.contract.group import Group, Watch

NODES = 3
SOUND = [(protocol, Rules.SOUND) for protocol in PROTOCOLS]
EVERY = [(protocol, rules) for protocol, by_rules in PROTOCOLS.items() for rules in by_rules]
SELECTIVE = {"spo", "st"}
PRIORITISED = {"prito", "prio"}
every_machine = pytest.mark.parametrize(("protocol", "rules"), EVERY, ids=lambda value: getattr(value, "value", value))
every_sound_machine = pytest.mark.parametrize(
    ("protocol", "rules"), SOUND, ids=lambda value: getattr(value, "value", value)
)


SEQUENCER_READINGS: list[dict[str, Any]] = [{}, {"first_id": 1}, {"first_id": 1, "acknowledges_last": True}]
SEQUENCER_READINGS += [{**SEQUENCER_READINGS[-1], "advances_own_row": True, "whole_answers": True, "asks_once": True}]
SEQUENCER_READINGS += [{**SEQUENCER_READINGS[-1], "older_are_duplicates": True, "elects": True}]


def drawn_settings(seed: int) -> dict[str, Any]:
    """Whatever a group can be told to do otherwise, in any combination; a protocol takes what concerns it."""
    chance = Random(f"settings/{seed}")

    def maybe() -> bool:
        return chance.random() < 0.5

    return {
        "window": chance.choice([1, 2, 4, 16]),
        "quota": chance.choice([1, 2, 4, 64]),
        "log_limit": chance.choice([1, 3, 400]),
        "infer_losses": maybe(),
        "recovery": chance.choice(list(RecoveryPolicy)),
        "first_seq": chance.choice([(), (3, 0, 5)]),
        "priority": PriorityConfig(synchronises=maybe()),
        "sequencer": SequencerConfig(
            node=chance.choice([0, 2]),
            history=chance.choice([1, 4, 64]),
            resilience=chance.choice([0, 1, 2]),
            direct_from=chance.choice([1, 1400]),
            suspect_after=chance.choice([1, 8]),
        ),
        "paper": PaperRules(
            condition_2=chance.choice(list(LossInference)),
            duplicates_first=maybe(),
            verbatim_copies=maybe(),
            keeps_behind_gap=maybe(),
            preacknowledged_time_out=maybe(),
            sends_again_in_time=maybe(),
            sequencer=SequencerReadings(**SEQUENCER_READINGS[seed % len(SEQUENCER_READINGS)]),
        ),
    }


def group_of(protocol: str, rules: Rules, **settings: Any) -> Group:
    config = GroupConfig(**{"nodes": NODES, "rules": rules, "window": 4, "polls_to_abort": 1000, **settings})
    return Group(machine_class(protocol, rules, config.recovery), config)


def submit_all(group: Group, protocol: str, chance: Random, messages: int = 12) -> None:
    for number in range(messages):
        node = chance.randrange(NODES)
        to = chance.randrange(1, 1 << NODES) if protocol in SELECTIVE else everybody(NODES)
        group.submit(node, f"m{number}", to, chance.randrange(4) if protocol in PRIORITISED else 0)


def in_bytes(outputs: list[Output]) -> bytes:
    return msgspec.json.encode([(type(output).__name__, output) for output in outputs])


def run(group: Group, protocol: str, seed: int, steps: int = 250) -> None:
    chance = Random(seed)
    submit_all(group, protocol, chance)
    for _ in group.disturbed(chance, steps):
        pass


# --- a machine is a function of its inputs ---


@every_machine
def test_equal_inputs_give_equal_outputs(protocol: str, rules: Rules) -> None:
    found = []
    for _ in range(2):
        group = group_of(protocol, rules)
        outputs: list[bytes] = []

        def recorded(node: int, machine: Machine, event: Input, outputs: list[bytes] = outputs) -> list[Output]:
            did = machine.handle(event)
            outputs.append(bytes([node]) + in_bytes(did))
            return did

        group.watch = recorded
        run(group, protocol, seed=7)
        found.append((outputs, [machine.snapshot() for machine in group.machines]))
    assert found[0] == found[1]


@every_machine
def test_a_machine_that_is_restored_before_every_input_does_the_same(protocol: str, rules: Rules) -> None:
    """Also on a machine that was elsewhere: restoring forgets everything else."""
    for seed in range(8):
        group = group_of(protocol, rules, **drawn_settings(seed))
        group.watch = _restoring(group)
        run(group, protocol, seed)


def _restoring(group: Group) -> Watch:
    """Each input is also given to a twin that is restored before it."""
    twins = [group.kind(node, group.config) for node in range(NODES)]

    def twice(node: int, machine: Machine, event: Input) -> list[Output]:
        before, twin = machine.snapshot(), twins[node]
        twin.restore(before)
        assert twin.snapshot() == before
        assert twin == machine
        did = machine.handle(event)
        assert in_bytes(twin.handle(event)) == in_bytes(did)
        assert twin.snapshot() == machine.snapshot()
        if hash(before) % 3 == 0:  # the next time it is restored from somewhere else
            twin.handle(Submit(everybody(NODES), (1,), b"x", 1))
            twin.handle(Drained())
        return did

    return twice


def is_frozen(value: object) -> bool:
    if isinstance(value, msgspec.Struct):
        return value.__struct_config__.frozen and all(
            is_frozen(getattr(value, name)) for name in value.__struct_fields__
        )
    if isinstance(value, tuple):
        return all(map(is_frozen, value))
    return value is None or isinstance(value, int | str | bytes | Enum)


@every_machine
def test_outputs_hold_nothing_that_can_change(protocol: str, rules: Rules) -> None:
    group = group_of(protocol, rules)

    def watched(node: int, machine: Machine, event: Input) -> list[Output]:
        del node
        did = machine.handle(event)
        assert all(map(is_frozen, did))
        return did

    group.watch = watched
    run(group, protocol, seed=8)


@every_machine
def test_a_snapshot_is_a_value_that_later_inputs_do_not_change(protocol: str, rules: Rules) -> None:
    group = group_of(protocol, rules)
    taken: list[tuple[object, int, str]] = []

    def photographed(node: int, machine: Machine, event: Input) -> list[Output]:
        del node
        taken.append((machine.snapshot(), hash(machine.snapshot()), repr(machine.snapshot())))
        return machine.handle(event)

    group.watch = photographed
    run(group, protocol, seed=3, steps=80)
    assert all(hash(snapshot) == number and repr(snapshot) == text for snapshot, number, text in taken)


@every_machine
def test_the_list_of_outputs_belongs_to_the_host(protocol: str, rules: Rules) -> None:
    group, other = group_of(protocol, rules), group_of(protocol, rules)

    def cleared(node: int, machine: Machine, event: Input) -> list[Output]:
        did = machine.handle(event)
        again = other.machines[node].handle(event)
        assert in_bytes(again) == in_bytes(did)
        again.clear()
        return did

    group.watch = cleared
    run(group, protocol, seed=5)


# --- state ---


def parts_of(part: DeclaredState) -> list[DeclaredState]:
    """A machine and all its parts."""
    found, waiting = [], [part]
    while waiting:
        found.append(waiting.pop())
        for name in declared_names(type(found[-1])):
            value = getattr(found[-1], name)
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, DeclaredState) and not any(each is known for known in [*found, *waiting]):
                    waiting.append(each)
    return found


def variables_of(part: object) -> set[str]:
    slots = {name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ())}
    return {*getattr(part, "__dict__", {}), *(name for name in slots if hasattr(part, name))}


@every_machine
def test_nothing_lives_outside_of_the_declared_state(protocol: str, rules: Rules) -> None:
    """Every variable is declared, of every part; what is declared to be final never changes."""
    group = group_of(protocol, rules)
    run(group, protocol, seed=1)
    for machine in group.machines:
        assert isinstance(machine, DeclaredState)
        for part in parts_of(machine):
            assert variables_of(part) == declared_names(type(part)), type(part)


# --- ends ---


@every_machine
def test_a_fresh_machine_waits_for_nothing_and_holds_nothing(protocol: str, rules: Rules) -> None:
    for machine in group_of(protocol, rules).machines:
        assert machine.waits_for() == ()
        assert machine.log_sizes() == LogSizes(0, 0, 0, 0, 0)


@every_sound_machine
def test_when_nothing_is_lost_any_more_everything_is_delivered_once_and_all_fall_silent(
    protocol: str, rules: Rules
) -> None:
    for seed in range(4):
        group = group_of(protocol, rules)
        run(group, protocol, seed)
        assert group.settle(), "it never falls silent"
        assert not group.aborted
        for machine, delivered in zip(group.machines, group.delivered, strict=True):
            assert machine.waits_for() == ()
            assert machine.log_sizes() == LogSizes(0, 0, 0, 0, 0)
            assert len(set(delivered)) == len(delivered)
        if protocol not in SELECTIVE:
            assert {len(delivered) for delivered in group.delivered} == {12}


@every_sound_machine
def test_levels_rise_one_by_one_and_each_once(protocol: str, rules: Rules) -> None:
    group = group_of(protocol, rules)
    levels: dict[tuple[int, int, int], list[Level]] = {}

    def watched(node: int, machine: Machine, event: Input) -> list[Output]:
        did = machine.handle(event)
        for output in did:
            if isinstance(output, Reached):
                levels.setdefault((node, output.packet.source, output.packet.seq), []).append(output.level)
        return did

    group.watch = watched
    run(group, protocol, seed=2)
    assert group.settle()
    assert levels
    assert all(found == sorted(set(found)) for found in levels.values())


@every_sound_machine
def test_a_group_that_was_given_up_answers_nothing(protocol: str, rules: Rules) -> None:
    group = group_of(protocol, rules)
    run(group, protocol, seed=4, steps=100)
    for node, machine in enumerate(group.machines):
        if node in group.aborted:
            continue
        *before, last = machine.handle(GiveUp("enough"))
        assert last == Abort("enough")
        assert all(isinstance(output, Deliver) for output in before)
        events: list[Input] = [GiveUp("again"), Drained(), TimerFired("status"), Suspect(1 << (node + 1) % NODES)]
        events += [Submit(everybody(NODES), (1,), b"x")]
        events += [Receive(unit) for queue in group.waiting.values() for unit in queue]
        assert [machine.handle(event) for event in events] == [[]] * len(events)


# --- what a host may get wrong, and what others may send ---


class Stranger(Unit, frozen=True, gc=False, tag=999):
    """A unit of no protocol."""

    source: int = 1

    def size(self) -> int:
        return 1

    def label(self) -> str:
        return "stranger"


@every_machine
def test_a_unit_of_another_protocol_is_discarded_and_changes_nothing(protocol: str, rules: Rules) -> None:
    group = group_of(protocol, rules)
    run(group, protocol, seed=6, steps=60)
    for node, machine in enumerate(group.machines):
        if node in group.aborted:
            continue
        before = machine.snapshot()
        did = machine.handle(Receive(Stranger()))
        assert [output.why for output in did if isinstance(output, Discard)] == ["stray"]
        settled = machine.snapshot()
        assert settled == before or len(did) > 1, "a stray may only be the moment at which something due is done"


@every_machine
def test_a_timer_that_was_never_set_does_no_harm(protocol: str, rules: Rules) -> None:
    [machine, *_] = group_of(protocol, rules).machines
    before = machine.snapshot()
    machine.handle(TimerFired("no such timer"))
    assert machine.snapshot() == before


@every_sound_machine
def test_a_timer_that_does_not_run_does_nothing(protocol: str, rules: Rules) -> None:
    """Every name that is ever set, at a machine that has set none."""
    group, names = group_of(protocol, rules), set[str]()

    def noted(node: int, machine: Machine, event: Input) -> list[Output]:
        del node
        did = machine.handle(event)
        names.update(output.name for output in did if isinstance(output, SetTimer))
        return did

    group.watch = noted
    run(group, protocol, seed=9)
    assert names
    for machine in group_of(protocol, rules).machines:
        before = machine.snapshot()
        assert [machine.handle(TimerFired(name)) for name in sorted(names)] == [[]] * len(names)
        assert machine.snapshot() == before


@every_machine
@pytest.mark.parametrize("destinations", [0, -1, 1 << NODES, (1 << NODES) + 1])
def test_messages_to_nobody_or_to_strangers_are_refused(protocol: str, rules: Rules, destinations: int) -> None:
    [machine, *_] = group_of(protocol, rules).machines
    before = machine.snapshot()
    with pytest.raises(LocalProtocolError, match=r"^invalid destinations .*: "):
        machine.handle(Submit(destinations, (1,), b"x"))
    assert machine.snapshot() == before


@every_machine
def test_where_everything_goes_to_all_a_subset_is_refused(protocol: str, rules: Rules) -> None:
    [machine, *_] = group_of(protocol, rules).machines
    before = machine.snapshot()
    for destinations in (0b001, 0b110):
        if protocol not in SELECTIVE:
            with pytest.raises(LocalProtocolError, match="a broadcast goes to all 3 nodes, the sender included"):
                machine.handle(Submit(destinations, (1,), b"x"))
            assert machine.snapshot() == before
        else:
            machine.handle(Submit(destinations, (1,), b"x"))
            assert machine.snapshot() != before


@every_sound_machine
def test_without_views_suspicion_changes_nothing(protocol: str, rules: Rules) -> None:
    [machine, *_] = group_of(protocol, rules).machines
    before = machine.snapshot()
    did = machine.handle(Suspect(0b100))
    assert machine.has_views or (did == [] and machine.snapshot() == before)
    assert not machine.has_views or machine.snapshot() != before


# --- what it says about itself ---


@every_machine
def test_a_machine_says_which_network_it_needs(protocol: str, rules: Rules) -> None:
    kind = machine_class(protocol, rules)
    assert isinstance(kind.echo, Echo)
    assert isinstance(kind.needs, Channel)
    assert isinstance(kind.has_views, bool)


@every_sound_machine
def test_what_it_waits_for_is_said_in_words(protocol: str, rules: Rules) -> None:
    group = group_of(protocol, rules)
    group.submit(1, "waits")
    assert group.machines[1].waits_for()
    assert all(group.machines[1].waits_for())
