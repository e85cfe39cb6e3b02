"""A search on several processes sees what a search in one sees: the same states and edges, and whatever is broken."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest

from ordercast.explorer.explore import Search, SearchReport, explore
from ordercast.explorer.parallel import explore_on
from ordercast.explorer.portable import Portable
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import StateSpace
from ordercast.model.errors import ConfigError
from ordercast.model.machine import Input, Level, Output, Receive
from ordercast.model.runs import Channel
from ordercast.protocols.spo.machine import Spo
from tests.explorer import broken
from tests.explorer.groups import broadcasts, priority_total, selective_total, spo, spo_as_printed

SCENARIOS: dict[str, Scenario] = {
    "spo": spo("x{2,3}", "y{1,2}", "z{2}", losses=1),
    "spo-timers": spo("a{2,3}", "", "", losses=1, duplicates=1, firings=1),
    "st": selective_total("a{1,2}", "b{2,3}", "", losses=1),
    "prito": priority_total("p1", "h5", firings=1),
    "sequencer": broadcasts("", "a", "b", losses=1, duplicates=1),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_sees_the_same(name: str) -> None:
    alone = explore(SCENARIOS[name])
    together = explore_on(2, SCENARIOS[name], reduced=False)
    assert together.exhausted, str(together)
    assert (together.states, together.edges, together.depth) == (alone.states, alone.edges, alone.depth)


@pytest.mark.parametrize("name", ["spo-timers", "prito", "sequencer"])
def test_a_reduced_search_does_not_depend_on_how_many_there_are(name: str) -> None:
    one, three = (explore_on(processes, SCENARIOS[name]) for processes in (1, 3))
    assert one.exhausted
    assert three.exhausted
    assert (three.states, three.edges, three.depth) == (one.states, one.edges, one.depth)
    assert one.states < explore(SCENARIOS[name]).states


@pytest.mark.parametrize(
    "scenario",
    [
        spo_as_printed("x{2,3}", "q{2} r{2}", "s{2}"),
        spo_as_printed("a{2} b{3}", "", "", liveness_goal=Level.ACCEPTED, losses=1),
        spo("a{2} b{2}", "", machine=broken.AsksOnce, losses=2),
        spo("x{2,3}", "", "", machine=broken.SaysPackForAck),
    ],
)
def test_it_finds_what_is_broken_after_as_few_steps(scenario: Scenario) -> None:
    alone, together = explore(scenario), explore_on(2, scenario, reduced=False)
    assert alone.counterexample is not None
    assert together.counterexample is not None
    assert together.counterexample.live == alone.counterexample.live
    assert len(together.counterexample.schedule) == len(alone.counterexample.schedule)


def test_what_is_cut_is_said_to_be_and_what_is_left_is_continued() -> None:
    report = explore_on(2, spo("x{2,3}", "y{1,2,3}", "z{1,2}", losses=1), max_states=100)
    assert (report.exhausted, report.counterexample) == (False, None)
    assert 100 < report.states < 1_000
    assert report.continued > 0


@pytest.mark.parametrize("search", [explore, partial(explore_on, 1), partial(explore_on, 2)])
def test_a_limit_cuts_off_only_what_has_more_states(search: Callable[..., SearchReport]) -> None:
    scenario = spo("x{2,3}", "y{1,2,3}", "")
    states = search(scenario).states
    exact = search(scenario, max_states=states)
    assert (exact.states, exact.exhausted) == (states, True)
    assert not search(scenario, max_states=states // 2).exhausted


def test_a_process_that_dies_is_told() -> None:
    class Dies(Spo):
        def handle(self, event: Input) -> list[Output]:
            if isinstance(event, Receive):
                os._exit(1)
            return super().handle(event)

    with pytest.raises(ConfigError, match="a worker process of the search died"):
        explore_on(2, spo("a{2}", "", machine=Dies))


def test_a_want_of_memory_breaks_no_promise(capfd: pytest.CaptureFixture[str]) -> None:
    class Hungry(Spo):
        def handle(self, event: Input) -> list[Output]:
            raise MemoryError(event)

    with pytest.raises(ConfigError, match="probably out of memory"):
        explore_on(1, spo("a{2}", "", machine=Hungry))
    assert capfd.readouterr().err == ""


def test_processes_do_not_outlive_a_search_that_was_killed() -> None:
    """They hold its standard output too, which ends when the last of them does."""
    program = (
        "import os, signal\n"
        "from ordercast.explorer.parallel import explore_on\n"
        "from tests.explorer.groups import spo\n"
        "explore_on(3, spo('a{2}', 'b{1}'), progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as search:  # noqa: S603
        try:
            search.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(search.pid, signal.SIGKILL)
    assert search.returncode == -signal.SIGKILL


def test_progress_is_told() -> None:
    told: list[tuple[int, float]] = []
    report = explore_on(2, SCENARIOS["spo"], progress=lambda states, seconds: told.append((states, seconds)))
    assert [states for states, _ in told] == sorted(states for states, _ in told)
    assert told[-1][0] == report.states


# --- paths and digests ---

DISTURBED: dict[str, Any] = {"losses": 3, "duplicates": 2, "firings": 6}
WALKED = {
    "spo": spo("a{2,3} b{2}", "c{1,3}", "", **DISTURBED),
    "sequencer": broadcasts("a", "b c", "d", channel=Channel.ANY, **DISTURBED),
}


@pytest.mark.parametrize("name", WALKED)
def test_a_path_leads_to_the_same_state_in_another_world(name: str) -> None:
    """One that met states, units and timers in another order, and so has other numbers for them."""
    one, other = StateSpace(WALKED[name]), StateSpace(WALKED[name])
    there, elsewhere = Portable(one), Portable(other)
    paths = []
    for seed in range(30):
        chance, state, path = Random(seed), one.initial_state(), b""
        for _ in range(25):
            step = chance.choice(one.steps(state))
            path = there.longer(path, state, step)
            state, _ = one.successor(state, step)
        paths.append((path, there.digest(state), [one.nodes.states[node] for node in state[: one.size]]))
    Random(0).shuffle(paths)
    for path, digest, nodes in paths:
        state = elsewhere.state(path)
        assert [other.nodes.states[node] for node in state[: other.size]] == nodes
        assert elsewhere.digest(state) == digest
        assert elsewhere.state(path) == state
        assert len(elsewhere.steps(path)) == 25


def test_different_states_have_different_digests() -> None:
    search = Search(SCENARIOS["sequencer"])
    report = search.run()
    digest = Portable(search.space).digest
    assert len({digest(state) for state in search.states()}) == report.states
