"""The papers' counterexamples: each file replays, each is found again by itself, and the sound rules are not broken."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from ordercast.explorer.explore import SearchProgress, SearchReport, explore
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.outcome import outcome_of
from ordercast.explorer.paper_counterexamples import (
    MAX_STATES,
    found_again,
    search_again,
    search_sound,
    under_sound_rules,
)
from ordercast.explorer.schedule_files import ScheduleFile, read_schedule, schedule_text
from ordercast.explorer.state_space import StateSpace
from ordercast.model.config import LossInference, PaperRules, PriorityReadings, Rules, SequencerReadings
from tests.explorer.random_walk import random_walk

FOLDER = Path(__file__).parents[2] / "examples/counterexamples"
PATHS = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
CLASSES = {
    "spo": {"a1", "a2", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "d1", "r1"},
    "st": {f"s{number}" for number in range(1, 14)} | {"cycle", "end"},
    "prito": {"f1", "f2", "f3", "f4", "f6"},
    "sequencer": {"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"},
}
SLOW = {
    "spo-r1",
    "st-s1",
    "st-s2",
    "st-s4",
    "st-s7",
    "st-s8",
    "st-s12",
    "st-cycle",
    "prito-f1",
    "prito-f4",
    "prito-f6",
    "sequencer-s7",
    "sequencer-s8",
}
"""One of the two searches takes more than half a second, and most take some."""
LARGE = {"st-s4": 8_000_000}
"""States that the sound rules have, or a few more, if there are more than a million."""
CUT = {"prito-f6"}
"""Too large to be searched to the end: a million states."""

every = pytest.mark.parametrize("name", PATHS)
searched = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in SLOW else name for name in PATHS]
)


def story(name: str) -> ScheduleFile:
    return read_schedule(PATHS[name])


def test_all_stories_are_here() -> None:
    assert set(PATHS) == {f"{protocol}-{name}" for protocol, names in CLASSES.items() for name in names}


@every
def test_a_story_is_of_the_printed_rules_and_breaks_what_it_says(name: str) -> None:
    told = story(name)
    assert told.scenario.group.rules is Rules.PAPER
    space = StateSpace(told.scenario)
    outcome = outcome_of(space, parse_schedule(space, told.schedule))
    assert outcome.sentence == told.sentence != ""
    assert bool(outcome.continuation) == told.live


@every
def test_no_step_can_be_left_out(name: str) -> None:
    """Without it, what follows cannot happen, or what was broken is not. What was given stays as it is."""
    told = story(name)
    space = StateSpace(told.scenario)
    steps = parse_schedule(space, told.schedule)
    for at in range(told.begins, len(steps)):
        shorter = [*steps[:at], *steps[at + 1 :]]
        if is_possible(space, shorter):
            outcome = outcome_of(space, shorter)
            assert not outcome.stuck if told.live else outcome.continuation or not outcome.sentence


def is_possible(space: StateSpace, steps: list[int]) -> bool:
    """Whether each step can be taken where it stands."""
    state = space.initial_state()
    for step in steps:
        if not space.is_enabled(state, step):
            return False
        state, _ = space.successor(state, step)
    return True


@every
def test_a_file_is_written_as_it_stands(name: str) -> None:
    assert schedule_text(story(name)) == PATHS[name].read_text()


@searched
def test_a_search_comes_upon_it_by_itself(name: str) -> None:
    told = story(name)
    assert found_again(told, search_again(told)) == told


@searched
def test_the_sound_rules_are_not_broken_within_the_same_bounds(name: str) -> None:
    report = search_sound(story(name), LARGE.get(name, MAX_STATES))
    if name in SLOW:
        print(report)  # noqa: T201 - how far it came
    assert report.counterexample is None, str(report)
    assert report.exhausted or name in CUT, str(report)


@pytest.mark.parametrize("name", sorted(CUT))
def test_what_is_cut_breaks_nothing_under_the_sound_rules_in_walks(name: str) -> None:
    """Twenty schedules drawn at random, each with its fair continuations."""
    asked = under_sound_rules(story(name).scenario)
    for seed in range(20):
        counterexample = random_walk(asked, seed, length=80)
        assert counterexample is None, f"walk {seed}: {counterexample}"


def test_the_orders_of_three_nodes_may_have_a_cycle_that_no_two_of_them_can_see() -> None:
    """That is found first if it is asked for, with the same messages."""
    told = story("st-s5")
    three = replace(told.scenario, promise=replace(told.scenario.promise, in_pairs=False))
    found = explore(three, begins=told.given()).counterexample
    assert found is not None
    assert all(cycle in found.sentence for cycle in ("E1 <g{1,3} y{1,2}", "E2 <y{1,2} z{2,3}", "E3 <z{2,3} g{1,3}"))
    assert told.sentence.startswith("the orders of delivery have a cycle: E1 <>")


@pytest.mark.parametrize(
    ("name", "mended"),
    [
        ("spo-c2", PaperRules(condition_2=LossInference.NONE)),
        ("spo-d1", PaperRules(condition_2=LossInference.NONE)),
        ("spo-r1", PaperRules(condition_2=LossInference.NONE)),
        pytest.param("st-s1", PaperRules(keeps_behind_gap=True), marks=pytest.mark.soak),
        ("st-s10", PaperRules()),
        pytest.param("prito-f1", PaperRules(), marks=pytest.mark.soak),
        ("prito-f3", PaperRules()),
        pytest.param(
            "prito-f4",
            PaperRules(priority=PriorityReadings(sorts_preacknowledged=True, acknowledges_each=True)),
            marks=pytest.mark.soak,
        ),
        ("sequencer-s1", PaperRules(sequencer=SequencerReadings(first_id=1))),
        ("sequencer-s3", PaperRules(sequencer=SequencerReadings(first_id=1, whole_answers=True))),
    ],
)
def test_another_reading_of_the_printed_rules_mends_it(name: str, mended: PaperRules) -> None:
    """So it is this rule that breaks it, and no other."""
    told = story(name).scenario
    group = msgspec.structs.replace(told.group, paper=mended)
    report = explore(replace(told, group=group), begins=story(name).given())
    assert report.exhausted, str(report)


def test_the_sound_rules_are_asked_for_everything_they_owe() -> None:
    asked = under_sound_rules(story("st-s10").scenario)
    assert asked.promise.ladder
    assert asked.promise.liveness_goal is not None
    assert (asked.group.rules, asked.group.paper) == (Rules.SOUND, PaperRules())
    assert asked.scripts == story("st-s10").scenario.scripts


@pytest.mark.parametrize("search", [search_again, search_sound])
def test_a_search_tells_how_far_it_is(search: Callable[[ScheduleFile, int, SearchProgress], SearchReport]) -> None:
    told: list[int] = []
    report = search(story("spo-r1"), MAX_STATES, lambda states, _: told.append(states))
    assert told == sorted(set(told))
    assert report.states // 2 < told[-1] <= report.states
