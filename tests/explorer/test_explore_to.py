"""TO with its sound rules: every schedule of small groups, as far as the timers may fire T times on the way.

In each scenario, at every state: nothing is accepted, told or delivered twice or out of its sender's order; what is
called pre-acknowledged has been accepted by everybody, what is called acknowledged has been pre-acknowledged by
everybody; all deliver in one order; nobody gives the group up. And from every state a fair continuation without loss
ends with everything delivered everywhere, and with silence. Any unit may be lost: data, statuses, vectors, and a node's
own echoes.
"""

from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.protocols.registry import MachineClass
from tests.explorer import broken_prito
from tests.explorer.groups import total
from tests.protocols.to.walks import walk


def case(name: str, *lines: str, firings: int, **how: Any) -> Any:
    return pytest.param(lines, {**how, "firings": firings}, id=f"{name}-T{firings}")


EXHAUSTED = [
    case("pair", "a", "", losses=1, firings=2),
    case("pair-two-losses", "a", "", losses=2, firings=1),
    case("pair-both-send", "a", "b", losses=1, firings=1),
    case("pair-two-losses-both-send", "a", "b", losses=2, firings=0),
    case("pair-duplicates", "a", "b", duplicates=2, firings=1),
    case("pair-first-numbers", "a", "b", first_seq=(5, 3), losses=1, firings=0),
    case("pair-drained", "a", "", drained=True, losses=1, firings=0),
    case("quota-1", "a b", "", quota=1, losses=1, firings=1),
    case("window-1", "a b", "", window=1, losses=1, firings=0),
    case("single", "a", "", "", losses=1, firings=1),
    case("three", "a", "b", "", losses=1, firings=0),
]


@pytest.mark.parametrize(("lines", "how"), EXHAUSTED)
def test_every_schedule_is_right(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(total(*lines, **how))
    print(report)  # noqa: T201 - how far it came
    assert report.exhausted, str(report)


def test_long_schedules_at_random() -> None:
    for seed in range(1, 80, 2):
        counterexample = walk(seed)
        assert counterexample is None, f"walk {seed}:\n{counterexample}"


BROKEN = [
    (broken_prito.HearsItselfAtOnce, {}, "the orders of delivery have a cycle"),
    (broken_prito.KeepsWhatSomebodyHas, {"losses": 1}, "is preacknowledged at E1, but not yet accepted at its"),
    (broken_prito.ChangesItsVector, {"losses": 1, "firings": 1}, "inconsistent acknowledgments"),
    (broken_prito.SendsAtOnce, {"losses": 1}, "is acknowledged at E1, but not yet preacknowledged at its"),
]


@pytest.mark.parametrize(("machine", "how", "sentence"), BROKEN)
def test_a_rule_taken_back_is_found(machine: MachineClass, how: dict[str, Any], sentence: str) -> None:
    report = explore(total("a", "b", machine=machine, **how))
    assert report.counterexample is not None, str(report)
    assert sentence in report.counterexample.sentence


# --- minutes rather than seconds ---

LARGE = [
    case("pair", "a", "", losses=2, firings=3),
    case("pair-both-send", "a", "b", losses=1, firings=2),
    case("pair-both-send-two-losses", "a", "b", losses=2, firings=1),
    case("window-1", "a b", "c", window=1, losses=1, firings=0),
    case("quota-1", "a b", "c", quota=1, losses=1, firings=1),
    case("three", "a", "b", "", losses=1, firings=1),
    case("three-patient", "a", "", "", losses=1, firings=2, patient=True),
    case("three-two-losses", "a", "b", "", losses=2, firings=0),
    case("three-both", "a b", "c", "", losses=1, firings=0),
    case("four", "a", "b", "", "", losses=1, firings=0),
]


@pytest.mark.soak
@pytest.mark.parametrize(("lines", "how"), LARGE)
def test_every_schedule_of_a_large_search_or_the_shortest_of_them(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(total(*lines, **how), max_states=3_000_000)
    print(report)  # noqa: T201 - how far it came
    assert report.counterexample is None, str(report)
