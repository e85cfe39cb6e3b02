"""Breadth-first search of all schedules of a scenario, on the machines themselves.

Every reachable state is visited once; every transition is checked against the promises of the service (safety); and
from every state fair continuations must reach the liveness goal. It is enough to check liveness in states in which
everything is submitted and delivered: every other state leads to such a state by steps that are explored anyway, if
receipts come to an end. If they do not, schedules run in a cycle, so that a receipt leads back to a state that was
expanded before: there it is checked that receipts end.
"""

import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ordercast.explorer.counterexample import Counterexample, counterexample_from, shortened
from ordercast.explorer.expansion import EXPANDED_BEFORE, NO_STEP, SAMPLE, TO_EXPAND, Expansion, KnownStates
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import State
from ordercast.model.config import require

SearchProgress = Callable[[int, float], None]
"""Called with the number of states found so far, and the seconds."""

_PROGRESS_EVERY = 1_000  # states


@dataclass(frozen=True)
class SearchReport:
    """The result of a search."""

    states: int
    edges: int
    exhausted: bool
    """All states were visited; the search was not cut off."""
    seconds: float
    node_states: int
    continued: int
    """Fair continuations that succeeded, including those that ran into a state known to succeed."""
    longest: int
    """The maximum of their rounds of timers."""
    depth: int
    """The maximum distance of a state from the start, in steps."""
    counterexample: Counterexample | None

    def __str__(self) -> str:
        rate = self.states / self.seconds if self.seconds else 0
        end = "exhausted" if self.exhausted else "cut"
        return (
            f"{self.states} states, {self.edges} edges, {end}, depth {self.depth}, "
            f"{self.node_states} node states, {self.continued} continuations of up to {self.longest} rounds, "
            f"{self.seconds:.1f} s, {rate:.0f} states/s" + (f"\n{self.counterexample}" if self.counterexample else "")
        )


class Search:
    """A breadth-first search. Create it, then call `run` once."""

    def __init__(
        self,
        scenario: Scenario,
        max_states: int = 1_000_000,
        *,
        reduced: bool = False,
        eager: bool = False,
        begins: Sequence[str] = (),
    ) -> None:
        """`max_states`: the search is cut off when it finds more. `reduced`: with partial-order reduction.

        `eager`: check liveness in every state, not only where everything is delivered. It is slower, but finds a
        failure that needs a long recovery within a few steps after the loss.
        `begins`: the first steps of every schedule, as text; only what follows them is searched.
        """
        self._expansion = Expansion(scenario, reduced=reduced, eager=eager)
        self.space = self._expansion.space
        self._max_states = max_states
        self._given = parse_schedule(self.space, begins)
        start = self._state_after_prefix()
        self._known = KnownStates(start)
        key = self._known.pack(*start)
        self._known.arrive(key, 0)
        self._frontier = deque([(0, start, key)])
        self._parents = array("q", [-1])  # by state, in the order of discovery
        self._steps = array("q", [-1])
        self._counterexample: Counterexample | None = None

    def run(self, progress: SearchProgress | None = None) -> SearchReport:
        """Searches until all states are visited, a promise is broken, or the limit is exceeded."""
        began, reported = time.perf_counter(), 0
        found = self._known.sleep_sets
        while self._frontier and self._counterexample is None and len(found) <= self._max_states:
            self._expand(*self._frontier.popleft())
            if progress is not None and len(found) >= reported + _PROGRESS_EVERY:
                reported = len(found)
                progress(reported, time.perf_counter() - began)
        exhausted = not self._frontier and self._counterexample is None
        if self._counterexample is None:
            self._continue_frontier()
        return SearchReport(
            states=len(found),
            edges=self._expansion.edges,
            exhausted=exhausted,
            seconds=time.perf_counter() - began,
            node_states=len(self.space.nodes.states),
            continued=self._expansion.continuations.runs,
            longest=self._expansion.continuations.longest,
            depth=len(self.schedule(len(self._steps) - 1)),
            counterexample=self._counterexample,
        )

    def _state_after_prefix(self) -> State:
        state = self.space.initial_state()
        for step in self._given:
            state, _ = self.space.successor(state, step)
        require(min(state) >= 0, "the first steps fire more timers than the scenario allows: raise `firings`")
        return state

    def schedule(self, state: int) -> list[int]:
        """The steps that first led to a state, which is given by its index in the order of discovery."""
        steps: list[int] = []
        while state:
            steps.append(self._steps[state])
            state = self._parents[state]
        return [*self._given, *steps[::-1]]

    def states(self) -> Iterator[State]:
        """All states that were found."""
        return map(self._known.unpack, self._known.sleep_sets)

    def _expand(self, index: int, state: State, key: bytes) -> None:
        expansion, known = self._expansion, self._known
        for step, after, sleep_set in expansion.expand(state, known.begin_expansion(key)):
            key_after = known.pack(*after)
            arrival = known.arrive(key_after, sleep_set)
            if arrival & EXPANDED_BEFORE and expansion.is_endless(step, after):
                self._counterexample = self._misses_goal([*self.schedule(index), step], after)
            if arrival & TO_EXPAND:
                self._frontier.append((len(self._steps), after, key_after))
                self._parents.append(index)
                self._steps.append(step)
        if expansion.failure == NO_STEP:
            self._counterexample = self._misses_goal(self.schedule(index), state)
        elif expansion.failure is not None:
            steps = [*self.schedule(index), expansion.failure]
            self._counterexample = shortened(
                self.space, expansion.continuations, steps, live=False, given=len(self._given)
            )

    def _misses_goal(self, steps: list[int], state: State) -> Counterexample | None:
        return counterexample_from(self.space, self._expansion.continuations, steps, state, len(self._given))

    def _continue_frontier(self) -> None:
        for index, state, _ in islice(self._frontier, 0, None, SAMPLE):
            if not self._expansion.reaches_goal(state):
                self._counterexample = self._misses_goal(self.schedule(index), state)
                return


def explore(
    scenario: Scenario,
    max_states: int = 1_000_000,
    *,
    reduced: bool = False,
    eager: bool = False,
    begins: Sequence[str] = (),
    progress: SearchProgress | None = None,
) -> SearchReport:
    """Searches a scenario; see `Search` for the options, and `SearchReport` for the result."""
    return Search(scenario, max_states, reduced=reduced, eager=eager, begins=begins).run(progress)
