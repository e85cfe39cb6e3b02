"""Breadth-first search of all schedules of a scenario, on the machines themselves.

Every reachable state is visited once; every transition is checked against the promises of the service (safety); and
from every state fair continuations must reach the liveness goal. It is enough to check liveness in states in which
everything is submitted and delivered: every other state leads to such a state by steps that are explored anyway, if
receipts come to an end. If they do not, schedules run in a cycle, so that a receipt leads back to a state that was
expanded before: there it is checked that receipts end.
"""

import struct
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ordercast.explorer.actions import EXPANDED
from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.counterexample import Counterexample, counterexample_from, shortened
from ordercast.explorer.notation import parse_schedule
from ordercast.explorer.reduction import NoReduction, Reduction, Selection
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import State, StateSpace, StepKind
from ordercast.model.config import require

SAMPLE = 61
"""When a search is cut off, liveness is checked in one state of the frontier in so many."""

Progress = Callable[[int, float], None]
"""Called with the number of states found so far, and the seconds."""

_PROGRESS_EVERY = 1_000  # states


@dataclass(frozen=True)
class Report:
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
        """`max_states`: the search is cut off there. `reduced`: with partial-order reduction.

        `eager`: check liveness in every state, not only where everything is delivered. It is slower, but finds a
        failure that needs a long recovery within a few steps after the loss.
        `begins`: the first steps of every schedule, as text; only what follows them is searched.
        """
        self.space = StateSpace(scenario)
        self._eager = eager
        self._selection: Selection = Reduction(self.space) if reduced else NoReduction(self.space)
        self._max_states = max_states
        self._continuations = FairContinuations(self.space)
        self._given = parse_schedule(self.space, begins)
        start = self._state_after_prefix()
        self._packing = struct.Struct(f"{len(start)}I")
        key = self._packing.pack(*start)
        self._sleep_sets = {key: 0}
        """By state: its sleep set, and whether it has been expanded. Keys are the states themselves, not digests."""
        self._frontier = deque([(0, start, key)])
        self._parents = array("q", [-1])  # by state, in the order of discovery
        self._steps = array("q", [-1])
        self._edges = 0
        self._counterexample: Counterexample | None = None

    def run(self, progress: Progress | None = None) -> Report:
        """Searches until all states are visited, a promise is broken, or the limit is reached."""
        began, reported = time.perf_counter(), 0
        while self._frontier and self._counterexample is None and len(self._sleep_sets) < self._max_states:
            self._expand(*self._frontier.popleft())
            if progress is not None and len(self._sleep_sets) >= reported + _PROGRESS_EVERY:
                reported = len(self._sleep_sets)
                progress(reported, time.perf_counter() - began)
        exhausted = not self._frontier and self._counterexample is None
        if self._counterexample is None:
            self._continue_frontier()
        return Report(
            states=len(self._sleep_sets),
            edges=self._edges,
            exhausted=exhausted,
            seconds=time.perf_counter() - began,
            node_states=len(self.space.nodes.states),
            continued=self._continuations.runs,
            longest=self._continuations.longest,
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
        return map(self._packing.unpack, self._sleep_sets)

    def _expand(self, index: int, state: State, key: bytes) -> None:
        space, selection = self.space, self._selection
        free = space.progress_steps(state)
        if self._eager or not free:
            self._continue(index, state)
        if self._counterexample is not None:
            return
        sleep_set = self._sleep_sets[key]
        self._sleep_sets[key] = sleep_set | EXPANDED
        for step, action in selection.steps(state, free, sleep_set):
            self._edges += 1
            after, effect = space.successor(state, step)
            problem = space.problem(after, effect) if effect is not None else ""
            if problem:
                steps = [*self.schedule(index), step]
                self._counterexample = shortened(
                    self.space, self._continuations, steps, live=False, given=len(self._given)
                )
                return
            self._arrive(index, step, after, selection.sleep_set_after(state, step, action, effect, sleep_set))
            sleep_set |= action

    def _arrive(self, index: int, step: int, after: State, sleep_set: int) -> None:
        key = self._packing.pack(*after)
        known = self._sleep_sets.get(key)
        if known is None:
            self._sleep_sets[key] = sleep_set
        elif woken := known & ~sleep_set & ~EXPANDED:
            self._sleep_sets[key] = known & ~woken & ~EXPANDED
        comes_back = known is not None and known & EXPANDED and step & 7 == StepKind.RECEIVE
        if comes_back and not self._continuations.settles(after):
            steps = [*self.schedule(index), step]
            self._counterexample = counterexample_from(self.space, self._continuations, steps, after, len(self._given))
        if known is None or (woken and known & EXPANDED):
            self._frontier.append((len(self._steps), after, key))
            self._parents.append(index)
            self._steps.append(step)

    def _continue(self, index: int, state: State) -> None:
        if self._continuations.failure_from(state) is not None:
            given = len(self._given)
            self._counterexample = counterexample_from(
                self.space, self._continuations, self.schedule(index), state, given
            )

    def _continue_frontier(self) -> None:
        for place, (index, state, _) in enumerate(self._frontier):
            if not place % SAMPLE and self._counterexample is None:
                self._continue(index, state)


def explore(
    scenario: Scenario,
    max_states: int = 1_000_000,
    *,
    reduced: bool = False,
    eager: bool = False,
    begins: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Searches a scenario; see `Search` for the options, and `Report` for the result."""
    return Search(scenario, max_states, reduced=reduced, eager=eager, begins=begins).run(progress)
