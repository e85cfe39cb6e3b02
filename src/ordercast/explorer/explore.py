"""The explorer: all schedules of a scenario, the shortest first, on the machines themselves.

Every state that a group can get into is visited once; every step into a state is judged by what the service
promises; and from every state the group must end well once nothing is lost any more. It is enough to ask that of
the states in which everything is submitted and delivered: every other state leads to one of them by steps that are
searched anyway, if there is an end to receipts. Where there is none, schedules go round in a circle, and so a receipt
leads back to a state that was expanded before: such a state is asked for that end.
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
"""Of what is not searched to its end, one state in so many is continued."""

Progress = Callable[[int, float], None]
"""Told how many states were found so far, and in how many seconds."""

_TOLD_EVERY = 1_000  # states


@dataclass(frozen=True)
class Report:
    """What a search saw."""

    states: int
    edges: int
    exhausted: bool
    """All states were visited, rather than the search cut off."""
    seconds: float
    node_states: int
    continued: int
    """Fair continuations, also those that ran into one known to end well."""
    longest: int
    """The most rounds of timers that one of them takes."""
    depth: int
    """Steps of the longest shortest schedule."""
    counterexample: Counterexample | None

    def __str__(self) -> str:
        pace = self.states / self.seconds if self.seconds else 0
        end = "exhausted" if self.exhausted else "cut"
        return (
            f"{self.states} states, {self.edges} edges, {end}, depth {self.depth}, "
            f"{self.node_states} node states, {self.continued} continuations of up to {self.longest} rounds, "
            f"{self.seconds:.1f} s, {pace:.0f} states/s" + (f"\n{self.counterexample}" if self.counterexample else "")
        )


class Search:
    """A search breadth first. Make it, then call `run` once."""

    def __init__(
        self,
        scenario: Scenario,
        max_states: int = 1_000_000,
        *,
        reduced: bool = False,
        eager: bool = False,
        begins: Sequence[str] = (),
    ) -> None:
        """`max_states`: the states after which it is cut off; `reduced`: equivalent interleavings are left out.

        `eager`: every state is continued, not only those in which everything is delivered. It is slower, but what it
        takes a long recovery to bring to light is found a few steps after the loss.
        `begins`: steps in words that come first in every schedule; only what follows them is searched.
        """
        self.space = StateSpace(scenario)
        self._eager = eager
        self._selection: Selection = Reduction(self.space) if reduced else NoReduction(self.space)
        self._max_states = max_states
        self._continuations = FairContinuations(self.space)
        self._given = parse_schedule(self.space, begins)
        start = self._state_behind_what_is_given()
        self._packing = struct.Struct(f"{len(start)}I")
        key = self._packing.pack(*start)
        self._asleep = {key: 0}
        """By state what sleeps there, and whether it has been expanded. Keys are the states themselves, not digests."""
        self._frontier = deque([(0, start, key)])
        self._parents = array("q", [-1])  # by state, in the order of discovery
        self._steps = array("q", [-1])
        self._edges = 0
        self._counterexample: Counterexample | None = None

    def run(self, progress: Progress | None = None) -> Report:
        """Searches until everything is seen, something is wrong, or it is enough."""
        began, told = time.perf_counter(), 0
        while self._frontier and self._counterexample is None and len(self._asleep) < self._max_states:
            self._expand(*self._frontier.popleft())
            if progress is not None and len(self._asleep) >= told + _TOLD_EVERY:
                told = len(self._asleep)
                progress(told, time.perf_counter() - began)
        exhausted = not self._frontier and self._counterexample is None
        if self._counterexample is None:
            self._continue_frontier()
        return Report(
            states=len(self._asleep),
            edges=self._edges,
            exhausted=exhausted,
            seconds=time.perf_counter() - began,
            node_states=len(self.space.nodes.states),
            continued=self._continuations.runs,
            longest=self._continuations.longest,
            depth=len(self.schedule(len(self._steps) - 1)),
            counterexample=self._counterexample,
        )

    def _state_behind_what_is_given(self) -> State:
        state = self.space.initial_state()
        for step in self._given:
            state, _ = self.space.successor(state, step)
        require(
            min(state) >= 0, "what the search begins with fires more timers than the scenario allows: raise `firings`"
        )
        return state

    def schedule(self, state: int) -> list[int]:
        """The steps that first led to a state, given by its place in the order of discovery."""
        steps: list[int] = []
        while state:
            steps.append(self._steps[state])
            state = self._parents[state]
        return [*self._given, *steps[::-1]]

    def states(self) -> Iterator[State]:
        """All states that were found."""
        return map(self._packing.unpack, self._asleep)

    def _expand(self, index: int, state: State, key: bytes) -> None:
        space, plan = self.space, self._selection
        free = space.progress_steps(state)
        if self._eager or not free:
            self._continue(index, state)
        if self._counterexample is not None:
            return
        asleep = self._asleep[key]
        self._asleep[key] = asleep | EXPANDED
        for step, action in plan.steps(state, free, asleep):
            self._edges += 1
            after, effect = space.successor(state, step)
            problem = space.problem(after, effect) if effect is not None else ""
            if problem:
                steps = [*self.schedule(index), step]
                self._counterexample = shortened(
                    self.space, self._continuations, steps, live=False, given=len(self._given)
                )
                return
            self._arrive(index, step, after, plan.sleep_set_after(state, step, action, effect, asleep))
            asleep |= action

    def _arrive(self, index: int, step: int, after: State, asleep: int) -> None:
        key = self._packing.pack(*after)
        known = self._asleep.get(key)
        if known is None:
            self._asleep[key] = asleep
        elif woken := known & ~asleep & ~EXPANDED:
            self._asleep[key] = known & ~woken & ~EXPANDED
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
    """Searches a scenario; see `Search` for how, and `Report` for what comes back."""
    return Search(scenario, max_states, reduced=reduced, eager=eager, begins=begins).run(progress)
