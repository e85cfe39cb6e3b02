"""Schedules in words: read back to the same steps, and refused where they cannot happen; and as rows for pictures."""

from random import Random
from typing import Any

import pytest

from ordercast.explorer.replay import Replay
from ordercast.explorer.rows import names_of_messages, rows_of
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.wording import schedule_from_words, schedule_in_words
from ordercast.explorer.world import World
from ordercast.model.errors import ConfigError
from tests.explorer.groups import broadcasts, priority_total, selective_total, spo

WILD: dict[str, Any] = {"losses": 4, "duplicates": 4, "firings": 20}
SCENARIOS = {
    "many": spo("a{2} b{2,3}", "c{1,3}", "", **WILD),
    "one": selective_total("a{2,3} b{2}", "c{1,3}", "", **WILD),
    "priorities": priority_total("p1 h5", "q2", **WILD),
    "datagrams": broadcasts("a", "b c", "d", crashes=1, **WILD),
}


def a_walk(world: World, seed: int) -> list[int]:
    """Sixty steps, or as many as there are."""
    chance, replay, steps = Random(seed), Replay(world), []
    for _ in range(60):
        possible = world.steps(replay.state)
        if not possible:
            break
        steps.append(chance.choice(possible))
        assert not replay.take(steps[-1]).problem
    return steps


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_words_lead_where_the_steps_led(scenario: Scenario) -> None:
    for seed in range(8):
        world = World(scenario)
        steps = a_walk(world, seed)
        lines = schedule_in_words(world, steps)
        other = World(scenario)
        other.nodes.timer_names.append("nobody's")  # another world may number otherwise
        assert schedule_in_words(other, schedule_from_words(other, lines)) == lines
        replay = Replay(world)
        list(replay.run(schedule_from_words(world, lines)))
        straight = world.start()
        for step in steps:
            straight, _ = world.take(straight, step)
        assert replay.state == straight


def test_a_transmission_is_named_by_its_sender_and_place() -> None:
    lines = ["E1 sends a{2}", "E2 loses E1#0 a", "E1 sends b{2,3}", "E2 receives E1#1 b", "E1 receives E2#0 request"]
    world = World(spo("a{2} b{2,3}", "c{1,3}", "", losses=1, firings=1))
    assert schedule_in_words(world, schedule_from_words(world, lines)) == lines
    again = [*lines, "E2 receives E1#2 copy a"]
    assert schedule_in_words(world, schedule_from_words(world, again)) == again


def test_what_cannot_happen_is_refused_with_what_can() -> None:
    world = World(spo("a{2}", "", losses=1))
    with pytest.raises(
        ConfigError, match="step 2, 'E2 receives E1#1 a', cannot happen there; what can: 'E2 receives E1#0"
    ):
        schedule_from_words(world, ["E1 sends a{2}", "E2 receives E1#1 a"])


def test_rows_tell_each_step_at_its_time() -> None:
    world = World(spo("a{2} b{2}", "", losses=1))
    lines = ["E1 sends a{2}", "E2 loses E1#0 a", "E1 sends b{2}", "E2 receives E1#1 b"]
    rows = rows_of(world, schedule_from_words(world, lines))
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
    assert names_of_messages(world) == {(0, 0): "a", (0, 1): "b"}
