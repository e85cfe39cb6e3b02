"""Schedules in words: read back to the same steps, and refused where they cannot happen; and as rows for pictures."""

from random import Random
from typing import Any

import pytest

from ordercast.explorer.execution import Execution
from ordercast.explorer.notation import format_schedule, parse_schedule
from ordercast.explorer.rows import names_of_messages, rows_of
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import StateSpace
from ordercast.model.errors import ConfigError
from tests.explorer.groups import broadcasts, priority_total, selective_total, spo

WILD: dict[str, Any] = {"losses": 4, "duplicates": 4, "firings": 20}
SCENARIOS = {
    "many": spo("a{2} b{2,3}", "c{1,3}", "", **WILD),
    "one": selective_total("a{2,3} b{2}", "c{1,3}", "", **WILD),
    "priorities": priority_total("p1 h5", "q2", **WILD),
    "datagrams": broadcasts("a", "b c", "d", crashes=1, **WILD),
}


def a_walk(space: StateSpace, seed: int) -> list[int]:
    """Sixty steps, or as many as there are."""
    chance, replay, steps = Random(seed), Execution(space), []
    for _ in range(60):
        possible = space.steps(replay.state)
        if not possible:
            break
        steps.append(chance.choice(possible))
        assert not replay.take(steps[-1]).problem
    return steps


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_words_lead_where_the_steps_led(scenario: Scenario) -> None:
    for seed in range(8):
        space = StateSpace(scenario)
        steps = a_walk(space, seed)
        lines = format_schedule(space, steps)
        other = StateSpace(scenario)
        other.nodes.timer_names.append("nobody's")  # another space may number otherwise
        assert format_schedule(other, parse_schedule(other, lines)) == lines
        replay = Execution(space)
        list(replay.run(parse_schedule(space, lines)))
        straight = space.initial_state()
        for step in steps:
            straight, _ = space.successor(straight, step)
        assert replay.state == straight


def test_a_transmission_is_named_by_its_sender_and_place() -> None:
    lines = ["E1 sends a{2}", "E2 loses E1#0 a", "E1 sends b{2,3}", "E2 receives E1#1 b", "E1 receives E2#0 request"]
    space = StateSpace(spo("a{2} b{2,3}", "c{1,3}", "", losses=1, firings=1))
    assert format_schedule(space, parse_schedule(space, lines)) == lines
    again = [*lines, "E2 receives E1#2 copy a"]
    assert format_schedule(space, parse_schedule(space, again)) == again


def test_what_cannot_happen_is_refused_with_what_can() -> None:
    space = StateSpace(spo("a{2}", "", losses=1))
    with pytest.raises(
        ConfigError, match="step 2, 'E2 receives E1#1 a', is not enabled there; enabled: 'E2 receives E1#0"
    ):
        parse_schedule(space, ["E1 sends a{2}", "E2 receives E1#1 a"])


def test_rows_tell_each_step_at_its_time() -> None:
    space = StateSpace(spo("a{2} b{2}", "", losses=1))
    lines = ["E1 sends a{2}", "E2 loses E1#0 a", "E1 sends b{2}", "E2 receives E1#1 b"]
    rows = rows_of(space, parse_schedule(space, lines))
    told = [(time, node, event, transmission) for node, _, time, event, *_, transmission in rows]
    assert told == [
        (1, 0, "send", None),
        (1, 0, "transmit", 0),
        (2, 1, "lose", 0),
        (3, 0, "send", None),
        (3, 0, "transmit", 1),
        (4, 1, "receive", 1),
        (4, 1, "request", None),
        (4, 1, "transmit", 2),
    ]
    assert names_of_messages(space) == {(0, 0): "a", (0, 1): "b"}
