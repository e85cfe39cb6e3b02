"""What a scenario may bound besides counts: what alone is lost, and how much is ever under way to one node."""

from dataclasses import replace

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.wording import schedule_from_words
from ordercast.explorer.world import Kind, World, decode
from ordercast.model.errors import ConfigError
from tests.explorer.groups import spo, spo_as_printed


def lost_at_first(scenario: Scenario, *lines: str) -> int:
    """In how many ways something can be lost when these steps were taken."""
    world = World(scenario)
    state = world.start()
    for step in schedule_from_words(world, lines):
        state, _ = world.take(state, step)
    return sum(decode(step)[0] is Kind.LOSE for step in world.steps(state))


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
    violation = explore(bounded).violation
    assert violation is not None
    assert violation.sentence == "3 units are under way to E2, and never should there be more than 2"
    assert violation.schedule[-1] == "E1 sends c{2}"
    assert explore(replace(printed, promise=replace(printed.promise, most_under_way=3))).exhausted


def test_a_reduced_search_does_not_count_what_is_under_way() -> None:
    printed = spo_as_printed("a{2}", "")
    with pytest.raises(ConfigError, match="search without reduction"):
        explore(replace(printed, promise=replace(printed.promise, most_under_way=1)), reduced=True)
