"""Statuses that small live groups send beside their relay, as a channel has them: lost at their place, received later.

Whatever needs a place is never lost here: a unit that is lost at its place and comes later as its own duplicate has
changed its place, as the last test shows. A status without a number, which asks for nothing, may do that, at each
member another one.
"""

import dataclasses
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.scenario import Scenario
from ordercast.model.units import Unit
from ordercast.protocols.to.units import OrderedReady
from tests.explorer.groups import priority_total, selective_total, total


@dataclasses.dataclass(frozen=True, kw_only=True)
class BesideRelay(Scenario):
    """A scenario in which what needs no place is lost, and nothing else."""

    def may_lose(self, unit: Unit, node: int) -> bool:
        del node
        return not unit.needs_place()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Numbered(Scenario):
    """One in which statuses that have a number are lost, and nothing else."""

    def may_lose(self, unit: Unit, node: int) -> bool:
        del node
        return isinstance(unit, OrderedReady)


def of_kind(kind: type[Scenario], made: Scenario) -> Scenario:
    """The same scenario with such losses."""
    fields = {field.name: getattr(made, field.name) for field in dataclasses.fields(made)}
    return kind(**{**fields, "loses": ("status",)})


DRAINED: dict[str, Any] = {"losses": 2, "duplicates": 2, "drained": True, "firings": 0}
TIMERS: dict[str, Any] = {"losses": 1, "duplicates": 1, "firings": 1}
ST: dict[str, Any] = {"polls_late": True}
CASES = [
    pytest.param(selective_total("a{1,2}", "", **DRAINED, **ST), id="st-pair"),
    pytest.param(selective_total("a{1,2}", "", **DRAINED, **ST, delivers_stable=True), id="st-pair-stable"),
    pytest.param(selective_total("a{1,2}", "b{1,2}", **TIMERS, **ST), id="st-pair-both-send"),
    pytest.param(
        selective_total("a{1,2,3}", "", "", **{**DRAINED, "losses": 1, "duplicates": 1}, **ST), id="st-three"
    ),  # 241,676 states
    pytest.param(total("a", "", **DRAINED), id="to-pair"),
    pytest.param(total("a", "b", **TIMERS), id="to-pair-both-send"),
    pytest.param(priority_total("p1", "h5", **TIMERS), id="prito-pair-both-send"),
    pytest.param(priority_total("p1", "h5", "", **TIMERS), id="prito-three"),
]


@pytest.mark.parametrize("made", CASES)
def test_every_schedule_is_right(made: Scenario) -> None:
    report = explore(of_kind(BesideRelay, made))
    print(report)  # noqa: T201 - how far it came
    assert report.exhausted, str(report)


def test_a_status_with_a_number_that_changed_its_place_gives_two_orders() -> None:
    made = priority_total("p1", "h5", **{**DRAINED, "losses": 1, "duplicates": 1})
    report = explore(of_kind(Numbered, made))
    assert "the orders of delivery have a cycle" in str(report)
