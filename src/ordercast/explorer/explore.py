"""The explorer: all schedules of a scenario, the shortest first, on the machines themselves.

Every state that a group can get into is visited once; every step into a state is judged by what the service
promises; and from every state the group must end well once nothing is lost any more. It is enough to ask that of
the states in which everything is submitted and delivered: every other state leads to one of them by steps that are
searched anyway.
"""

import struct
import time
from array import array
from collections import deque
from dataclasses import dataclass

from ordercast.explorer.completion import Completion
from ordercast.explorer.scenario import Scenario
from ordercast.explorer.verdict import Violation, ends_badly, shortened
from ordercast.explorer.world import State, World

_SAMPLE = 61  # of what is not searched to its end, one state in so many is continued


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
    """Fair continuations, without those that ran into one known to end well."""
    longest: int
    """The most rounds of timers that one of them took."""
    depth: int
    """Steps of the longest shortest schedule."""
    violation: Violation | None

    def __str__(self) -> str:
        pace = self.states / self.seconds if self.seconds else 0
        end = "exhausted" if self.exhausted else "cut"
        return (
            f"{self.states} states, {self.edges} edges, {end}, depth {self.depth}, "
            f"{self.node_states} node states, {self.continued} continuations of up to {self.longest} rounds, "
            f"{self.seconds:.1f} s, {pace:.0f} states/s" + (f"\n{self.violation}" if self.violation else "")
        )


class Search:
    """A search breadth first. Make it, then call `run` once."""

    def __init__(self, scenario: Scenario, most: int = 1_000_000) -> None:
        """`most`: the states after which it is cut off."""
        self.world = World(scenario)
        self._most = most
        self._completion = Completion(self.world)
        start = self.world.start()
        self._packing = struct.Struct(f"{len(start)}I")
        self._seen = {self._packing.pack(*start)}
        self._frontier = deque([start])
        self._parents = array("q", [-1])  # by state, in the order of discovery
        self._steps = array("q", [-1])
        self._edges = 0
        self._violation: Violation | None = None

    def run(self) -> Report:
        """Searches until everything is seen, something is wrong, or it is enough."""
        began = time.perf_counter()
        expanded = 0
        while self._frontier and self._violation is None and len(self._steps) < self._most:
            self._expand(expanded, self._frontier.popleft())
            expanded += 1
        exhausted = not self._frontier and self._violation is None
        if self._violation is None:
            self._continue_frontier(expanded)
        return Report(
            states=len(self._steps),
            edges=self._edges,
            exhausted=exhausted,
            seconds=time.perf_counter() - began,
            node_states=len(self.world.nodes.states),
            continued=self._completion.runs,
            longest=self._completion.longest,
            depth=len(self.schedule(len(self._steps) - 1)),
            violation=self._violation,
        )

    def schedule(self, state: int) -> list[int]:
        """The steps that first led to a state, given by its place in the order of discovery."""
        steps: list[int] = []
        while state:
            steps.append(self._steps[state])
            state = self._parents[state]
        return steps[::-1]

    def _expand(self, index: int, state: State) -> None:
        world, seen, pack = self.world, self._seen, self._packing.pack
        free = world.free_steps(state)
        if not free:
            self._continue(index, state)
        if self._violation is not None:
            return
        for step in [*free, *world.disturbances(state)]:
            self._edges += 1
            after, effect = world.take(state, step)
            problem = world.problem(after, effect) if effect is not None else ""
            if problem:
                self._violation = shortened(self.world, self._completion, [*self.schedule(index), step], live=False)
                return
            key = pack(*after)
            if key not in seen:
                seen.add(key)
                self._parents.append(index)
                self._steps.append(step)
                self._frontier.append(after)

    def _continue(self, index: int, state: State) -> None:
        if self._completion.bad_end(state) is not None:
            self._violation = ends_badly(self.world, self._completion, self.schedule(index), state)

    def _continue_frontier(self, first: int) -> None:
        for place, state in enumerate(self._frontier):
            if not place % _SAMPLE and self._violation is None:
                self._continue(first + place, state)


def explore(scenario: Scenario, most: int = 1_000_000) -> Report:
    """Searches a scenario; see `Report` for what comes back."""
    return Search(scenario, most).run()
