"""ST on the table: one machine with honest peers around it, or a whole group on one channel.

A test hands a machine units, timers and submissions one by one, and looks at what it does and what it knows. In a
group every unit is put into the queue of every node, the sender's too, at the moment it is sent: all hear one order.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Drained,
    Input,
    Level,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    Stopped,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import mask_of
from ordercast.model.reset_units import ResetDone, ResetNeed, ResetReply
from ordercast.model.units import Data, Packet, Ready, Status, Unit
from ordercast.protocols.st import St

E1, E2, E3, E4 = range(4)

U = TypeVar("U", Data, Ready, ResetReply, ResetNeed, ResetDone)

_machine: ContextVar[type[St]] = ContextVar("machine", default=St)


@contextmanager
def played_by(machine: type[St]) -> Iterator[None]:
    """Within, every `Node` runs this machine: a broken one, to see who notices."""
    token = _machine.set(machine)
    try:
        yield
    finally:
        _machine.reset(token)


def name_of_packet(packet: Packet) -> str:
    return packet.payload.decode()


class Outputs(list[Output]):
    """What followed from one input, or from several."""

    @property
    def units(self) -> list[Unit]:
        """All that was transmitted."""
        return [output.unit for output in self if isinstance(output, Send)]

    def of(self, kind: type[U]) -> list[U]:
        """Units of a kind that were transmitted."""
        return [unit for unit in self.units if isinstance(unit, kind)]

    @property
    def copies(self) -> list[str]:
        """What was transmitted again."""
        return [
            name_of_packet(output.unit.packet)
            for output in self
            if isinstance(output, Send) and output.again and isinstance(output.unit, Data)
        ]

    def reached(self, level: Level) -> list[str]:
        """What rose to a level."""
        found = [output.packet for output in self if isinstance(output, Reached) and output.level is level]
        return list(map(name_of_packet, found))

    @property
    def accepted(self) -> list[str]:
        return self.reached(Level.ACCEPTED)

    @property
    def preacknowledged(self) -> list[str]:
        return self.reached(Level.PREACKNOWLEDGED)

    @property
    def acknowledged(self) -> list[str]:
        return self.reached(Level.ACKNOWLEDGED)

    @property
    def delivered(self) -> list[str]:
        return [name_of_packet(output.packet) for output in self if isinstance(output, Deliver)]

    @property
    def discards(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Discard)]

    @property
    def stops(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Stopped)]

    @property
    def timers(self) -> list[str]:
        return [output.name for output in self if isinstance(output, SetTimer)]

    @property
    def aborts(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Abort)]


class Node:
    """A machine, and a host that keeps its timers."""

    def __init__(self, me: int, nodes: int = 3, **config: Any) -> None:
        self.machine = _machine.get()(me, GroupConfig(nodes=nodes, **config))
        self.running: dict[str, int] = {}
        self.did = Outputs()
        """Everything since the beginning."""

    def handle(self, event: Input) -> Outputs:
        outputs = Outputs(self.machine.handle(event))
        for output in outputs:
            if isinstance(output, SetTimer):
                self.running[output.name] = output.after
            elif isinstance(output, CancelTimer):
                self.running.pop(output.name, None)
        self.did += outputs
        return outputs

    def submits(self, name: str, *to: int) -> Outputs:
        return self.handle(Submit(mask_of(to), (len(name),), name.encode()))

    def hears(self, *units: Unit) -> Outputs:
        return Outputs(output for unit in units for output in self.handle(Receive(unit)))

    def fires(self, name: str) -> Outputs:
        assert name in self.running, f"the timer {name!r} is not set, only {sorted(self.running)}"
        del self.running[name]
        return self.handle(TimerFired(name))

    def drained(self) -> Outputs:
        return self.handle(Drained())


class Peer:
    """Another node, as far as it is heard: it numbers as the protocol does, and says what the test makes it say."""

    def __init__(self, me: int, nodes: int = 3) -> None:
        self.me, self.nodes = me, nodes
        self.next_seq, self.next_seq_to, self.stamp, self.epoch = 0, [0] * nodes, 0, 0
        self.expects, self.preacknowledged_below, self.free = [0] * nodes, [0] * nodes, 256 * nodes

    def expecting(self, *below: int) -> "Peer":
        """From now on it says to have accepted all below these numbers."""
        self.expects = list(below)
        return self

    def preacknowledging(self, *below: int) -> "Peer":
        """From now on it says to have accepted and pre-acknowledged all below these numbers."""
        self.expects, self.preacknowledged_below = list(below), list(below)
        return self

    def sends(self, name: str, *to: int) -> Data:
        packet = Packet(
            self.me, mask_of(to), self.next_seq, tuple(self.next_seq_to), self.next_seq, (len(name),), name.encode()
        )
        self.next_seq += 1
        for node in to:
            self.next_seq_to[node] += 1
        return Data(packet, self.status())

    def ready(self, *, wants: bool = False) -> Ready:
        return Ready(
            self.me, self.next_seq, tuple(self.next_seq_to), self.status(), (1 << self.nodes) - 1 if wants else 0
        )

    def reply(self, *log: Data, sent: Sequence[Data] = (), preacknowledged: int = 0) -> ResetReply:
        packets = [unit.packet for unit in log]
        return ResetReply(
            self.me,
            self.epoch,
            self.next_seq,
            tuple(self.next_seq_to),
            tuple((unit.packet.seq, unit.packet.destinations) for unit in sent),
            tuple((packet.source, packet.seq, packet.destinations) for packet in packets),
            preacknowledged,
        )

    def need(self, *missing: Data, has: int = 0, done: int = 0, patience: int = 1) -> ResetNeed:
        ids = tuple((unit.packet.source, unit.packet.seq) for unit in missing)
        return ResetNeed(self.me, self.epoch, has, ids, done, patience)

    def done(self) -> ResetDone:
        return ResetDone(self.me, self.epoch)

    def status(self) -> Status:
        self.stamp += 1
        return Status(
            self.stamp, tuple(self.expects), tuple(self.preacknowledged_below), free=self.free, epoch=self.epoch
        )


class Group:
    """Machines on one channel."""

    def __init__(self, nodes: int = 3, **config: Any) -> None:
        self.nodes = [Node(me, nodes, **config) for me in range(nodes)]
        self.queues: list[deque[Unit]] = [deque() for _ in range(nodes)]

    def submit(self, node: int, name: str, *to: int) -> Outputs:
        return self.put(self.nodes[node].submits(name, *to))

    def put(self, outputs: Outputs) -> Outputs:
        """Everything that was sent is on its way to everybody."""
        for unit in outputs.units:
            for queue in self.queues:
                queue.append(unit)
        return outputs

    def hear(self, node: int, count: int = 1) -> Outputs:
        """The node hears the next units of its queue."""
        found = Outputs()
        for _ in range(count):
            found += self.put(self.nodes[node].hears(self.queues[node].popleft()))
        return found

    def hear_all(self, *nodes: int) -> None:
        """These nodes hear all that is under way to them now, everybody if none is named."""
        for node in nodes or range(len(self.nodes)):
            self.hear(node, len(self.queues[node]))

    def exhaust(self, most: int = 500) -> None:
        """Everybody hears everything, and what is sent in answer, until nothing is under way."""
        for _ in range(most):
            if not any(self.queues):
                return
            self.hear_all()
        raise AssertionError("everything that is heard is answered, for ever")

    def lose(self, node: int, count: int = 1) -> list[Unit]:
        """The node misses the next units of its queue."""
        return [self.queues[node].popleft() for _ in range(count)]

    def fire(self, node: int, timer: str) -> Outputs:
        return self.put(self.nodes[node].fires(timer))

    def settle(self, rounds: int = 60) -> None:
        """From here on nothing is lost, and all timers fire in turn until none is left."""
        for _ in range(rounds):
            self.exhaust()
            timers = [(node, timer) for node, here in enumerate(self.nodes) for timer in tuple(here.running)]
            if not timers:
                return
            for node, timer in timers:
                if timer in self.nodes[node].running:
                    self.fire(node, timer)
        raise AssertionError(f"not silent: {[node.machine.waits_for() for node in self.nodes]}")

    def delivered(self) -> list[str]:
        """What each node delivered, in its order."""
        return [" ".join(node.did.delivered) for node in self.nodes]
