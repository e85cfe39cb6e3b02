"""A group on a network of datagrams, moved by hand: the same stories for the printed sequencer and the sound one.

What is sent is under way until the test hands it over, loses it or keeps a copy; a story needs only to know whether a
unit carries data, who sent it and where it goes. A message is one letter, and nobody but the test opens it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ordercast.model.config import GroupConfig, PaperRules, SequencerConfig, SequencerReadings, Timing
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Input,
    Machine,
    Numbered,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.units import DataUnit, Unit
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.sequencer.paper.machine import SequencerPaper

SEQUENCER, E2, E3 = range(3)


class Flight(NamedTuple):
    """A unit on its way to one node."""

    unit: Unit
    to: int

    @property
    def is_broadcast(self) -> bool:
        """From the sequencer, with data."""
        return isinstance(self.unit, DataUnit) and self.unit.source == SEQUENCER

    @property
    def letter(self) -> str:
        """What it carries."""
        return self.unit.packet.payload.decode() if isinstance(self.unit, DataUnit) else "-"


Loses = Callable[[Flight], bool]


def nothing(_: Flight) -> bool:
    """No unit is lost."""
    return False


class Group:
    """Some machines, what is under way, running timers, and what the applications were given."""

    def __init__(self, machine: Callable[[int, GroupConfig], Machine], config: GroupConfig) -> None:
        self.nodes = range(config.nodes)
        self.machines: list[Any] = [machine(node, config) for node in self.nodes]
        self.under_way: deque[Flight] = deque()
        self.handed: list[Flight] = []
        """All that was ever handed over, in that order."""
        self.delivered: list[list[str]] = [[] for _ in self.nodes]
        self.numbered: list[str] = []
        self.aborted: dict[int, str] = {}
        self.timers: list[dict[str, int]] = [{} for _ in self.nodes]
        """Running, by name: when they are due."""
        self.now = 0

    def submit(self, node: int, letter: str) -> None:
        """The application at a node broadcasts a message."""
        self.handle(node, Submit(everybody(len(self.nodes)), (1,), letter.encode()))

    def handle(self, node: int, event: Input) -> None:
        """One input, and what follows from it."""
        for output in self.machines[node].handle(event):
            match output:
                case Send(unit=unit, to=None):
                    self.under_way += [Flight(unit, to) for to in self.nodes if to != node]
                case Send(unit=unit, to=int(to)):
                    self.under_way.append(Flight(unit, to))
                case Numbered(packet=packet):
                    self.numbered.append(packet.payload.decode())
                case Deliver(packet=packet):
                    self.delivered[node].append(packet.payload.decode())
                case SetTimer(name=name, after=after):
                    self.timers[node][name] = self.now + after
                case CancelTimer(name=name):
                    self.timers[node].pop(name, None)
                case Abort(why=why):
                    self.aborted[node] = why

    def hand(self, flight: Flight) -> None:
        """A unit arrives; also one that has arrived before."""
        self.handed.append(flight)
        self.handle(flight.to, Receive(flight.unit))

    def carry(self, loses: Loses = nothing) -> None:
        """Hands over all that is under way, and what follows from it, in the order sent, but for what is lost."""
        while self.under_way:
            flight = self.under_way.popleft()
            if not loses(flight):
                self.hand(flight)

    def fire(self) -> bool:
        """The next timer runs out, if there is any."""
        due = [(at, node, name) for node, running in enumerate(self.timers) for name, at in running.items()]
        if not due:
            return False
        self.now, node, name = min(due)
        del self.timers[node][name]
        self.handle(node, TimerFired(name))
        return True

    def settle(self, loses: Loses = nothing, most: int = 2_000) -> bool:
        """All that can happen, until nothing is left; False if it never ends."""
        for _ in range(most):
            self.carry(loses)
            if not self.fire():
                return True
        return False

    @property
    def logs(self) -> list[str]:
        """What each application was given."""
        return [" ".join(log) for log in self.delivered]


def printed(history: int = 100, nodes: int = 3, tries: int = 5, **readings: Any) -> Group:
    """A group under the printed rules, but for some readings."""
    config = GroupConfig(
        nodes=nodes,
        paper=PaperRules(sequencer=SequencerReadings(**readings)),
        sequencer=SequencerConfig(history=history),
        polls_to_abort=tries,
        timing=Timing(),
    )
    return Group(SequencerPaper, config)


def sound(history: int = 100, nodes: int = 3, **more: Any) -> Group:
    """A group under the sound rules; one broadcast of each node is under way at a time, as in the paper."""
    config = GroupConfig(nodes=nodes, window=1, sequencer=SequencerConfig(history=history, **more))
    return Group(Sequencer, config)


def once(matches: Loses) -> Loses:
    """Loses the first unit of a kind."""
    left = [True]

    def loses(flight: Flight) -> bool:
        return bool(left and matches(flight) and left.pop())

    return loses
