"""Histories from the simulator: objects changed by what simulated groups deliver, under loss, splits and crashes."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.model.config import MILLISECOND, GroupConfig, SequencerConfig
from ordercast.model.faults import Crash, Fault, Loss, Split
from ordercast.model.history import Operation
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.protocols.membership.by_node import by_node
from ordercast.replicated import Dict
from ordercast.replicated.history import as_json
from ordercast.simulator import simulate
from ordercast.trace.schema import EventField, EventRow
from tests.replicated.alone import Alone
from tests.replicated.histories import violations

NODES = 4
KEYS = ("a", "b", "c", "d")
FAULTS: dict[str, tuple[Fault, ...]] = {
    "loss": (Loss(rate=0.1),),
    "crash": (Loss(rate=0.02), Crash(node=1, at=3 * MILLISECOND)),
    "split": (Split(side=(2,), at=2 * MILLISECOND, lasting=4 * MILLISECOND),),
}


def simulated(protocol: str, faults: tuple[Fault, ...], seed: int, messages: int = 12) -> list[EventRow]:
    rows: list[EventRow] = []
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=NODES, views=True, sequencer=SequencerConfig(resilience=NODES // 2)),
        network=Network(channel=by_node(protocol).needs),
        workload=Workload(messages=messages),
        faults=faults,
        seed=seed,
    )
    simulate(config, rows=rows)
    return rows


def command_of(source: int, number: int, seed: int) -> tuple[str, str, tuple[Any, ...]]:
    """What the message of this number stands for. A read is a command that changes nothing: it has its own place."""
    rng = random.Random(f"{seed} {source} {number}")
    key, value = rng.choice(KEYS), rng.randrange(100)
    kind = rng.choice(["put", "delete", "pop", "compare_and_set"])
    return kind, key, {"put": (key, value), "compare_and_set": (key, None, value)}.get(kind, (key,))


def history_of(rows: list[EventRow], seed: int) -> tuple[list[Operation], Alone]:
    """An operation is called when its message is numbered, and returns when that is delivered at its source."""
    names = tuple(f"n{node}" for node in range(NODES))
    group = Alone(Dict, names)
    payloads: dict[tuple[int, int], bytes] = {}
    called: dict[tuple[int, int], int] = {}
    returned: dict[tuple[int, int], tuple[int, str]] = {}
    for row in rows:
        source, number = row[EventField.SOURCE], row[EventField.SEQ]
        if source is None or number is None:
            continue
        kind, _, arguments = command_of(source, number, seed)
        if row[EventField.EVENT] == "send":
            payloads[source, number] = group.payload(names[source], kind, *arguments)
            called[source, number] = row[EventField.TIME]
        elif row[EventField.EVENT] == "deliver":
            result = group.apply(names[row[EventField.NODE]], names[source], payloads[source, number])
            if row[EventField.NODE] == source and result is not None:
                returned[source, number] = row[EventField.TIME], as_json(result.value)
    found = []
    for (source, number), time in called.items():
        kind, key, arguments = command_of(source, number, seed)
        end, text = returned.get((source, number), (None, ""))
        given = tuple(map(as_json, arguments[1:]))
        found.append(Operation(names[source], "register", "", key, kind, given, text, time, end, str(seed)))
    return found, group


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("protocol", ["sequencer", "st", "prito"])
def test_histories_of_simulated_groups_are_linearizable(protocol: str, faults: str) -> None:
    for seed in range(2):
        found, _ = history_of(simulated(protocol, FAULTS[faults], seed), seed)
        assert len([each for each in found if each.returned is not None]) > 2 * 12
        assert violations(found) == []


def test_operations_take_effect_before_they_return_and_that_is_needed() -> None:
    """The same histories, with calls only just before the returns: an order that fits is found for few of them."""
    found, _ = history_of(simulated("sequencer", FAULTS["loss"], 0), 0)
    late = [replace(each, called=each.returned) for each in found if each.returned is not None]
    assert violations(late) != []


@pytest.mark.soak
@pytest.mark.parametrize("protocol", ["sequencer", "st", "prito"])
def test_thousands_of_histories_of_simulated_groups(protocol: str) -> None:
    """300 runs with three kinds of faults and four keys for each order: 10,800 histories of keys."""
    for faults in FAULTS.values():
        for seed in range(300):
            assert violations(history_of(simulated(protocol, faults, seed), seed)[0]) == [], seed
