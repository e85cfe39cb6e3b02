"""Long schedules drawn at random, with the same judgement: for what is too large to be searched."""

from random import Random

from ordercast.explorer.continuations import FairContinuations
from ordercast.explorer.counterexample import Counterexample, counterexample_from, shortened
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.state_space import StateSpace

_LIKELY = (1, 4, 1, 1, 1, 1, 1, 1)  # by kind of step: half of what happens, or so, is receipt


def random_walk(scenario: Scenario, seed: int, length: int) -> Counterexample | None:
    """One schedule of at most so many steps, and from its end the fair continuations."""
    space = StateSpace(scenario)
    continuations = FairContinuations(space)
    state = space.initial_state()
    steps: list[int] = []
    chance = Random(seed)
    for _ in range(length):
        possible = space.steps(state)
        if not possible:
            break
        step = chance.choices(possible, [_LIKELY[step & 7] for step in possible])[0]
        steps.append(step)
        state, effect = space.successor(state, step)
        if effect is not None and space.problem(state, effect):
            return shortened(space, continuations, steps, live=False)
    return counterexample_from(space, continuations, steps, state)
