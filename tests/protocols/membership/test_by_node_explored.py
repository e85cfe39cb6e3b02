"""Members behind the contract of machines, explored: every schedule, with crashes, losses and early timers.

At every state those that go on have one log, and those that failed the beginning of it. From every state a fair
continuation ends with everything of those that go on delivered at all of them, and with silence.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.explorer.explore import explore
from ordercast.explorer.scenario import Promise, Scenario, scripts
from ordercast.model.config import GroupConfig, SequencerConfig
from ordercast.model.machine import Input, Level, Output, Reached
from ordercast.protocols.membership.by_node import SETTINGS, by_node

HASTY = replace(SETTINGS, patience=1, suspected_patience=0)


def machine_of(protocol: str) -> Any:
    """What is in the cut of a view is acknowledged because it was decided: others may learn that later.

    The explorer knows no such reason for a level. With the sequencer it would also miss that a member which fetched
    something for the cut holds it, though it is told only when the member enters the view.
    """
    base: Any = by_node(protocol, None, HASTY)

    class Explored(base):  # type: ignore[misc]
        def handle(self, event: Input) -> list[Output]:
            did: list[Output] = super().handle(event)
            return [output for output in did if not isinstance(output, Reached) or output.level < Level.ACKNOWLEDGED]

    return Explored


def scenario(protocol: str, *lines: str, **how: Any) -> Scenario:
    machine = machine_of(protocol)
    return Scenario(
        machine=machine,
        group=GroupConfig(nodes=len(lines), views=True, sequencer=SequencerConfig(resilience=len(lines))),
        scripts=scripts(*lines),
        promise=Promise(one_order=True, ladder=False, views=True, uniform=True),
        channel=machine.needs,
        rounds=200,
        **how,
    )


FAST = [
    ("to", ("a", "", ""), {"crashes": 1}),
    ("to", ("", "a", ""), {"crashes": 1, "firings": 1, "patient": True}),
    ("to", ("a", "", ""), {"losses": 1, "firings": 1, "patient": True}),
    ("prito", ("", "a", ""), {"crashes": 1, "firings": 1, "patient": True}),
    ("sequencer", ("a", "", ""), {"crashes": 1}),
    ("sequencer", ("", "a", ""), {"crashes": 1, "firings": 1, "patient": True}),
]
SLOW = [
    ("to", ("a", "b"), {"losses": 1, "firings": 2, "patient": True}),
    ("to", ("a", "b", ""), {"crashes": 1, "firings": 1, "patient": True}),
    ("sequencer", ("", "a", ""), {"crashes": 1, "firings": 2, "patient": True}),
]


@pytest.mark.parametrize(("protocol", "lines", "how"), FAST)
def test_every_schedule_is_right(protocol: str, lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(scenario(protocol, *lines, **how))
    assert report.exhausted, str(report)


@pytest.mark.soak
@pytest.mark.parametrize(("protocol", "lines", "how"), SLOW)
def test_every_schedule_of_larger_groups_is_right(protocol: str, lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(scenario(protocol, *lines, **how))
    assert report.exhausted, str(report)
