"""What bounds a search besides counts: what alone is lost, what is ever under way to one node, how it begins."""

from dataclasses import replace

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import StateSpace, StepKind, decode
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Level
from tests.explorer.groups import spo, spo_as_printed


def lost_at_first(scenario: Scenario, *lines: str) -> int:
    """In how many ways something can be lost when these steps were taken."""
    space = StateSpace(scenario)
    state = space.initial_state()
    for step in parse_schedule(space, lines):
        state, _ = space.successor(state, step)
    return sum(decode(step)[0] is StepKind.LOSE for step in space.steps(state))


@pytest.mark.parametrize(
    ("loses", "ways"), [((), 4), (("a",), 2), (("a at E3",), 1), (("b", "status"), 2), (("request",), 0)]
)
def test_only_what_is_named_is_lost(loses: tuple[str, ...], ways: int) -> None:
    """a is under way to E2 and E3, and b to E1 and E3, whoever it is for."""
    scenario = spo("a{2,3}", "b{1}", "", losses=1, loses=loses)
    assert lost_at_first(scenario, "E1 sends a{2,3}", "E2 sends b{1}") == ways


def test_too_much_under_way_is_found_and_told() -> None:
    printed = spo_as_printed("a{2} b{2} c{2}", "")
    bounded = replace(printed, promise=replace(printed.promise, most_under_way=2))
    counterexample = explore(bounded).counterexample
    assert counterexample is not None
    assert counterexample.sentence == "3 units are under way to E2, and never should there be more than 2"
    assert counterexample.schedule[-1] == "E1 sends c{2}"
    assert explore(replace(printed, promise=replace(printed.promise, most_under_way=3))).exhausted


def test_a_reduced_search_does_not_count_what_is_under_way() -> None:
    printed = spo_as_printed("a{2}", "")
    with pytest.raises(ConfigError, match="use --no-reduction"):
        explore(replace(printed, promise=replace(printed.promise, most_under_way=1)), reduced=True)


def test_what_a_search_begins_with_is_in_its_schedule_whether_it_is_needed_or_not() -> None:
    printed = spo_as_printed("a{2}", "b{1}", liveness_goal=Level.ACCEPTED, losses=1, loses=("a",))
    alone, begun = (explore(printed, begins=begins).counterexample for begins in ([], ["E2 sends b{1}"]))
    assert alone is not None
    assert begun is not None
    assert alone.schedule == ("E1 sends a{2}", "E2 loses E1#0 a")
    assert begun.schedule == ("E2 sends b{1}", *alone.schedule)


def test_a_search_sees_only_what_follows_its_beginning() -> None:
    """The message has arrived already, so there is nothing that could be lost."""
    printed = spo_as_printed("a{2}", "", liveness_goal=Level.ACCEPTED, losses=1)
    assert explore(printed).counterexample is not None
    begins = ["E1 sends a{2}", "E1 receives E1#0 a", "E2 receives E1#0 a"]
    assert explore(printed, begins=begins).exhausted


def test_timers_that_fire_in_the_beginning_need_leave_too() -> None:
    scenario = spo("a{2}", "", firings=0)
    begins = ["E1 sends a{2}", "E2 receives E1#0 a", "E2 timer status fires"]
    with pytest.raises(ConfigError, match="raise `firings`"):
        explore(scenario, begins=begins)
    assert explore(replace(scenario, firings=1), begins=begins).exhausted
