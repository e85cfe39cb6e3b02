"""Every state of small searches, ended with every quorum; and the searches themselves, in a group with views."""

from dataclasses import replace
from typing import Any

import pytest

from ordercast.explorer.scenario import Promise
from ordercast.explorer.scenarios import scenario
from ordercast.model.config import RecoveryPolicy
from tests.protocols.membership.every_state import EpochMachine, EveryState
from tests.protocols.membership.missing_rules import v8_what_is_settled_does_not_count, v9_stable_is_delivered


def case(protocol: str, *lines: str, states: int = 100_000, **how: Any) -> Any:
    return pytest.param(protocol, lines, states, how, id=f"{protocol}: {' | '.join(lines)}")


SEARCHES = [
    case("spo", "x{2} y{1,3}", "", "", losses=1, firings=1),
    case("spo", "x{1,2}", "y{3}", "", losses=1, firings=2, states=1_500),
    case("spo", "x{2} y{2,3} z{1,2}", "", "", firings=2, states=1_500),
    case("po", "x y", "", losses=1, firings=3, states=2_500),
    case("st", "x{1,2}", "y{2,3}", "", losses=1, drained=True, states=2_500),
    case("st", "x{1,2} y{1}", "z{1,2}", losses=2, firings=1, states=2_500),
    case("st", "x", "y", losses=2, firings=1, recovery=RecoveryPolicy.GO_BACK_N, states=2_500),
    case("st", "x{1,2} y{1}", "z{1,2}", losses=2, firings=1, recovery=RecoveryPolicy.PLACE, states=2_500),
    case("to", "x", "", "", losses=1, firings=1, states=2_500),
    case("to", "x", "y", losses=2, drained=True, states=2_500),
    case("prito", "x1 y5", "", losses=2, firings=1, states=2_500),
    case("sequencer", "x", "y", "", resilience=1, losses=1, firings=0, states=2_500),
    case("sequencer", "", "x y", "", resilience=1, losses=1, firings=1, states=2_500),
]


@pytest.mark.parametrize(("protocol", "lines", "states", "how"), SEARCHES)
def test_a_view_may_end_in_any_state(protocol: str, lines: tuple[str, ...], states: int, how: dict[str, Any]) -> None:
    explored = EveryState(protocol, scenario(protocol, lines, machine=EpochMachine(protocol), **how), states)
    assert explored.report.counterexample is None, str(explored.report)
    explored.run()
    print(explored.report, explored.checked, len(explored.ended))  # noqa: T201 - how far it came
    assert explored.checked > 1_000


@pytest.mark.parametrize("remove", [v8_what_is_settled_does_not_count, v9_stable_is_delivered])
def test_a_search_notices_a_missing_rule(remove: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    remove(monkeypatch)
    searched = replace(
        scenario("spo", ("x{1,2}", "", ""), machine=EpochMachine("spo"), firings=3), promise=Promise(ladder=False)
    )
    explored = EveryState("spo", searched, 5_000)
    assert explored.report.counterexample is None, str(explored.report)
    with pytest.raises(AssertionError):
        explored.run()
