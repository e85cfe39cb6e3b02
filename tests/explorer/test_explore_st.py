"""ST with its sound rules: every schedule of small groups, as far as the timers may fire T times on the way.

In each scenario, at every state: nothing is accepted or delivered twice, or by whom it is not addressed to, or out of
its sender's order; what is called pre-acknowledged has been accepted by every destination, what is called
acknowledged has been pre-acknowledged by every destination; the orders of delivery of all nodes together have no cycle,
so any two common destinations of two packets deliver them in one order; what is expected never goes down; nobody gives
the group up. And from every state a fair continuation without loss ends with everything delivered and acknowledged
everywhere, and with silence. Any unit may be lost: data, statuses, replies, needs, and a node's own echoes.

Losses and duplicates are not mixed: a unit that is lost at its place and comes later as its own duplicate has changed
its place, and that is no channel of one order.
"""

import os
import time
from random import Random
from typing import Any

import pytest

from ordercast.explorer.counterexample import Counterexample
from ordercast.explorer.explore import explore
from ordercast.explorer.membership_scenarios import membership_scenario
from ordercast.model.config import RecoveryPolicy
from ordercast.protocols.registry import MachineClass
from tests.explorer import broken_st
from tests.explorer.groups import selective_total
from tests.explorer.random_walk import random_walk

GPZ = ("g{1,3} p{1,3}", "z{1,3}", "")
ABC = ("a{1,2}", "b{2,3}", "c{1,3}")
GY = ("", "g{1,3}", "y{1,3}")
BOTH = ("a{1,2}", "b{1,2}")
THREE = ("a{1,2} b{1,2}", "c{1,2}")
TWO = ("a{1,2} b{1,2}", "")


def case(name: str, *lines: str, firings: int, **how: Any) -> Any:
    return pytest.param(lines, {**how, "firings": firings}, id=f"{name}-T{firings}")


EXHAUSTED = [
    case("pair", "a{1,2}", "", losses=1, firings=2),
    case("pair-to-the-other", "a{2}", "", losses=1, firings=2),
    case("pair-to-itself", "a{1} b{1,2}", "", losses=2, firings=1),
    case("pair-two-losses", "a{1,2}", "", losses=2, firings=2),
    case("pair-both-send", *BOTH, losses=1, firings=1),
    case("pair-duplicates", *BOTH, duplicates=1, firings=1),
    case("pair-first-numbers", *BOTH, first_seq=(5, 3), losses=1, firings=0),
    case("log-limit-1", *THREE, log_limit=1, firings=0),
    case("log-limit-1-loss", *TWO, log_limit=1, losses=1, firings=0),
    case("quota-1", *THREE, quota=1, losses=1, firings=0),
    case("window-1", *TWO, window=1, losses=1, firings=0),
    case("single", "g{1,3}", "", "", losses=1, firings=1),
    case("single-to-one", "g{3}", "", "", losses=1, firings=1),
    case("single-patient", "g{1,3}", "", "", losses=1, firings=2, patient=True),
    case("S3", *GY, losses=1, firings=0),
    case("S3-duplicates", *GY, duplicates=1, firings=0),
    case("hearsay", "g{1,3}", "", "", infer_losses=True, losses=1, firings=1),
    case("polls-late-pair", "a{1,2}", "", polls_late=True, losses=2, firings=1),
    case("polls-late-both-send", *BOTH, polls_late=True, losses=1, firings=0),
    case("polls-late-single", "g{1,3}", "", "", polls_late=True, losses=1, firings=1),
    case("polls-late-S3", *GY, polls_late=True, losses=1, firings=0),
    case("polls-late-log-limit-1", *TWO, polls_late=True, log_limit=1, losses=1, firings=0),
    case("hearsay-foreign", "g{2}", "", "y{1}", infer_losses=True, losses=1, firings=0),
]


@pytest.mark.parametrize(("lines", "how"), EXHAUSTED)
def test_every_schedule_is_right(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(selective_total(*lines, **how))
    print(report)  # noqa: T201 - how far it came
    assert report.exhausted, str(report)


STABLE = [each for each in EXHAUSTED if each.id not in {"hearsay-T1", "polls-late-single-T1", "single-patient-T2"}]


@pytest.mark.parametrize(("lines", "how"), STABLE)
def test_every_schedule_is_right_where_what_is_stable_is_delivered(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(selective_total(*lines, delivers_stable=True, **how))
    assert report.exhausted, str(report)


@pytest.mark.soak
@pytest.mark.parametrize(("lines", "losses", "states"), [(ABC, 3, 34_239), (GPZ, 1, 0), (BOTH, 3, 0)])
def test_so_are_those_of_larger_groups(lines: tuple[str, ...], losses: int, states: int) -> None:
    report = explore(selective_total(*lines, losses=losses, delivers_stable=True))
    assert report.exhausted, str(report)
    assert report.states > states // 2


@pytest.mark.soak
def test_as_many_states_as_an_independent_model_had() -> None:
    # Another implementation of the same rules, searched by another program: every set of up to three losses.
    report = explore(selective_total(*ABC, losses=3))
    assert report.exhausted, str(report)
    assert report.states == 34_239


def test_a_search_can_be_repeated() -> None:
    first, second = (explore(selective_total(*BOTH, losses=2, firings=1), max_states=4_000) for _ in range(2))
    assert [getattr(first, name) for name in ("states", "edges", "node_states", "continued", "depth")] == [
        getattr(second, name) for name in ("states", "edges", "node_states", "continued", "depth")
    ]


def a_walk(seed: int) -> None:
    chance = Random(seed)
    nodes = chance.choice([2, 3, 3, 4])
    lines: list[list[str]] = [[] for _ in range(nodes)]
    for number in range(chance.randint(1, 8)):
        to = sorted(chance.sample(range(1, nodes + 1), chance.randint(1, nodes)))
        lines[chance.randrange(nodes)].append(f"m{number}{{{','.join(map(str, to))}}}")
    losses = chance.choice([0, 2, 5, 10])
    scenario = selective_total(
        *map(" ".join, lines),
        delivers_stable=seed % 3 == 0,
        window=chance.choice([1, 2, 3, 8]),
        quota=chance.choice([1, 2, 3, 8]),
        log_limit=chance.choice([1, 2, 4, 400, 400]),
        infer_losses=chance.random() < 0.3,
        losses=losses,
        duplicates=0 if losses else 5,
        firings=chance.choice([0, 5, 20, 50]),
        drained=chance.random() < 0.3,
        patient=chance.random() < 0.3,
    )
    counterexample = random_walk(scenario, seed, length=chance.choice([20, 60, 200]))
    assert counterexample is None, f"walk {seed} of {lines}:\n{counterexample}"


def test_long_schedules_at_random() -> None:
    for seed in range(50):
        a_walk(seed)


# --- what is broken is found ---


def found(machine: MachineClass, *lines: str, **how: Any) -> Counterexample:
    report = explore(selective_total(*lines, machine=machine, **how))
    assert report.counterexample is not None, str(report)
    return report.counterexample


BROKEN = [
    (broken_st.AsksDestinationsOnly, GY, {"losses": 1, "firings": 1}, "the channel did not keep one order"),
    (broken_st.LearnsFromAnything, GY, {"losses": 1, "firings": 1}, "the channel did not keep one order"),
    (broken_st.HearsItselfAtOnce, GY, {"losses": 1, "firings": 1}, "the packet 0 of E3 is missing"),
    (broken_st.ChangesItsReply, GY, {"losses": 1, "firings": 1}, "the orders of delivery have a cycle"),
    (
        broken_st.DeliversWhatItAccepts,
        ("a{1,2}", ""),
        {"delivers_stable": True},
        "is delivered before it was pre-acknowledged",
    ),
    (
        broken_st.ForgetsWhatItDelivered,
        BOTH,
        {"losses": 1, "firings": 1, "delivers_stable": True},
        "is delivered a second time",
    ),
    (broken_st.DeliversOldAtOnce, GY, {"losses": 1}, "is acknowledged at E1, but not yet preacknowledged at its"),
    (
        broken_st.ForgetsThePrefix,
        ABC,
        {"losses": 1, "firings": 2, "patient": True},
        "the agreed order must extend what was delivered",
    ),
]


SLOW = {broken_st.ChangesItsReply, broken_st.ForgetsThePrefix}
"""These take seconds to find."""


@pytest.mark.parametrize(
    ("machine", "lines", "how", "sentence"),
    [pytest.param(*case, marks=pytest.mark.soak) if case[0] in SLOW else case for case in BROKEN],
)
def test_a_departure_taken_back_is_found(
    machine: MachineClass, lines: tuple[str, ...], how: dict[str, Any], sentence: str
) -> None:
    counterexample = found(machine, *lines, **how)
    assert sentence in counterexample.sentence


# --- minutes rather than seconds ---

LARGE = [
    case("pair", "a{1,2}", "", losses=1, firings=3),
    case("pair-to-the-other", "a{2}", "", losses=1, firings=3),
    case("pair-duplicates", *BOTH, duplicates=2, firings=1),
    case("log-limit-1-all-send", "a{1,2} b{1,2}", "c{1,2} d{1,2}", log_limit=1, firings=0),
    case("log-limit-1-loss", *THREE, log_limit=1, losses=1, firings=0),
    case("quota-1", *THREE, quota=1, losses=1, firings=1),
    case("window-1", *THREE, window=1, losses=1, firings=0),
    case("polls-late-pair", "a{1,2}", "", polls_late=True, losses=2, firings=2),
    case("polls-late-both-send", *BOTH, polls_late=True, losses=1, firings=1),
    case("polls-late-log-limit-1", *THREE, polls_late=True, log_limit=1, losses=1, firings=0),
    case("pair-two-losses", "a{1,2}", "", losses=2, firings=4),
    case("pair-both-send", *BOTH, losses=2, firings=2),
    case("pair-window-1", *THREE, window=1, losses=1, firings=1),
    case("pair-log-limit-1", *THREE, log_limit=1, losses=2, firings=1),
    case("pair-drained", *BOTH, drained=True, losses=1, firings=1),
    case("single", "g{1,3}", "", "", losses=1, firings=2),
    case("single-two-losses", "g{1,3}", "", "", losses=2, firings=1),
    case("S3", *GY, losses=1, firings=1),
    case("S3-two-losses", *GY, losses=2, firings=1),
    case("S3-patient", *GY, losses=1, firings=4, patient=True),
    case("S1", *GPZ, losses=1, firings=0),
    case("S1", *GPZ, losses=1, firings=1),
    case("S1-two-losses", *GPZ, losses=2, firings=1),
    case("pairs", *ABC, losses=1, firings=1),
    case("pairs-patient", *ABC, losses=2, firings=3, patient=True),
    case("log-limit-2", "a{1,2,3} b{2,3}", "c{1,3} d{1,2,3}", "", log_limit=2, losses=1, firings=0),
    case("drained", *GY, drained=True, losses=1, firings=0),
    case("four-nodes", "w{1,2}", "m{2,3}", "o{3,4}", "g{1,4}", losses=1, firings=0),
]


@pytest.mark.soak
@pytest.mark.parametrize(("lines", "how"), LARGE)
def test_every_schedule_of_a_large_search_or_the_shortest_of_them(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(selective_total(*lines, **how), max_states=3_000_000)
    print(report)  # noqa: T201 - how far it came
    assert report.counterexample is None, str(report)


@pytest.mark.soak
def test_long_schedules_never_drawn_before() -> None:
    until = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "600")) / 4
    seed = int(os.environ.get("SOAK_FIRST", int(time.time()) // 60 * 10**9))
    while time.monotonic() < until:
        a_walk(seed)
        seed += 1


@pytest.mark.parametrize(
    "name", ["leave", *(pytest.param(each, marks=pytest.mark.soak) for each in ("suspicion", "leave-crash", "crash"))]
)
def test_what_is_placed_is_right_while_the_members_change(name: str) -> None:
    report = explore(membership_scenario("st", name, recovery=RecoveryPolicy.PLACE))
    assert report.exhausted, str(report)


@pytest.mark.parametrize(
    "name", ["leave", *(pytest.param(each, marks=pytest.mark.soak) for each in ("suspicion", "leave-crash", "crash"))]
)
def test_what_is_stable_is_right_while_the_members_change(name: str) -> None:
    report = explore(membership_scenario("st", name, delivers_stable=True, polls_late=True))
    assert report.exhausted, str(report)
