"""A group of machines on the weakest network that their protocol works on, moved one step at a time.

Nothing here depends on a protocol: what is sent goes to whom the output says, in the order that the network keeps, or
is lost; timers fire when the schedule says so. A schedule is a sequence of numbers: the same numbers make the same run.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Drained,
    Echo,
    Input,
    Machine,
    Output,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody
from ordercast.model.runs import Channel
from ordercast.model.units import PacketId, Unit

Watch = Callable[[int, Machine, Input], list[Output]]
"""How an input is given to a machine: which node, its machine, the input."""


def simply(node: int, machine: Machine, event: Input) -> list[Output]:
    """As a host does."""
    del node
    return machine.handle(event)


@dataclass
class Group:
    """Some machines and what is under way between them."""

    kind: type[Machine]
    config: GroupConfig
    watch: Watch = simply
    machines: list[Machine] = field(default_factory=list)
    waiting: dict[tuple[int, int], deque[Unit]] = field(default_factory=dict)
    """Units under way, by a queue: (sender, receiver); on one channel all senders share the queue of a receiver."""
    timers: list[set[str]] = field(default_factory=list)
    delivered: list[list[PacketId]] = field(default_factory=list)
    aborted: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        nodes = range(self.config.nodes)
        self.machines = [self.kind(node, self.config) for node in nodes]
        self.timers = [set() for _ in nodes]
        self.delivered = [[] for _ in nodes]

    def give(self, node: int, event: Input) -> list[Output]:
        """Hands an input to a node, and carries out what follows."""
        outputs = self.watch(node, self.machines[node], event)
        for output in outputs:
            self._carry_out(node, output)
        return outputs

    def _carry_out(self, node: int, output: Output) -> None:
        match output:
            case Send(unit=unit, to=to) if to is not None:
                self._queue(node, to).append(unit)
            case Send(unit=unit):
                for other in range(self.config.nodes):
                    if other != node or self.kind.echo is not Echo.NONE:
                        self._queue(node, other).append(unit)
            case SetTimer(name=name):
                self.timers[node].add(name)
            case CancelTimer(name=name):
                self.timers[node].discard(name)
            case Deliver(packet=packet):
                self.delivered[node].append((packet.source, packet.seq))
            case Abort():
                self.aborted.add(node)

    def _queue(self, sender: int, receiver: int) -> deque[Unit]:
        return self.waiting.setdefault((-1 if self.kind.needs is Channel.ONE else sender, receiver), deque())

    def submit(self, node: int, text: str, destinations: int | None = None, priority: int = 0) -> list[Output]:
        """The application of a node sends."""
        payload = text.encode()
        to = everybody(self.config.nodes) if destinations is None else destinations
        return self.give(node, Submit(to, (len(payload),), payload, priority))

    # --- steps ---

    def receive(self, queue: tuple[int, int]) -> None:
        """The next unit of a queue arrives."""
        unit = self.waiting[queue].popleft()
        if not self.waiting[queue]:
            del self.waiting[queue]
        self.give(queue[1], Receive(unit))

    def lose(self, queue: tuple[int, int]) -> None:
        """The next unit of a queue does not arrive."""
        self.waiting[queue].popleft()
        if not self.waiting[queue]:
            del self.waiting[queue]

    def may_lose(self, queue: tuple[int, int]) -> bool:
        """A loop-back that is safe loses nothing."""
        sender, receiver = queue
        if self.kind.echo is not Echo.SAFE:
            return True
        return sender != receiver and not (sender < 0 and self.waiting[queue][0].source == receiver)

    def fire(self, node: int, name: str) -> None:
        """A timer's time has come."""
        self.timers[node].discard(name)
        self.give(node, TimerFired(name))

    def disturbed(self, chance: Random, steps: int, *, loss: float = 0.15) -> Iterator[int]:
        """A schedule with losses and timers; gives the number of each step."""
        for step in range(steps):
            queues = sorted(self.waiting)
            running = [(node, name) for node, names in enumerate(self.timers) for name in sorted(names)]
            if queues and (not running or chance.random() < 0.85):
                queue = chance.choice(queues)
                if chance.random() < loss and self.may_lose(queue):
                    self.lose(queue)
                else:
                    self.receive(queue)
            elif running:
                self.fire(*chance.choice(running))
            if chance.random() < 0.1:
                self.give(chance.randrange(self.config.nodes), Drained())
            yield step

    def settle(self, rounds: int = 400) -> bool:
        """Nothing is lost any more, and timers fire only when nothing is under way; whether the group falls silent."""
        for _ in range(rounds):
            while self.waiting:
                self.receive(min(self.waiting))
            running = [(node, name) for node, names in enumerate(self.timers) for name in sorted(names)]
            if not running:
                return True
            for node, name in running:
                if name in self.timers[node]:
                    self.fire(node, name)
        return False
