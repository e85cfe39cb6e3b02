"""Schedules step by step: changes add up to the states of the machines, and stories are told about steps that exist."""

from pathlib import Path
from typing import Any

import pytest

from ordercast.explorer.execution import Execution
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.outcome import outcome_of
from ordercast.explorer.schedule_files import read_schedule, schedule_of, schedule_text
from ordercast.explorer.state_space import StateSpace
from ordercast.explorer.state_values import state_values
from ordercast.explorer.step_by_step import first_states, steps_of
from ordercast.model.errors import ConfigError
from ordercast.trace.small_files import read_toml

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
STORIES = sorted((EXAMPLES / "stories").glob("*.toml"))
LOSS = EXAMPLES / "stories" / "st-one-loss.toml"


def unit_or_packet(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize("path", [LOSS, EXAMPLES / "counterexamples" / "sequencer-s5.toml"], ids=lambda path: path.stem)
def test_changes_add_up_to_the_states_of_the_machines(path: Path) -> None:
    schedule = read_schedule(path)
    space = StateSpace(schedule.scenario)
    shown = outcome_of(space, parse_schedule(space, schedule.schedule)).shown()
    states, steps = first_states(space), steps_of(space, shown)
    assert len(steps) == len(shown)
    for step in steps:
        for change in step.changes:
            assert states[change.node].get(change.name) == change.before
            if change.after is None:
                del states[change.node][change.name]
            else:
                states[change.node][change.name] = change.after
    execution = Execution(space)
    for taken in shown[:-1]:  # the last one may break a promise, and has no state behind it
        execution.take(taken)
    for node in {step.node for step in steps[:-1]} - {steps[-1].node}:
        here = space.nodes.states[execution.state[node]]
        if not here.crashed:
            machine: Any = space.nodes.machine(node, here.snapshot)
            found = state_values(machine, unit_or_packet)
            assert set(found) | {"timers"} == set(states[node])
            assert all(states[node][name] == value for name, value in found.items() if value.isdecimal())


def test_the_story_of_one_loss_says_what_froze_and_who_lacked_what() -> None:
    schedule = read_schedule(LOSS)
    space = StateSpace(schedule.scenario)
    outcome = outcome_of(space, parse_schedule(space, schedule.schedule))
    assert outcome.sentence == "", "it is a story of the sound rules"
    steps = steps_of(space, outcome.shown())
    assert steps[2].words == "E3 loses E1#0 g"
    assert "stops (gap)" in steps[11].effects
    assert [(each.before, each.after) for each in steps[11].changes if each.name == "normal.log"] == [("z", "z, p")]
    delivered = {
        step.node: [e for e in step.effects if "delivers" in e] for step in steps if "delivers g" in step.effects
    }
    in_order = ["delivers g", "delivers z", "delivers p"]
    assert delivered == {0: in_order, 1: in_order, 2: in_order}


def test_values_of_several_members_show_where_each_ends_and_no_limit_is_not_a_number() -> None:
    schedule = read_schedule(LOSS)
    space = StateSpace(schedule.scenario)
    steps = steps_of(space, outcome_of(space, parse_schedule(space, schedule.schedule)).shown())
    after = [{change.name: change.after for change in step.changes} for step in steps]
    assert after[16]["recovery.order"] == "[0, 0], [1, 0], [0, 1]", "g is E1's first, z E2's first, p E1's second"
    acknowledged = first_states(space)[0]["normal.preacknowledged.acknowledged_below"]
    assert acknowledged == "[no limit, no limit, no limit], [0, 0, 0], [0, 0, 0]", "E1 waits for itself nowhere"
    assert not [value for step in after for value in step.values() if value and str(1 << 62) in value]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_notes_are_about_steps_that_there_are(path: Path) -> None:
    schedule = read_schedule(path)
    assert schedule.notes
    assert max(schedule.notes) <= len(schedule.schedule)


def test_notes_are_kept_and_refused() -> None:
    schedule = read_schedule(LOSS)
    document = read_toml(LOSS)
    assert schedule_text(schedule) == LOSS.read_text()
    with pytest.raises(ConfigError, match=r"`notes.first`: a note is for a step, by its number from 1"):
        schedule_of({**document, "notes": {"first": "?"}})
