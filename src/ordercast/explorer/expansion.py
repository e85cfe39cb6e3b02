"""Expands states, each with a path that leads to it: the work of one process of a distributed search."""

from collections.abc import Iterator
from dataclasses import dataclass

from ordercast.explorer.actions import Actions
from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.counterexample import Counterexample, counterexample_from, shortened
from ordercast.explorer.portable import Path, Portable
from ordercast.explorer.reduction import NoReduction, Reduction, Selection
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import State, StateSpace


@dataclass
class Tally:
    """The counts of a search so far."""

    edges: int = 0
    continued: int = 0
    longest: int = 0
    node_states: int = 0
    broken: Path | None = None
    """A path whose last step breaks a promise, or from whose end the liveness goal is missed."""


class Expansion:
    """Expands states of a scenario."""

    def __init__(self, scenario: Scenario, *, reduced: bool = True) -> None:
        self.space = StateSpace(scenario)
        self.tally = Tally()
        self.portable = Portable(self.space)
        self._selection: Selection = Reduction(self.space) if reduced else NoReduction(self.space)
        self.highest_action = max(Actions(self.space).of_step.values())
        """The highest bit of a sleep set."""
        self._continuations = FairContinuations(self.space)

    def expand(self, path: Path, state: State, asleep: int) -> Iterator[tuple[int, State, int]]:
        """The steps to explore from a state, each with its successor and the sleep set there.

        It stops at the first broken promise.
        """
        space, plan, tally = self.space, self._selection, self.tally
        free = space.progress_steps(state)
        if not free and not self.reaches_goal(path, state):
            return
        for step, action in plan.steps(state, free, asleep):
            tally.edges += 1
            after, effect = space.successor(state, step)
            if effect is not None and space.problem(after, effect):
                tally.broken = self.portable.longer(path, state, step)
                return
            yield step, after, plan.sleep_set_after(state, step, action, effect, asleep)
            asleep |= action

    def comes_back(self, path: Path, state: State) -> None:
        """A path leads back to a state that was expanded before: it may be a cycle of receipts."""
        if self.portable.ends_in_receipt(path) and not self._continuations.settles(state):
            self.tally.broken = path

    def forget_counterexample(self) -> None:
        """Continues with other states; the counterexample found was reported."""
        self.tally.broken = None

    def reaches_goal(self, path: Path, state: State) -> bool:
        """True if the fair continuations from a state succeed."""
        bad = self._continuations.failure_from(state) is not None
        if bad:
            self.tally.broken = path
        self.tally.continued, self.tally.longest = self._continuations.runs, self._continuations.longest
        self.tally.node_states = len(self.space.nodes.states)
        return not bad


def counterexample_of(scenario: Scenario, path: Path) -> Counterexample | None:
    """The counterexample at the end of a path, without the steps that it does not need."""
    space = StateSpace(scenario)
    continuations = FairContinuations(space)
    steps = Portable(space).steps(path)
    state = space.initial_state()
    for count, step in enumerate(steps, start=1):
        state, effect = space.successor(state, step)
        if effect is not None and space.problem(state, effect):
            return shortened(space, continuations, steps[:count], live=False)
    return counterexample_from(space, continuations, steps, state)
