"""SPO with its sound rules: every schedule of small groups, as far as the timers may fire T times on the way.

In each scenario, at every state: nothing is accepted or delivered twice, or by whom it is not addressed to, or out of
its sender's order; what is called pre-acknowledged has been accepted by every destination, what is called
acknowledged has been pre-acknowledged by every destination (the papers' lemmas 4.1 and 4.2); what is expected never
goes down. And from every state a fair continuation without loss ends with everything delivered and acknowledged
everywhere, and with silence.
"""

import os
import time
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ordercast.explorer.explore import explore
from ordercast.explorer.membership_scenarios import membership_scenario
from ordercast.model.runs import Channel
from ordercast.protocols.spo.machine import Spo
from tests.explorer.groups import spo
from tests.explorer.random_walk import random_walk

ONE: dict[str, Any] = {"channel": Channel.ONE}
XYZ = ("x{2,3}", "y{1,2,3}", "z{1,2}")
A1 = ("x{2,3}", "q{2} r{2}", "s{2}")
C0, C1, C2 = ("a{2,3}", "b{3}", ""), ("a{2} b{3}", "", ""), ("a{1,2}", "b{3}", "")
HOLD = ("a{2} c{3} b{2,3}", "", "z{1,3}")
THREE = ("a{2,3} b{2,3} c{2}", "", "")


def case(name: str, *lines: str, firings: int, **how: Any) -> Any:
    where = "-1C" if how.get("channel") is Channel.ONE else ""
    return pytest.param(lines, {**how, "firings": firings}, id=f"{name}{where}-T{firings}")


EXHAUSTED = [
    case("pair", "a{2}", "", losses=1, firings=4),
    case("pair-two-losses", "a{2} b{2}", "", losses=2, firings=2),
    case("pair-both-send", "a{1,2}", "b{1,2}", losses=1, firings=2),
    case("single", "a{2}", "", "", losses=1, firings=4),
    case("single", "a{2}", "", "", losses=1, firings=4, **ONE),
    case("x-y-z", *XYZ, losses=1, firings=0),
    case("A1", *A1, losses=1, firings=0),
    case("C0", *C0, firings=1),
    case("C0-loss", *C0, losses=1, firings=0),
    case("C1", *C1, losses=1, firings=2),
    case("C2", *C2, losses=1, firings=1, **ONE),
    case("a-b-two-losses", "a{2} b{3}", "", "", losses=2, firings=1, **ONE),
    case("hold", *HOLD, losses=1, firings=0, **ONE),
    case("window-1", "a{2,3} b{2}", "", "", window=1, losses=1, firings=0),
    case("quota-2", *THREE, quota=2, window=4, losses=1, firings=0),
    case("sender-is-no-destination", "a{2,3}", "", "b{2}", losses=1, firings=0),
    case("to-itself-alone", "a{1} b{1,2}", "", "c{3}", losses=1, firings=3),
    case("duplicates", "a{2,3} b{2}", "", "", losses=1, duplicates=1, firings=0),
    case("duplicates-pair", "a{2} b{2}", "", losses=1, duplicates=2, firings=2),
    case("hearsay-C2", *C2, infer_losses=True, losses=1, firings=1),
    case("hearsay", "a{2,3}", "", "", infer_losses=True, losses=1, firings=1),
    case("drained", "a{2,3}", "", "", drained=True, losses=1, firings=0),
    case("drained-pair", "a{1,2}", "c{1}", drained=True, losses=1, firings=1),
    case("first-numbers", *C1, first_seq=(5, 0, 3), losses=1, firings=1),
    case("patient", "a{2} b{2}", "", losses=2, firings=3, patient=True),
    # Statuses that live groups gather may be overtaken by data, and overtake them.
    case("overtaken", "a", "", "", losses=1, firings=1, channel=Channel.ANY),
    case("overtaken-two", "a b", "", "", losses=1, firings=0, channel=Channel.ANY),
    case("overtaken-subset", "a{2} b", "", "", firings=0, channel=Channel.ANY),
    case("overtaken-pair", "a b", "c", losses=1, firings=0, channel=Channel.ANY),
]


@pytest.mark.parametrize(("lines", "how"), EXHAUSTED)
def test_every_schedule_keeps_the_promises(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(spo(*lines, **how))
    assert report.exhausted, str(report)


def test_as_many_states_as_an_independent_model_had() -> None:
    # Another implementation of the same rules, searched by another program: PACK, held packets, no timers.
    # What stood first when a timer was set is remembered for polls, of which there are none here.
    class WithoutPolls(Spo):
        def heads(self) -> tuple[int, ...]:
            return ()

    assert explore(replace(spo(*XYZ, losses=1), machine=WithoutPolls)).states == 1913
    assert explore(replace(spo(*XYZ, losses=1, **ONE), machine=WithoutPolls)).states == 1637


def test_a_search_can_be_repeated() -> None:
    first, second = (explore(spo(*C2, losses=1, firings=1)) for _ in range(2))
    assert [getattr(first, name) for name in ("states", "edges", "node_states", "continued", "depth")] == [
        getattr(second, name) for name in ("states", "edges", "node_states", "continued", "depth")
    ]


ALL, BOTH = "{1,2,3}", "{1,2}"
STABLE = [
    case("pair-two-losses", f"a{BOTH}", "", losses=2, firings=2),
    case("pair-two-packets", f"a{BOTH} b{BOTH}", "", losses=1, firings=1),
    case("to-one-between", f"a{BOTH} b{{2}} c{BOTH}", "", losses=1, firings=1),
    case("to-one-first", f"a{{2}} b{BOTH}", "", losses=2, firings=1),
    case("pair-both-send", f"a{BOTH}", f"b{BOTH}", losses=1, firings=1),
    case("three", f"a{ALL}", "", "", losses=1, firings=1),
    case("three-to-one-between", f"a{ALL} b{{3}} c{ALL}", "", "", losses=1, firings=0),
    case("three-two-send", f"a{ALL}", f"b{ALL}", "", losses=1, firings=0),
    case("quota-1", f"a{BOTH} b{BOTH}", "", quota=1, losses=1, firings=1),
    case("window-1", f"a{BOTH} b{BOTH}", "", window=1, losses=1, firings=1),
    case("duplicates", f"a{BOTH}", f"b{BOTH}", duplicates=1, firings=1),
    case("drained", f"a{BOTH}", "", losses=1, firings=2, drained=True),
    case("mixed", f"a{BOTH} b{{1}}", f"c{{2}} d{BOTH}", losses=1, firings=0),
]


@pytest.mark.parametrize(("lines", "how"), STABLE)
def test_every_schedule_is_right_where_what_is_stable_is_delivered(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(spo(*lines, delivers_stable=True, **how))
    assert report.exhausted, str(report)


@pytest.mark.parametrize(
    "name",
    ["suspicion", "leave", *(pytest.param(each, marks=pytest.mark.soak) for each in ("leave-crash", "crash", "loss"))],
)
def test_so_it_is_while_the_members_change(name: str) -> None:
    report = explore(membership_scenario("spo", name, delivers_stable=True))
    assert report.exhausted, str(report)


def a_walk(seed: int) -> None:
    chance = Random(seed)
    nodes = chance.choice([2, 3, 3, 4])
    lines: list[list[str]] = [[] for _ in range(nodes)]
    for number in range(chance.randint(1, 8)):
        to = sorted(chance.sample(range(1, nodes + 1), chance.randint(1, nodes)))
        lines[chance.randrange(nodes)].append(f"m{number}{{{','.join(map(str, to))}}}")
    scenario = spo(
        *map(" ".join, lines),
        channel=chance.choice([Channel.ONE, Channel.MANY]),
        delivers_stable=seed % 3 == 0,
        window=chance.choice([1, 2, 3, 8]),
        quota=chance.choice([1, 2, 3, 8]),
        infer_losses=chance.random() < 0.3,
        losses=chance.choice([0, 2, 5, 10]),
        duplicates=chance.choice([0, 2, 5]),
        firings=chance.choice([0, 5, 20, 50]),
        drained=chance.random() < 0.3,
        patient=chance.random() < 0.3,
    )
    counterexample = random_walk(scenario, seed, length=chance.choice([20, 60, 200]))
    assert counterexample is None, f"walk {seed} of {lines}:\n{counterexample}"


def test_long_schedules_at_random() -> None:
    for seed in range(60):
        a_walk(seed)


# --- minutes rather than seconds ---

LARGE = [
    case("pair", "a{2}", "", losses=1, firings=6),
    case("window-1-pair-to-one", "a{2,3} b{2}", "", "", window=1, losses=1, firings=1),
    case("sender-is-no-destination", "a{2,3}", "", "b{2}", losses=1, firings=1),
    case("duplicates", "a{2,3} b{2}", "", "", losses=1, duplicates=1, firings=1),
    case("hearsay", "a{2,3}", "", "", infer_losses=True, losses=1, firings=2),
    case("overtaken-subset", "a{2} b", "", "", firings=1, channel=Channel.ANY),
    case("pair-two-losses", "a{2} b{2}", "", losses=2, firings=6),
    case("pair-both-send", "a{1,2}", "b{1,2}", losses=1, firings=6),
    case("single", "a{2}", "", "", losses=1, firings=7),
    case("x-y-z", *XYZ, losses=1, firings=1),
    case("x-y-z", *XYZ, losses=1, firings=1, **ONE),
    case("x-y-z-two-losses", *XYZ, losses=2, firings=1),
    case("A1", *A1, losses=1, firings=2),
    case("A1", *A1, losses=1, firings=2, **ONE),
    case("C0-loss", *C0, losses=1, firings=3),
    case("C1", *C1, losses=1, firings=5),
    case("C2", *C2, losses=1, firings=4),
    case("C2", *C2, losses=1, firings=4, **ONE),
    case("a-b-two-losses", "a{2} b{3}", "", "", losses=2, firings=4),
    case("a-b-two-losses", "a{2} b{3}", "", "", losses=2, firings=4, **ONE),
    case("hold-two-losses", *HOLD, losses=2, firings=1),
    case("hold-two-losses", *HOLD, losses=2, firings=1, **ONE),
    case("window-1", *XYZ, window=1, losses=1, firings=0),
    case("window-1-all", "a{1,2,3} b{1,2,3}", "", "", window=1, losses=1, firings=2),
    case("quota-1", *THREE, quota=1, window=3, losses=1, firings=2),
    case("quota-2", *THREE, quota=2, window=4, losses=2, firings=1),
    case("duplicates", *XYZ, losses=1, duplicates=1, firings=1),
    case("hearsay", *XYZ, infer_losses=True, losses=1, firings=1),
    case("drained", *XYZ, drained=True, losses=1, firings=0),
    case("drained-pair", "a{1,2} b{2}", "c{1}", drained=True, losses=1, firings=1),
    case("drained-single", "a{2,3}", "", "", drained=True, losses=1, firings=1),
    case("patient-pair", "a{2} b{2}", "", losses=3, firings=5, patient=True),
    case("patient", *XYZ, losses=2, firings=3, patient=True),
    case("four-nodes", "a{2,3,4}", "", "b{1}", "", losses=1, firings=1),
    case("C2", *C2, losses=1, firings=2),
    case("window-1-pair", "a{1,2} b{1,2}", "c{1,2} d{1,2}", window=1, losses=1, firings=1),
    case("quota-1-pair", "a{1,2} b{1,2} c{1,2}", "d{1,2}", quota=1, window=3, losses=1, firings=1),
]


@pytest.mark.soak
@pytest.mark.parametrize(("lines", "how"), LARGE)
def test_every_schedule_of_a_large_search_or_the_shortest_of_them(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(spo(*lines, **how), max_states=3_000_000)
    print(f"{lines} {how}: {report}")  # noqa: T201 - how far it came
    assert report.counterexample is None, str(report)


@pytest.mark.soak
def test_long_schedules_never_drawn_before() -> None:
    until = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "600")) / 4
    seed = int(os.environ.get("SOAK_FIRST", int(time.time()) // 60 * 10**9))
    while time.monotonic() < until:
        a_walk(seed)
        seed += 1
