"""A schedule acted out step by step, with all that a search has no use for: which transmission arrives, what is said.

In a search equal units are one number, whoever put them on the channel and when. People want to know that, so a replay
keeps, beside each queue of the state, the transmissions that lie in it.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ordercast.explorer.world import Kind, State, World, decode
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
class Happening:
    """What one step did."""

    step: int
    kind: Kind
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


class Replay:
    """A group that is taken through a schedule."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state: State = world.start()
        self._under_way: list[list[Transmission]] = [[] for _ in range(len(world.links))]
        self._counts = [0] * world.size
        self._number = 0

    def run(self, steps: Iterable[int]) -> Iterator[Happening]:
        """Takes steps, until one breaks a promise."""
        for step in steps:
            happening = self.take(step)
            yield happening
            if happening.problem:
                return

    def transmission(self, step: int) -> Transmission:
        """What would arrive, be lost or be doubled."""
        _, place, which = decode(step)
        unit = self.world.queues.contents[self.state[place]][which]
        lying = self._under_way[place - self.world.first_link]
        return next(one for one in lying if one.unit == self.world.nodes.units[unit])

    def take(self, step: int) -> Happening:
        """Takes one step, which must be possible here."""
        world = self.world
        kind, place, _ = decode(step)
        of_a_link = kind in {Kind.RECEIVE, Kind.LOSE, Kind.TWICE, Kind.LATER}
        transmission = self.transmission(step) if of_a_link else None
        node = world.links.receivers[place - world.first_link] if of_a_link else place
        met = world.meets(self.state, step)
        outputs: tuple[Output, ...] = ()
        if met is not None:
            machine = world.nodes.machine(node, world.nodes.states[self.state[node]].snapshot)
            with suppress(Exception):  # the problem of the step says what was raised
                outputs = tuple(machine.handle(met[1]))
        self.state, effect = world.take(self.state, step)
        if transmission is not None:
            self._disturb(kind, place - world.first_link, transmission)
        elif kind is Kind.CRASH:
            self._empty(node)
        sent = tuple(self._transmit(node, output) for output in outputs if isinstance(output, Send))
        problem = world.problem(self.state, effect) if effect is not None else ""
        return Happening(step, kind, node, transmission, met[1] if met else None, outputs, sent, problem)

    def _disturb(self, kind: Kind, link: int, transmission: Transmission) -> None:
        lying = self._under_way[link]
        if kind in {Kind.RECEIVE, Kind.LOSE}:
            lying.remove(transmission)
        else:
            lying.insert(0 if kind is Kind.TWICE else len(lying), transmission)

    def _empty(self, node: int) -> None:
        for link, receiver in enumerate(self.world.links.receivers):
            if receiver == node:
                self._under_way[link].clear()

    def _transmit(self, node: int, output: Send) -> Transmission:
        made = Transmission(node, self._counts[node], self._number, output.unit, output.again)
        self._counts[node] += 1
        self._number += 1
        for link in self.world.links.reached(node, output.to):
            if not self.world.nodes.states[self.state[self.world.links.receivers[link]]].crashed:
                self._under_way[link].append(made)
        return made
