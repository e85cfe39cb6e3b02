"""Long schedules drawn at random, with the same judgement: for what is too large to be searched."""

from random import Random

from ordercast.explorer.completion import Completion
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.verdict import Violation, ends_badly, shortened
from ordercast.explorer.world import World

_LIKELY = (1, 4, 1, 1, 1, 1, 1, 1)  # by kind of step: half of what happens, or so, is receipt


def wander(scenario: Scenario, seed: int, length: int) -> Violation | None:
    """One schedule of at most so many steps, and from its end the fair continuations."""
    world = World(scenario)
    completion = Completion(world)
    state = world.start()
    steps: list[int] = []
    chance = Random(seed)
    for _ in range(length):
        possible = world.steps(state)
        if not possible:
            break
        step = chance.choices(possible, [_LIKELY[step & 7] for step in possible])[0]
        steps.append(step)
        state, effect = world.take(state, step)
        if effect is not None and world.problem(state, effect):
            return shortened(world, completion, steps, live=False)
    return ends_badly(world, completion, steps, state)
