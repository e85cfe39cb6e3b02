"""Random walks through a state space that is too large to be searched, with the same checks."""

from random import Random

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.counterexample import Counterexample, counterexample_from, shortened
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import KIND, StateSpace

_LIKELY = (1, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)  # weights by kind of step: about half of the steps are receipts


def random_walk(scenario: Scenario, seed: int, length: int) -> Counterexample | None:
    """One random schedule of at most `length` steps, and the fair continuations from its end."""
    space = StateSpace(scenario)
    continuations = FairContinuations(space)
    state = space.initial_state()
    steps: list[int] = []
    rng = Random(seed)
    for _ in range(length):
        possible = space.steps(state)
        if not possible:
            break
        step = rng.choices(possible, [_LIKELY[step & KIND] for step in possible])[0]
        steps.append(step)
        state, effect = space.successor(state, step)
        if effect is not None and space.problem(state, effect):
            return shortened(space, continuations, steps, live=False)
    return counterexample_from(space, continuations, steps, state)
