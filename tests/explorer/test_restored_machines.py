"""A machine that is restored from its snapshot before every input does, byte for byte, what one does that never was."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.explorer.explore import Search, explore
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import StateSpace
from ordercast.model.machine import Output
from ordercast.model.runs import Channel
from tests.explorer import broken
from tests.explorer.groups import selective_total, spo, spo_as_printed

MANY_LINES = ("a{2,3} b{2} c{1,2} d{2,3}", "e{1,3} f{3}", "g{1,2,3} h{3}")
DISTURBED: dict[str, Any] = {"losses": 8, "duplicates": 4, "firings": 40}

SCENARIOS = {
    "sound": spo(*MANY_LINES, **DISTURBED),
    "drained": spo(*MANY_LINES, drained=True, **DISTURBED),
    "narrow": spo(*MANY_LINES, window=2, quota=1, infer_losses=True, channel=Channel.ONE, **DISTURBED),
    "printed": spo_as_printed(*MANY_LINES, window=3, **DISTURBED),
    "total": selective_total(*MANY_LINES, losses=8, firings=40),
    "total-narrow": selective_total(*MANY_LINES, window=2, quota=1, log_limit=2, drained=True, losses=8, firings=40),
}
CHOICES = st.lists(st.integers(0, 1 << 16), min_size=50, max_size=200)


def in_bytes(outputs: list[Output]) -> bytes:
    return msgspec.json.encode([(type(output).__name__, output) for output in outputs])


def differs(scenario: Scenario, choices: list[int]) -> str:
    """Takes steps as chosen; what a machine and its restored twin did differently first, if they did."""
    space = StateSpace(scenario)
    state = space.initial_state()
    machines: list[Any] = [space.nodes.machine(node) for node in range(space.size)]
    for choice in choices:
        steps = space.steps(state)
        if not steps:
            break
        step = steps[choice % len(steps)]
        met = space.input_of(state, step)
        if met is not None:
            node, event = met
            before = machines[node].snapshot()
            twin: Any = space.nodes.machine(node, before)
            if twin.snapshot() != before:
                return f"{before} is restored as {twin.snapshot()}"
            did, twin_did = in_bytes(machines[node].handle(event)), in_bytes(twin.handle(event))
            if did != twin_did or machines[node].snapshot() != twin.snapshot():
                return f"after {event} the one did {did!r}, its twin {twin_did!r}"
        state, effect = space.successor(state, step)
        assert effect is None or not effect.problem, effect.problem
    return ""


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_restored_machine_does_the_same(name: str) -> None:
    @settings(max_examples=20, deadline=None, derandomize=True)
    @given(CHOICES)
    def check(choices: list[int]) -> None:
        assert not differs(SCENARIOS[name], choices)

    check()


def test_a_snapshot_that_forgets_something_is_noticed() -> None:
    scenario = spo("a{2} b{2}", "", machine=broken.ForgetsWhatItHolds, losses=1)
    assert explore(scenario).exhausted  # restored before every input, it is true to itself: no search can tell
    choices = [Random(seed).choices(range(1 << 16), k=20) for seed in range(50)]
    assert any(differs(scenario, steps) for steps in choices)


@pytest.mark.parametrize("channel", [Channel.ONE, Channel.MANY])
def test_schedules_of_a_search_played_to_machines_that_were_never_restored(channel: Channel) -> None:
    search = Search(spo("a{2,3} b{2}", "c{1,3}", "", losses=2, channel=channel))
    report = search.run()
    assert report.exhausted, str(report)
    space = search.space
    for index in range(0, report.states, report.states // 200):
        machines: list[Any] = [space.nodes.machine(node) for node in range(space.size)]
        state = space.initial_state()
        for step in search.schedule(index):
            met = space.input_of(state, step)
            if met is not None:
                machines[met[0]].handle(met[1])
            state, _ = space.successor(state, step)
        searched = [space.nodes.states[state[node]].snapshot for node in range(space.size)]
        assert [machine.snapshot() for machine in machines] == searched
