"""The sequencer's broadcast with its sound rules: every schedule of small groups, on a network that promises nothing.

Any unit may be lost or doubled, and any may overtake any other; timers may fire T times at any moment, and one node may
crash at any moment. In each scenario, at every state: nothing is accepted or delivered twice, or out of its sender's
order; what is called pre-acknowledged has been accepted by all that the node knows to be members; the logs of all that
go on are beginnings of one log, with resilience those of the others too; nobody gives the group up, unless too few can
be reached. And from every state a fair continuation without loss ends with everything of those that go on delivered at
all of them, with all or nothing of the others, and with silence.
"""

import os
import time
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest

from ordercast.explorer.explore import explore
from ordercast.model.config import SECOND
from ordercast.model.machine import Abort, Deliver, Input, Output, TimerFired
from ordercast.model.runs import Channel
from ordercast.protocols.registry import MachineClass
from ordercast.protocols.sequencer.machine import Sequencer
from tests.explorer import broken_sequencer as broken
from tests.explorer.groups import broadcasts
from tests.explorer.random_walk import random_walk

VIEWS: dict[str, Any] = {"suspect_after": 1, "polls_to_abort": 12, "rounds": 120}


def case(name: str, *lines: str, firings: int, **how: Any) -> Any:
    return pytest.param(lines, {**how, "firings": firings}, id=f"{name}-T{firings}")


EXHAUSTED = [
    case("pair", "", "a", losses=1, firings=2),
    case("pair-two-losses", "", "a b", losses=2, duplicates=1, firings=1),
    case("pair-both-send", "a", "b", losses=1, firings=1),
    case("one", "", "a", "", losses=1, firings=2),
    case("two", "", "a", "b", losses=1, firings=1),
    case("two-duplicates", "", "a", "b", duplicates=2, firings=0),
    case("two-on-one-channel", "", "a", "b", losses=1, duplicates=1, firings=1, channel=Channel.MANY),
    case("own", "a", "b", "", losses=1, firings=1),
    case("history-1", "", "a b", "", losses=1, firings=1, history=1),
    case("history-1-byte", "", "a b", "", losses=1, firings=1, history_bytes=1),
    case("window-1", "", "a b", "", losses=1, firings=1, window=1),
    case("direct", "", "a", "b", losses=1, firings=0, direct_from=1),
    case("resilience-1", "", "a", "", losses=1, firings=2, resilience=1),
    case("resilience-2", "", "a", "", losses=1, firings=1, resilience=2),
    case("crash", "", "a", "", crashes=1, firings=2, **VIEWS),
    case("crash-of-a-sender", "a", "b", "", crashes=1, losses=1, firings=0, **VIEWS),
    case("crash-own", "a", "b", "", crashes=1, firings=1, **VIEWS),
    case("crash-resilience-1", "", "a", "", crashes=1, losses=1, firings=2, resilience=1, **VIEWS),
    case("suspicion", "", "a", "", patient=True, firings=6, **VIEWS),
]


@pytest.mark.parametrize(("lines", "how"), EXHAUSTED)
def test_every_schedule_is_right(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(broadcasts(*lines, **how))
    print(report)  # noqa: T201 - how far it came
    assert report.exhausted, str(report)


@pytest.mark.parametrize("resilience", [0, 1])
def test_heartbeats_break_nothing(resilience: int) -> None:
    """They never end, so that there is no final state to be right in: only safety is checked."""
    made = broadcasts("", "a", "", losses=1, firings=2, resilience=resilience, liveness_goal=None)
    beating = msgspec.structs.replace(made.group.sequencer, heartbeat=SECOND)
    report = explore(replace(made, group=msgspec.structs.replace(made.group, sequencer=beating)), reduced=True)
    assert report.exhausted, str(report)
    assert report.states > 900


def test_a_search_can_be_repeated() -> None:
    first, second = (explore(broadcasts("", "a", "b", losses=1, firings=1), max_states=3_000) for _ in range(2))
    assert [getattr(first, name) for name in ("states", "edges", "node_states", "continued", "depth")] == [
        getattr(second, name) for name in ("states", "edges", "node_states", "continued", "depth")
    ]


def a_walk(seed: int) -> None:
    chance = Random(seed)
    nodes = chance.choice([2, 3, 3, 4, 5])
    lines: list[list[str]] = [[] for _ in range(nodes)]
    for number in range(chance.randint(1, 8)):
        lines[chance.randrange(nodes)].append(f"m{number}")
    scenario = broadcasts(
        *map(" ".join, lines),
        channel=chance.choice([Channel.ANY, Channel.ANY, Channel.MANY]),
        window=chance.choice([1, 2, 8]),
        history=chance.choice([1, 2, 8]),
        resilience=chance.randrange(min(nodes, 4)),
        direct_from=chance.choice([0, 1]),
        losses=chance.choice([0, 2, 5, 10, 30]),
        duplicates=chance.choice([0, 0, 3]),
        firings=chance.choice([0, 5, 20, 60]),
        crashes=chance.choice([0, 0, 1, 2]),
        patient=chance.random() < 0.3,
        **{**VIEWS, "polls_to_abort": 30, "rounds": 400},
    )
    counterexample = random_walk(scenario, seed, length=chance.choice([20, 60, 200]))
    assert counterexample is None, f"walk {seed} of {lines}:\n{counterexample}"


def test_long_schedules_at_random() -> None:
    for seed in range(150):
        a_walk(seed)


# --- what is broken is found ---

BROKEN: list[tuple[MachineClass, tuple[str, ...], dict[str, Any], str]] = [
    (broken.StoresWhatIsAhead, ("", "a", "b"), {"losses": 1}, "different logs"),
    (broken.TakesTheHighestForStable, ("", "a", "b"), {}, "is preacknowledged at E1, but not yet accepted"),
    (
        broken.NeverAsksForTheStatus,
        ("", "a b", ""),
        {"losses": 1, "firings": 1, "history": 1},
        "never becomes quiescent",
    ),
    (broken.TakesTheShortestLog, ("a", "b", ""), {"crashes": 1, "losses": 1, **VIEWS}, "takes back what E2 has"),
    (broken.ReceivesWhileStopped, ("", "a", ""), {"crashes": 1, "firings": 3, **VIEWS}, "takes back what E2 has"),
    (broken.KeepsTheTable, ("a", "b", ""), {"crashes": 1, "losses": 1, **VIEWS}, "never becomes quiescent"),
    (
        broken.DeliversBeforeCommit,
        ("a", "", ""),
        {"crashes": 1, "losses": 2, "resilience": 1, **VIEWS},
        "is never known as received by all",
    ),
]


@pytest.mark.parametrize(("machine", "lines", "how", "sentence"), BROKEN)
def test_a_departure_taken_back_is_found(
    machine: MachineClass, lines: tuple[str, ...], how: dict[str, Any], sentence: str
) -> None:
    report = explore(broadcasts(*lines, machine=machine, **how), max_states=20_000)
    assert report.counterexample is not None, str(report)
    assert sentence in report.counterexample.sentence


class KeepsOneToItself(Sequencer):
    """E3 knows that all have b, and never hands it over."""

    def handle(self, event: Input) -> list[Output]:
        did = super().handle(event)
        kept = [output for output in did if isinstance(output, Deliver) and output.packet.payload == b"b"]
        return [output for output in did if self.me != 2 or output not in kept]


class GivesUpAtOnce(Sequencer):
    """Takes the first timer for a sign that nobody can be reached."""

    def handle(self, event: Input) -> list[Output]:
        did = super().handle(event)
        return [*did, Abort("nobody answers", without_quorum=True)] if isinstance(event, TimerFired) else did


class AbortsForNoReason(Sequencer):
    """Aborts with the words of a group without a quorum, but does not say that it has none."""

    def handle(self, event: Input) -> list[Output]:
        did = super().handle(event)
        return [*did, Abort("no majority; what was sent may be lost")] if isinstance(event, TimerFired) else did


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (KeepsOneToItself, "b{1,2,3} of E2 is never delivered at E3"),
        (GivesUpAtOnce, "no node goes on, though none crashed"),
        (AbortsForNoReason, "E1 aborts the group: no majority; what was sent may be lost"),
    ],
)
def test_what_members_are_owed_in_the_end_is_asked_for(machine: MachineClass, sentence: str) -> None:
    report = explore(broadcasts("", "a b", "", machine=machine))
    assert report.counterexample is not None, str(report)
    assert report.counterexample.sentence.startswith(sentence)


# --- minutes rather than seconds ---

# Five members: with fewer no two of them may be missing. Found with E2 as the sender, and three losses, not two.
TWO_CRASHES: dict[str, Any] = {"resilience": 2, "crashes": 2, "losses": 3}


@pytest.mark.soak
def test_resilience_of_two_is_two_holders_besides_the_sequencer() -> None:
    lines = ("", "a", "", "", "")
    report = explore(broadcasts(*lines, **TWO_CRASHES))
    assert (report.counterexample, report.exhausted) == (None, True)
    report = explore(broadcasts(*lines, machine=broken.WaitsForOneHolder, **TWO_CRASHES))
    assert report.counterexample is not None, str(report)
    assert "is never known as received by all" in report.counterexample.sentence


LARGE = [
    case("pair-two-losses", "", "a b", losses=2, duplicates=1, firings=3),
    case("two", "", "a", "b", losses=2, duplicates=1, firings=1),
    case("two-direct", "", "a", "b", losses=1, duplicates=1, firings=1, direct_from=1),
    case("history-1", "", "a b", "c", losses=1, firings=2, history=1),
    case("resilience-2", "", "a", "b", losses=1, firings=1, resilience=2),
    case("crash", "", "a", "b", crashes=1, losses=1, firings=2, **VIEWS),
    case("crash-resilience-1", "a", "b", "", crashes=1, losses=1, firings=3, resilience=1, **VIEWS),
    case("crash-of-two", "a", "b", "", "", crashes=2, firings=2, **VIEWS),
    case("suspicions", "", "a", "", losses=1, firings=6, **VIEWS),
]


@pytest.mark.soak
@pytest.mark.parametrize(("lines", "how"), LARGE)
def test_every_schedule_of_a_large_search_or_the_shortest_of_them(lines: tuple[str, ...], how: dict[str, Any]) -> None:
    report = explore(broadcasts(*lines, **how), max_states=3_000_000)
    print(report)  # noqa: T201 - how far it came
    assert report.counterexample is None, str(report)


@pytest.mark.soak
def test_long_schedules_never_drawn_before() -> None:
    until = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "600")) / 4
    seed = int(os.environ.get("SOAK_FIRST", int(time.time()) // 60 * 10**9))
    while time.monotonic() < until:
        a_walk(seed)
        seed += 1
