"""A schedule acted out step by step, with all that a search has no use for: which transmission arrives, what is said.

In a search equal units are one number, whoever put them on the channel and when. People want to know that, so a replay
keeps, beside each queue of the state, the transmissions that lie in it.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ordercast.explorer.state_space import State, StateSpace, StepKind, decode
from ordercast.model.machine import Input, Output, Send
from ordercast.model.units import Unit


@dataclass(frozen=True, slots=True)
class Transmission:
    """A unit that a node put on the channel."""

    sender: int
    count: int
    """Its place among all that the sender transmitted, from 0."""
    number: int
    """Its place among all that anybody transmitted, from 0."""
    unit: Unit
    again: bool
    """It is a copy."""


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """What one step did."""

    step: int
    kind: StepKind
    node: int
    """Where it happened; for what is under way, whom it was to reach."""
    transmission: Transmission | None
    """What arrived, was lost or was doubled."""
    event: Input | None
    """What the machine was told, if it was told anything."""
    outputs: tuple[Output, ...]
    sent: tuple[Transmission, ...]
    """What it put on the channel, in the order of its outputs."""
    problem: str
    """The promise that it broke; empty if it broke none."""


class Execution:
    """A group that is taken through a schedule."""

    def __init__(self, space: StateSpace) -> None:
        self.space = space
        self.state: State = space.initial_state()
        self._under_way: list[list[Transmission]] = [[] for _ in range(len(space.links))]
        self._counts = [0] * space.size
        self._number = 0

    def run(self, steps: Iterable[int]) -> Iterator[ExecutedStep]:
        """Takes steps, until one breaks a promise."""
        for step in steps:
            executed = self.take(step)
            yield executed
            if executed.problem:
                return

    def transmission(self, step: int) -> Transmission:
        """What would arrive, be lost or be doubled."""
        _, place, which = decode(step)
        unit = self.space.queues.contents[self.state[place]][which]
        lying = self._under_way[place - self.space.first_link]
        return next(one for one in lying if one.unit == self.space.nodes.units[unit])

    def take(self, step: int) -> ExecutedStep:
        """Takes one step, which must be possible here."""
        space = self.space
        kind, place, _ = decode(step)
        of_a_link = kind in {StepKind.RECEIVE, StepKind.LOSE, StepKind.TWICE, StepKind.LATER}
        transmission = self.transmission(step) if of_a_link else None
        node = space.links.receivers[place - space.first_link] if of_a_link else place
        met = space.input_of(self.state, step)
        outputs: tuple[Output, ...] = ()
        if met is not None:
            machine = space.nodes.machine(node, space.nodes.states[self.state[node]].snapshot)
            with suppress(Exception):  # the problem of the step says what was raised
                outputs = tuple(machine.handle(met[1]))
        self.state, effect = space.successor(self.state, step)
        if transmission is not None:
            self._disturb(kind, place - space.first_link, transmission)
        elif kind is StepKind.CRASH:
            self._empty(node)
        sent = tuple(self._transmit(node, output) for output in outputs if isinstance(output, Send))
        problem = space.problem(self.state, effect) if effect is not None else ""
        return ExecutedStep(step, kind, node, transmission, met[1] if met else None, outputs, sent, problem)

    def _disturb(self, kind: StepKind, link: int, transmission: Transmission) -> None:
        lying = self._under_way[link]
        if kind in {StepKind.RECEIVE, StepKind.LOSE}:
            lying.remove(transmission)
        else:
            lying.insert(0 if kind is StepKind.TWICE else len(lying), transmission)

    def _empty(self, node: int) -> None:
        for link, receiver in enumerate(self.space.links.receivers):
            if receiver == node:
                self._under_way[link].clear()

    def _transmit(self, node: int, output: Send) -> Transmission:
        made = Transmission(node, self._counts[node], self._number, output.unit, output.again)
        self._counts[node] += 1
        self._number += 1
        for link in self.space.links.reached(node, output.to):
            if not self.space.nodes.states[self.state[self.space.links.receivers[link]]].crashed:
                self._under_way[link].append(made)
        return made
