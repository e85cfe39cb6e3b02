"""Executes a schedule step by step, with details that a search does not need: which transmission arrives, what is sent.

In a search equal units are one number, regardless of their senders and times. To tell them apart, an
execution keeps the transmissions in each queue beside the state.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ordercast.explorer.node_states import NodeInput, outputs_of
from ordercast.explorer.state_space import State, StateSpace, StepKind, decode
from ordercast.model.machine import Output, Send
from ordercast.model.units import Unit


@dataclass(frozen=True, slots=True)
class Transmission:
    """A unit that a node put on the channel."""

    sender: int
    count: int
    """Its number among all transmissions of the sender, from 0."""
    number: int
    """Its number among all transmissions, from 0."""
    unit: Unit
    again: bool
    """It is a retransmission."""


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """A step, and what it did."""

    step: int
    kind: StepKind
    node: int
    """Where it happened; for a unit in flight, its receiver."""
    transmission: Transmission | None
    """The transmission that arrived, was lost or was duplicated."""
    event: NodeInput | None
    """The input of the machine, if there was one."""
    outputs: tuple[Output, ...]
    sent: tuple[Transmission, ...]
    """What it transmitted, in the order of its outputs."""
    problem: str
    """The promise that it broke; empty if it broke none."""


class Execution:
    """The execution of a schedule by a group."""

    def __init__(self, space: StateSpace) -> None:
        self.space = space
        self.state: State = space.initial_state()
        self._in_flight: list[list[Transmission]] = [[] for _ in range(len(space.links))]
        self._counts = [0] * space.size
        self._number = 0

    def run(self, steps: Iterable[int]) -> Iterator[ExecutedStep]:
        """Takes steps until one breaks a promise."""
        for step in steps:
            executed = self.take(step)
            yield executed
            if executed.problem:
                return

    def transmission(self, step: int) -> Transmission:
        """The transmission that a step would deliver, lose or duplicate."""
        _, place, which = decode(step)
        unit = self.space.queues.contents[self.state[place]][which]
        in_queue = self._in_flight[place - self.space.first_link]
        return next(one for one in in_queue if one.unit == self.space.nodes.units[unit])

    def take(self, step: int) -> ExecutedStep:
        """Takes one step, which must be enabled."""
        space = self.space
        kind, place, _ = decode(step)
        of_a_link = kind in {StepKind.RECEIVE, StepKind.LOSE, StepKind.TWICE, StepKind.LATER}
        transmission = self.transmission(step) if of_a_link else None
        node = space.links.receivers[place - space.first_link] if of_a_link else place
        taken = space.input_of(self.state, step)
        outputs: tuple[Output, ...] = ()
        if taken is not None:
            machine: Any = space.nodes.machine(node, space.nodes.states[self.state[node]].snapshot)
            with suppress(Exception):  # the problem of the step names the exception
                outputs = tuple(outputs_of(machine, taken[1]))
        self.state, effect = space.successor(self.state, step)
        if transmission is not None:
            self._update_queue(kind, place - space.first_link, transmission)
        elif kind is StepKind.CRASH:
            self._empty(node)
        sent = tuple(self._transmit(node, output) for output in outputs if isinstance(output, Send))
        problem = space.problem(self.state, effect) if effect is not None else ""
        return ExecutedStep(step, kind, node, transmission, taken[1] if taken else None, outputs, sent, problem)

    def _update_queue(self, kind: StepKind, link: int, transmission: Transmission) -> None:
        in_queue = self._in_flight[link]
        if kind in {StepKind.RECEIVE, StepKind.LOSE}:
            in_queue.remove(transmission)
        else:
            in_queue.insert(0 if kind is StepKind.TWICE else len(in_queue), transmission)

    def _empty(self, node: int) -> None:
        for link, receiver in enumerate(self.space.links.receivers):
            if receiver == node:
                self._in_flight[link].clear()

    def _transmit(self, node: int, output: Send) -> Transmission:
        made = Transmission(node, self._counts[node], self._number, output.unit, output.again)
        self._counts[node] += 1
        self._number += 1
        for link in self.space.links.reached(node, output.to):
            if not self.space.nodes.is_deaf[self.state[self.space.links.receivers[link]]]:
                self._in_flight[link].append(made)
        return made
