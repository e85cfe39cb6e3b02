"""TO and PriTO on the table: one machine with honest peers around it, or a whole group on one channel.

A test hands a machine units, timers and submissions one by one, and looks at what it does and what it knows. In a
group every unit is put into the queue of every node, the sender's too, at the moment it is sent: all hear one order.
A packet is called by a letter; "h5" is h of priority 5.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Drained,
    Input,
    Level,
    Numbered,
    Output,
    Reached,
    Receive,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import everybody, mask_of
from ordercast.model.priority_units import (
    CarryingVector,
    EpochVector,
    Heading,
    OrderedData,
    OrderedReady,
    RunMarker,
    Standing,
)
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.prito import Prito
from ordercast.protocols.to import To

E1, E2, E3, E4 = range(4)

U = TypeVar("U", bound=Unit)


class Machines(NamedTuple):
    """What plays the nodes of a test."""

    to: type[To] = To
    prito: type[Prito] = Prito


_machines: ContextVar[Machines] = ContextVar("machines")


@contextmanager
def played_by(machines: Machines) -> Iterator[None]:
    """Within, every `Node` runs one of these machines: broken ones, to see who notices."""
    token = _machines.set(machines)
    try:
        yield
    finally:
        _machines.reset(token)


def name_of_packet(packet: Packet) -> str:
    return packet.payload.decode()


def body(word: str) -> tuple[bytes, int]:
    """ "h5" is h of priority 5."""
    name = word.rstrip("0123456789")
    return name.encode(), int(word[len(name) :] or 0)


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
    def data(self) -> list[str]:
        """The packets that were transmitted in sequence, again or not."""
        return [name_of_packet(unit.packet) for unit in self.of(OrderedData)]

    @property
    def copies(self) -> list[str]:
        """The packets that were transmitted again."""
        sends = [output for output in self if isinstance(output, Send) and output.again]
        return [name_of_packet(output.unit.packet) for output in sends if isinstance(output.unit, DataUnit)]

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
    def numbered(self) -> list[Packet]:
        return [output.packet for output in self if isinstance(output, Numbered)]

    @property
    def discards(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Discard)]

    @property
    def stops(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Stopped)]

    @property
    def resumes(self) -> list[Resumed]:
        return [output for output in self if isinstance(output, Resumed)]

    @property
    def timers(self) -> list[str]:
        return [output.name for output in self if isinstance(output, SetTimer)]

    @property
    def aborts(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Abort)]


class Node:
    """A machine, and a host that keeps its timers."""

    def __init__(self, me: int, nodes: int = 3, *, priorities: bool = False, **config: Any) -> None:
        machines = _machines.get(Machines())
        kind = machines.prito if priorities else machines.to
        self.machine: Any = kind(me, GroupConfig(nodes=nodes, **config))
        self.nodes = nodes
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

    def submits(self, *words: str) -> Outputs:
        found = Outputs()
        for word in words:
            payload, priority = body(word)
            found += self.handle(Submit(everybody(self.nodes), (len(payload),), payload, priority))
        return found

    def hears(self, *units: Unit) -> Outputs:
        return Outputs(output for unit in units for output in self.handle(Receive(unit)))

    def hears_itself(self, outputs: Outputs) -> Outputs:
        """The channel brings back what it sent."""
        return self.hears(*outputs.units)

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
        self.next_seq = self.next_packet = self.epoch = self.delivered = 0
        self.expects = [0] * nodes

    def expecting(self, *below: int) -> "Peer":
        """From now on it says to have accepted all below these numbers."""
        self.expects = list(below)
        return self

    def heading(self, *, in_sequence: bool = True, wants: tuple[int, ...] = ()) -> Heading:
        seq = self.next_seq
        self.next_seq += in_sequence
        return Heading(self.me, self.epoch, seq, tuple(self.expects), self.delivered, mask_of(wants))

    def packet(self, word: str) -> Packet:
        payload, priority = body(word)
        number = self.next_packet
        self.next_packet += 1
        return Packet(self.me, everybody(self.nodes), number, (), number, (len(payload),), payload, priority)

    def sends(self, word: str) -> OrderedData:
        return OrderedData(self.packet(word), self.heading())

    def ready(self) -> OrderedReady:
        return OrderedReady(self.heading())

    def marker(self, through: int) -> RunMarker:
        return RunMarker(self.heading(), through)

    def standing(self, *wants: int) -> Standing:
        return Standing(self.heading(in_sequence=False, wants=wants))

    def vector(self, *expects: int, installed: bool = False, wants: tuple[int, ...] = ()) -> EpochVector:
        return EpochVector(self.me, self.epoch + 1, expects, installed, mask_of(wants))

    def carries(self, unit: OrderedData, *expects: int, installed: bool = False) -> CarryingVector:
        return CarryingVector(unit.packet, self.vector(*expects, installed=installed), unit.heading.seq)

    def goes_on(self, next_seq: int) -> None:
        """It begins the next epoch, with this number."""
        self.epoch += 1
        self.next_seq = next_seq


class Group:
    """Machines on one channel."""

    def __init__(self, nodes: int = 3, **config: Any) -> None:
        self.nodes = [Node(me, nodes, **config) for me in range(nodes)]
        self.queues: list[deque[Unit]] = [deque() for _ in range(nodes)]
        self.channel: list[Unit] = []
        """All that was ever sent, in its order."""

    def submit(self, node: int, *words: str) -> Outputs:
        return self.put(self.nodes[node].submits(*words))

    def put(self, outputs: Outputs) -> Outputs:
        """Everything that was sent is on its way to everybody."""
        for unit in outputs.units:
            self.channel.append(unit)
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

    def fire(self, timer: str, *nodes: int) -> Outputs:
        """A timer fires at these nodes, one after the other, at all that run it if none is named."""
        found = Outputs()
        for node in nodes or [node for node, here in enumerate(self.nodes) if timer in here.running]:
            found += self.put(self.nodes[node].fires(timer))
        return found

    def settle(self, rounds: int = 60) -> None:
        """From here on nothing is lost, and all timers fire in turn until none is left."""
        for _ in range(rounds):
            self.exhaust()
            timers = [(node, timer) for node, here in enumerate(self.nodes) for timer in tuple(here.running)]
            if not timers:
                return
            for node, timer in timers:
                if timer in self.nodes[node].running:
                    self.fire(timer, node)
        raise AssertionError(f"not silent: {[node.machine.waits_for() for node in self.nodes]}")

    def delivered(self) -> list[str]:
        """What each node delivered, in its order."""
        return [" ".join(node.did.delivered) for node in self.nodes]
