"""What searches in several processes exchange besides states: counts, and failures as paths."""

from dataclasses import dataclass

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.counterexample import Counterexample, counterexample_from, shortened
from ordercast.explorer.expansion import NO_STEP
from ordercast.explorer.portable import Portable, PortablePath
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import State, StateSpace


@dataclass
class SearchCounts:
    """The counts of one process of a search so far, and its failure."""

    edges: int = 0
    continued: int = 0
    longest: int = 0
    node_states: int = 0
    broken: PortablePath | None = None
    """A path whose last step breaks a promise, or from whose end the liveness goal is missed."""


def path_of_failure(portable: Portable, path: PortablePath, state: State, failure: int) -> PortablePath:
    """The path of a failure that was found when a state was expanded; `path` leads to the state."""
    return path if failure == NO_STEP else portable.longer(path, state, failure)


def counterexample_of(scenario: Scenario, path: PortablePath) -> Counterexample | None:
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
