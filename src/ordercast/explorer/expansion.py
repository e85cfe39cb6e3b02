"""States expanded one after another, each with a path that leads to it: what each process of a split search does."""

from collections.abc import Iterator
from dataclasses import dataclass

from ordercast.explorer.completion import Completion
from ordercast.explorer.portable import Path, Portable
from ordercast.explorer.reduction import Everything, Plan, Reduction
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.strands import Strands
from ordercast.explorer.verdict import Violation, ends_badly, shortened
from ordercast.explorer.world import State, World


@dataclass
class Tally:
    """What was seen so far."""

    edges: int = 0
    continued: int = 0
    longest: int = 0
    node_states: int = 0
    broken: Path | None = None
    """A path whose last step breaks a promise, or from whose end the group does not end well."""


class Expansion:
    """Expands states of a scenario."""

    def __init__(self, scenario: Scenario, *, reduced: bool = True) -> None:
        self.world = World(scenario)
        self.tally = Tally()
        self.portable = Portable(self.world)
        self._plan: Plan = Reduction(self.world) if reduced else Everything(self.world)
        self.strands = max(Strands(self.world).of_step.values())
        """The highest bit of what may sleep."""
        self._completion = Completion(self.world)

    def expand(self, path: Path, state: State, asleep: int) -> Iterator[tuple[int, State, int]]:
        """The steps that are searched from a state, where each leads, and what sleeps there.

        It comes to an end where something is broken.
        """
        world, plan, tally = self.world, self._plan, self.tally
        free = world.free_steps(state)
        if not free and not self.ends_well(path, state):
            return
        for step, strand in plan.steps(state, free, asleep):
            tally.edges += 1
            after, effect = world.take(state, step)
            if effect is not None and world.problem(after, effect):
                tally.broken = self.portable.longer(path, state, step)
                return
            yield step, after, plan.asleep_behind(state, step, strand, effect, asleep)
            asleep |= strand

    def comes_back(self, path: Path, state: State) -> None:
        """To a state that was expanded before, by a path that may go round in a circle of receipts for ever."""
        if self.portable.ends_in_receipt(path) and not self._completion.settles(state):
            self.tally.broken = path

    def forget_what_is_broken(self) -> None:
        """Goes on with other states; what was found is told already."""
        self.tally.broken = None

    def ends_well(self, path: Path, state: State) -> bool:
        """Whether a loss-free continuation from a state completes."""
        bad = self._completion.bad_end(state) is not None
        if bad:
            self.tally.broken = path
        self.tally.continued, self.tally.longest = self._completion.runs, self._completion.longest
        self.tally.node_states = len(self.world.nodes.states)
        return not bad


def violation_of(scenario: Scenario, path: Path) -> Violation | None:
    """What a path breaks, without the steps that it does not need."""
    world = World(scenario)
    completion = Completion(world)
    steps = Portable(world).steps(path)
    state = world.start()
    for count, step in enumerate(steps, start=1):
        state, effect = world.take(state, step)
        if effect is not None and world.problem(state, effect):
            return shortened(world, completion, steps[:count], live=False)
    return ends_badly(world, completion, steps, state)
