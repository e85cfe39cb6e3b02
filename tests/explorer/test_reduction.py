"""Leaving out equivalent interleavings loses nothing: the same final states, and every broken promise is found."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ordercast.explorer.explore import Search, SearchReport, explore
from ordercast.explorer.node_states import Effect
from ordercast.explorer.parallel import Share
from ordercast.explorer.reduction import Reduction
from ordercast.explorer.scenario import Promise, Scenario, scripts
from ordercast.explorer.state_space import KIND, State, StateSpace, StepKind
from ordercast.model.config import GroupConfig
from ordercast.model.machine import Level, Output, Reached, Send, Submit, ViewInstalled
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Status
from tests.explorer import (
    broken_st,
    test_explore_broken,
    test_explore_prito,
    test_explore_sequencer,
    test_explore_st,
    test_explore_to,
    toys,
)
from tests.explorer.drawn import drawn_scenario
from tests.explorer.groups import broadcasts, priority_total, selective_total, spo, spo_as_printed, total

VIEWS: dict[str, Any] = {"suspect_after": 1, "polls_to_abort": 12, "rounds": 120}
ONE: dict[str, Any] = {"channel": Channel.ONE}


def finals(scenario: Scenario, *, reduced: bool) -> tuple[set[tuple[object, ...]], int]:
    """The states in which all is submitted and delivered, whatever their numbers are, and how many states there are."""
    search = Search(scenario, reduced=reduced)
    report = search.run()
    return finals_of(search, report), report.states


def finals_of(search: Search, report: SearchReport) -> set[tuple[object, ...]]:
    """The same of a search that was run."""
    assert report.exhausted, str(report)
    space = search.space
    return {
        (tuple(space.nodes.states[node] for node in state[: space.size]), state[space.past_links :])
        for state in search.states()
        if not space.progress_steps(state)
    }


XYZ = ("x{2,3}", "y{1,2,3}", "z{1,2}")
SMALL = {
    "spo": spo(*XYZ, losses=1),
    "spo-two-losses": spo("a{2} b{3}", "", "", losses=2, firings=1),
    "spo-timers": spo("a{1,2}", "b{3}", "", losses=1, firings=1),
    "spo-drained": spo("a{1,2} b{2}", "c{1}", drained=True, losses=1),
    "spo-window": spo("a{1,2} b{1,2}", "c{1,2} d{1,2}", window=1, losses=1),
    "st": selective_total("", "g{1,3}", "y{1,3}", losses=1),
    "st-duplicates": selective_total("a{1,2}", "b{1,2}", duplicates=2, firings=1),
    "to": total("a", "b", "", losses=1),
    "prito": priority_total("p1", "h5", "", firings=1),
    "sequencer": broadcasts("", "a", "b", losses=1, firings=1),
    "sequencer-duplicates": broadcasts("", "a", "b", duplicates=2),
    "sequencer-crash": broadcasts("a", "b", "", crashes=1, firings=1, **VIEWS),
    "sequencer-resilience": broadcasts("", "a", "", crashes=1, losses=1, firings=1, resilience=1, **VIEWS),
}


LARGE = {
    "spo-duplicates": spo("a{2,3} b{2}", "", "", losses=1, duplicates=1, firings=1),
    "spo-patient": spo("a{2} b{2}", "", losses=2, firings=3, patient=True),
    "st-patient": selective_total("g{1,3}", "", "", losses=1, firings=2, patient=True),
    "sequencer-many": broadcasts("", "a", "b", losses=1, duplicates=1, firings=1, channel=Channel.MANY),
    "to-duplicates": total("a", "b", duplicates=2, firings=1),
    "spo-one-channel": spo(*XYZ, losses=1, **ONE),
    "spo-two-duplicates": spo("a{2} b{2}", "c{1}", losses=1, duplicates=2, firings=1),
    "spo-patient-3-4": spo("a{2} b{2}", "", losses=3, firings=4, patient=True),
    "st-pairs": selective_total("a{1,2}", "b{2,3}", "c{1,3}", losses=1),
}
"""These take seconds."""
NAMES = [*SMALL, *(pytest.param(name, marks=pytest.mark.soak) for name in LARGE)]


@pytest.mark.parametrize("name", NAMES)
def test_the_final_states_are_the_same(name: str) -> None:
    scenario = {**SMALL, **LARGE}[name]
    every, states = finals(scenario, reduced=False)
    some, fewer = finals(scenario, reduced=True)
    assert some == every
    assert len(every) > 1
    assert fewer < states


def toy_scenarios() -> Iterator[Scenario]:
    """Toys of all kinds, disturbed at random."""
    for seed in range(60):
        chance = Random(seed)
        nodes = chance.choice([2, 3])
        lines: list[list[str]] = [[] for _ in range(nodes)]
        for number in range(chance.randint(1, 4)):
            to = sorted(chance.sample(range(1, nodes + 1), chance.randint(1, nodes)))
            chance.choice(lines).append(f"m{number}{{{','.join(map(str, to))}}}")
        machine = chance.choice([toys.Flood, toys.ChannelFlood, toys.LoopedFlood, toys.Whisper, toys.Ticker])
        yield Scenario(
            machine=machine,
            group=GroupConfig(nodes=nodes),
            scripts=scripts(*map(" ".join, lines)),
            promise=Promise(ladder=False, liveness_goal=None, one_order=chance.random() < 0.3),
            channel=chance.choice([Channel.ONE, Channel.MANY, Channel.ANY]),
            losses=chance.choice([0, 1, 2]),
            firings=chance.choice([0, 1, 2]),
            crashes=chance.choice([0, 0, 1]),
            patient=chance.random() < 0.5,
            drained=chance.random() < 0.2,
        )


def test_the_final_states_of_toys_are_the_same() -> None:
    compared = 0
    for scenario in toy_scenarios():
        every, some = (Search(scenario, 60_000, reduced=reduced) for reduced in (False, True))
        seen, fewer = every.run(), some.run()
        assert (seen.counterexample is None) == (fewer.counterexample is None), f"{scenario}\n{seen}\n{fewer}"
        if seen.exhausted:
            assert finals_of(some, fewer) == finals_of(every, seen), str(scenario)
            compared += 1
    assert compared > 20


def compared(seed: int) -> str:
    """Holds a reduced search of machines that were drawn against one of all interleavings; tells what they came to."""
    scenario = drawn_scenario(seed)
    every, some = Search(scenario, 2_000), Search(scenario, 20_000, reduced=True)  # which may find what is broken later
    seen, fewer = every.run(), some.run()
    if seen.counterexample is None and not seen.exhausted:
        return "cut"
    assert (seen.counterexample is None) == (fewer.counterexample is None), f"{seed}: {seen}\n{fewer}"
    if seen.counterexample is None:
        assert finals_of(some, fewer) == finals_of(every, seen), f"{seed}: {seen}\n{fewer}"
    return "exhausted" if seen.counterexample is None else "broken"


def test_machines_drawn_at_random_come_to_the_same() -> None:
    came_to = Counter(map(compared, range(90)))
    assert came_to["exhausted"] > 18
    assert came_to["broken"] > 10  # and not only where all goes well


@pytest.mark.soak
def test_machines_never_drawn_before_come_to_the_same() -> None:
    until = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "600")) / 8
    seed = int(os.environ.get("SOAK_FIRST", int(time.time()) // 60 * 10**9))
    while time.monotonic() < until:
        compared(seed)
        seed += 1


SLOW = {broken_st.ForgetsThePrefix, broken_st.ChangesItsReply}
"""Take 5 to 8 s each. Searches of all interleavings find them in every `make test`."""


def broken_machines() -> Iterator[Any]:
    """All machines that other tests have broken, in the scenarios in which they are found."""
    cases: list[tuple[Any, Any, Any, Any]] = [
        *[(spo, *case[:3]) for case in [*test_explore_broken.UNTRUE, *test_explore_broken.STUCK]],
        *[(selective_total, *case[:3]) for case in test_explore_st.BROKEN],
        *[(total, machine, ("a", "b"), how) for machine, how, _ in test_explore_to.BROKEN],
        *[(broadcasts, *case[:3]) for case in test_explore_sequencer.BROKEN],
    ]
    some_of_prito: list[Any] = test_explore_prito.BROKEN[:3]
    cases += [(priority_total, *case[:3]) for case in some_of_prito]
    for make, machine, lines, how in cases:
        marks = [pytest.mark.soak] if machine in SLOW else []
        yield pytest.param(make(*lines, machine=machine, **how), id=machine.__name__, marks=marks)
    printed: list[tuple[tuple[str, ...], dict[str, Any]]] = [
        (("x{2,3}", "q{2} r{2}", "s{2}"), {}),
        (("a{2,3}", "b{3}", ""), {"liveness_goal": Level.ACCEPTED}),
        (("a{2} b{3}", "", ""), {"liveness_goal": Level.ACCEPTED, "losses": 1}),
        (("a{2} b{2} c{2}", "", ""), {"liveness_goal": Level.ACCEPTED, "window": 2}),
    ]
    for lines, how in printed:
        yield pytest.param(spo_as_printed(*lines, **how), id=f"printed {lines}")


@pytest.mark.parametrize("scenario", list(broken_machines()))
def test_whatever_is_broken_is_found(scenario: Scenario) -> None:
    report = explore(scenario, reduced=True)
    assert report.counterexample is not None, str(report)


class LastOneBoasts(toys.Flood):
    """Accepts what it hears; E3 says at once that everybody has."""

    def hear(self, packet: Packet) -> list[Output]:
        if not packet.destinations >> self.me & 1:
            return []
        boast = [Reached(Level.PREACKNOWLEDGED, packet)] if self.me == 2 else []
        return [Reached(Level.ACCEPTED, packet), *boast]


def test_a_claim_is_not_made_true_by_letting_another_node_go_first() -> None:
    asked = Scenario(
        machine=LastOneBoasts,
        group=GroupConfig(nodes=3),
        scripts=scripts("a{2,3}", "", ""),
        promise=Promise(liveness_goal=None),
    )
    counterexample = explore(asked, reduced=True).counterexample
    assert counterexample is not None
    assert counterexample.schedule == ("E1 sends a{2,3}", "E3 receives E1#0 a")


class Remembers(toys.Flood):
    """Keeps the order of all that it heard."""

    def hear(self, packet: Packet) -> list[Output]:
        self.numbers.append(packet.seq)
        return []


def test_what_comes_again_later_comes_before_and_behind_what_is_sent_meanwhile() -> None:
    """A sending that sleeps, since it was searched before a receipt, must wake behind the copy."""
    asked = Scenario(
        machine=Remembers,
        group=GroupConfig(nodes=2),
        scripts=scripts("a{2} b{2} c{2} d{2}", ""),
        promise=Promise(ladder=False, liveness_goal=None),
        duplicates=1,
    )
    assert finals(asked, reduced=True)[0] == finals(asked, reduced=False)[0]


class ComesBack(toys.Flood):
    """E2 goes on alone, and then with E1 again; all deliver what they send, at once and without a word."""

    def send(self, event: Submit) -> list[Output]:
        numbered, _, *delivered = super().send(event)
        members = {b"alone": 2, b"again": 3}.get(event.payload)
        views: list[Output] = [] if members is None else [ViewInstalled(self.numbers[0], members, "")]
        return [numbered, *([] if event.payload == b"again" else delivered), *views]


def test_that_somebody_goes_on_again_bears_on_what_others_deliver() -> None:
    """Only what is delivered by a member is held against the others' logs."""
    asked = Scenario(
        machine=ComesBack,
        group=GroupConfig(nodes=2),
        scripts=scripts("a{1}", "alone{2} again{2}"),
        promise=Promise(ladder=False, liveness_goal=None, one_order=True, views=True),
    )
    counterexample = explore(asked, reduced=True).counterexample
    assert counterexample is not None
    assert counterexample.schedule == ("E2 sends alone{2}", "E2 sends again{2}", "E1 sends a{1}")


class AnswersA(toys.Flood):
    """Says something when it hears a, and nothing when it hears b."""

    def hear(self, packet: Packet) -> list[Output]:
        return [Send(Data(packet, Status(0, ())))] if packet.payload == b"a" else []


def test_who_may_go_first_does_not_depend_on_which_unit_was_met_first() -> None:
    """Units are numbered as they are met, in each process otherwise, and lie in a bag by their numbers."""
    keys = []
    for line in ("a{2} b{2}", "b{2} a{2}"):
        promise = Promise(ladder=False, liveness_goal=None)
        group = GroupConfig(nodes=2)
        space = StateSpace(
            Scenario(machine=AnswersA, group=group, scripts=scripts(line, ""), promise=promise, channel=Channel.ANY)
        )
        state = space.initial_state()
        for _ in range(2):
            [submit] = [step for step in space.steps(state) if step & KIND == StepKind.SUBMIT]
            state, _ = space.successor(state, submit)
        keys.append(Reduction(space)._local_futures(state)[1].keys)
    assert keys[0] == keys[1] > 0


class SleepsUntilDrained(Reduction):
    """Lets all receipts sleep behind a sending, and none behind whatever else happens."""

    def sleep_set_after(self, state: State, step: int, action: int, effect: Effect | None, sleep_set: int) -> int:
        del state, action, effect, sleep_set
        return sum(self._actions.of_link) if step & KIND == StepKind.SUBMIT else 0


def test_what_slept_when_a_state_was_expanded_is_searched_when_it_is_reached_awake() -> None:
    """To be told that nothing waits changes nothing here: it leads to the same state, which was expanded."""
    asked = Scenario(
        machine=toys.Flood,
        group=GroupConfig(nodes=2),
        scripts=scripts("a{2}", ""),
        promise=Promise(ladder=False),
        drained=True,
    )
    alone, shared = Search(asked, reduced=True), Share(asked, 0, 1, reduced=True)
    alone._expansion.selection = SleepsUntilDrained(alone.space)
    shared.expansion.selection = SleepsUntilDrained(shared.expansion.space)
    while shared.frontier:
        shared.level()
    assert alone.run().states == shared.states() == explore(asked).states == 3
