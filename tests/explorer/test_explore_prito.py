"""PriTO with its sound rules: every schedule of small groups, as in `test_explore_to`, now with priorities.

p1 is a packet p of priority 1. All deliver in one order, whatever was lost, and whenever timers fire, and what one
sends with one priority in the order sent.
"""

import os
import time
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.protocols.prito.machine import Prito
from ordercast.protocols.registry import MachineClass
from tests.explorer import broken_prito
from tests.explorer.groups import priority_total
from tests.explorer.random_walk import random_walk
from tests.protocols.driver import played_by
from tests.protocols.prito import test_prito_rules
from tests.protocols.to.walks import walk


def case(name: str, *lines: str, firings: int, **how: Any) -> Any:
    return pytest.param(lines, {**how, "firings": firings}, id=f"{name}-T{firings}")


EXHAUSTED = [
    case("pair", "p1", "h5", losses=1, firings=1),
    case("pair-of-equals", "p1 q1", "", losses=1, firings=0),
    case("pair-two-losses", "p1", "h5", losses=2, firings=0),
    case("pair-one-sends", "p1 h5", "", losses=1, firings=1),
    case("pair-duplicates", "p1", "h5", duplicates=1, firings=1),
    case("quota-1", "p1 h5", "", quota=1, losses=1, firings=1),
    case("without-ends-of-runs", "p1", "h5", synchronises=False, losses=1, firings=1),
    case("three", "p1", "h5", "", losses=1, firings=0),
    case("three-without-loss", "p1", "h5", "", firings=1),
]


@pytest.mark.parametrize(("lines", "how"), EXHAUSTED)
def test_every_schedule_is_right(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(priority_total(*lines, **how))
    print(report)  # noqa: T201 - how far it came
    assert report.exhausted, str(report)


def test_long_schedules_at_random() -> None:
    for seed in range(0, 80, 2):
        counterexample = walk(seed)
        assert counterexample is None, f"walk {seed}:\n{counterexample}"


CYCLE = "the orders of delivery have a cycle: E1 <"
EQUALS = "q[1]{1,2} of E1 at E1 is delivered before p[1]{1,2}, which was sent before it"
UNTRUE = "p[1]{1,2} of E1 is acknowledged at E1, but not yet preacknowledged at its destination E2"
PATIENT: dict[str, Any] = {"losses": 1, "firings": 2, "window": 1, "patient": True}
URGENT = "p[1]{1,2} of E1 at E1 is delivered before h[5]{1,2} of E"
BROKEN = [
    (broken_prito.IgnoresPriorities, ("p1", "h5"), {}, URGENT),
    (broken_prito.IgnoresPriorities, ("p1 h5", ""), {"synchronises": False}, URGENT),
    (broken_prito.LeastUrgentFirst, ("p1", "h5"), {}, URGENT),
    (broken_prito.DeliversAfterTheLoop, ("p1 h5", ""), PATIENT, CYCLE),
    (broken_prito.TakesAnyStatusForAnAcknowledgment, ("p1", "h5"), {"losses": 1, "firings": 2}, UNTRUE),
    (broken_prito.LastOfEqualsFirst, ("p1 q1", ""), {}, EQUALS),
    pytest.param(broken_prito.SortsInWhenAccepted, ("p1", "h5"), PATIENT, CYCLE, marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("machine", "lines", "how", "sentence"), BROKEN)
def test_a_departure_taken_back_is_found(
    machine: MachineClass, lines: tuple[str, ...], how: dict[str, Any], sentence: str
) -> None:
    report = explore(priority_total(*lines, machine=machine, **how))
    assert report.counterexample is not None, str(report)
    assert report.counterexample.sentence.startswith(sentence)


def test_what_is_sorted_in_when_accepted_is_found_by_the_script_too() -> None:
    script = test_prito_rules.test_ce1_a_lost_urgent_packet_does_not_overtake_where_it_was_heard
    with played_by(broken_prito.SortsInWhenAccepted, instead_of=Prito), pytest.raises(AssertionError):
        script()
    script()


def test_a_run_that_ends_when_a_timer_fires_is_found_without_any_loss() -> None:
    """F6; too long a way for a search, but not for a walk. No marker ends the run there."""
    lines: tuple[str, ...] = ("p1 b9 d9", "a9 c9 e9")
    how: dict[str, Any] = {"window": 2, "firings": 30}
    found = [
        random_walk(priority_total(*lines, machine=broken_prito.EndsRunsAtOnce, **how), seed, 120) for seed in range(14)
    ]
    sentences = [counterexample.sentence for counterexample in found if counterexample is not None]
    assert sentences
    assert all(sentence.endswith("which is more urgent") for sentence in sentences)
    assert all(random_walk(priority_total(*lines, **how), seed, 120) is None for seed in range(14))


# --- minutes rather than seconds ---

LARGE = [
    case("pair", "p1", "h5", losses=1, firings=2),
    case("pair-two-losses", "p1", "h5", losses=2, firings=1),
    case("pair-patient", "p1", "h5", losses=1, firings=4, patient=True),
    case("window-1", "p1 h5", "z3", window=1, losses=1, firings=0),
    case("window-1-patient", "p1 h5", "z3", window=1, losses=1, firings=3, patient=True),
    case("three", "p1", "h5", "", losses=1, firings=1),
    case("three-both", "p1 h5", "z5", "", losses=1, firings=0),
    case("three-patient", "p1", "h5", "", losses=1, firings=4, patient=True),
    case("three-window-1", "p1 q1", "h5", "", window=1, firings=1),
]


@pytest.mark.soak
@pytest.mark.parametrize(("lines", "how"), LARGE)
def test_every_schedule_of_a_large_search_or_the_shortest_of_them(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(priority_total(*lines, **how), max_states=3_000_000)
    print(report)  # noqa: T201 - how far it came
    assert report.counterexample is None, str(report)


@pytest.mark.soak
def test_long_schedules_never_drawn_before() -> None:
    until = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "600")) / 4
    seed = int(os.environ.get("SOAK_FIRST", int(time.time()) // 60 * 10**9))
    while time.monotonic() < until:
        counterexample = walk(seed)
        assert counterexample is None, f"walk {seed}:\n{counterexample}"
        seed += 1
