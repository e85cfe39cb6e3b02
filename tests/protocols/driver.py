"""Machines on the table, whatever their protocol: what went in, what came out, and which timers run.

A test hands a machine units, timers and submissions one by one, and looks at what it does and what it knows. A unit
that is made and not handed over is lost.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, TypeVar

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
    TimerFired,
)
from ordercast.model.units import DataUnit, Packet, Unit

E1, E2, E3, E4, E5 = range(5)

U = TypeVar("U", bound=Unit)

_instead: ContextVar[dict[Any, Any]] = ContextVar("instead", default={})  # noqa: B039 - it is never changed


@contextmanager
def played_by(machine: type, instead_of: type) -> Iterator[None]:
    """Within, every node that would run one machine runs another."""
    token = _instead.set({**_instead.get(), instead_of: machine})
    try:
        yield
    finally:
        _instead.reset(token)


def player_of(machine: type) -> Any:
    """The machine that plays another."""
    return _instead.get().get(machine, machine)


def name_of_packet(packet: Packet) -> str:
    return packet.payload.decode()


class Outputs(list[Output]):
    """What followed from one input, or from several."""

    @property
    def sends(self) -> list[Send]:
        return [output for output in self if isinstance(output, Send)]

    @property
    def units(self) -> list[Unit]:
        """All that was transmitted."""
        return [send.unit for send in self.sends]

    def of(self, kind: type[U]) -> list[U]:
        """Units of a kind that were transmitted."""
        return [unit for unit in self.units if isinstance(unit, kind)]

    @property
    def numbered(self) -> list[Packet]:
        return [output.packet for output in self if isinstance(output, Numbered)]

    def risen_to(self, level: Level) -> list[Packet]:
        """What rose to a level."""
        return [output.packet for output in self if isinstance(output, Reached) and output.level is level]

    @property
    def handed_over(self) -> list[Packet]:
        """What the application was given."""
        return [output.packet for output in self if isinstance(output, Deliver)]

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
    def durations(self) -> dict[str, int]:
        """The timers that were set, and how long each takes."""
        return {output.name: output.after for output in self if isinstance(output, SetTimer)}

    @property
    def aborts(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Abort)]


class NamedOutputs(Outputs):
    """The same where packets are called by what they carry."""

    def reached(self, level: Level) -> list[str]:
        return list(map(name_of_packet, self.risen_to(level)))

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
        return list(map(name_of_packet, self.handed_over))

    @property
    def again(self) -> list[DataUnit]:
        """Data that were transmitted again."""
        return [send.unit for send in self.sends if send.again and isinstance(send.unit, DataUnit)]

    @property
    def timers(self) -> list[str]:
        return [output.name for output in self if isinstance(output, SetTimer)]


O = TypeVar("O", bound=Outputs)  # noqa: E741 - outputs


class Seat(Generic[O]):
    """A machine, and a host that keeps its timers."""

    outputs: ClassVar[type[Any]]
    """The kind of outputs that it gives."""

    def __init__(self, machine: Any) -> None:
        self.machine = machine
        self.running: dict[str, int] = {}
        self.did: O = self.outputs()
        """Everything since the beginning."""

    def handle(self, event: Input) -> O:
        outputs: O = self.outputs(self.machine.handle(event))
        for output in outputs:
            if isinstance(output, SetTimer):
                self.running[output.name] = output.after
            elif isinstance(output, CancelTimer):
                self.running.pop(output.name, None)
        self.did.extend(outputs)
        return outputs

    def hears(self, *units: Unit) -> O:
        found: O = self.outputs()
        for unit in units:
            found.extend(self.handle(Receive(unit)))
        return found

    def fires(self, name: str) -> O:
        assert name in self.running, f"the timer {name!r} is not set, only {sorted(self.running)}"
        del self.running[name]
        return self.handle(TimerFired(name))

    def drained(self) -> O:
        return self.handle(Drained())


S = TypeVar("S", bound=Seat[Any])


class OneChannel(Generic[S, O]):
    """Machines on one channel: every unit is put into the queue of every node, the sender's too, when it is sent."""

    def __init__(self, nodes: list[S]) -> None:
        self.nodes = nodes
        self.queues: list[deque[Unit]] = [deque() for _ in nodes]
        self.channel: list[Unit] = []
        """All that was ever sent, in its order."""

    def put(self, outputs: O) -> O:
        """Everything that was sent is on its way to everybody."""
        for unit in outputs.units:
            self.channel.append(unit)
            for queue in self.queues:
                queue.append(unit)
        return outputs

    def hear(self, node: int, count: int = 1) -> O:
        """The node hears the next units of its queue."""
        found: O = self.nodes[node].outputs()
        for _ in range(count):
            found.extend(self.put(self.nodes[node].hears(self.queues[node].popleft())))
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

    def fire(self, timer: str, *nodes: int) -> O:
        """A timer fires at these nodes, one after the other, at all that run it if none is named."""
        found: O = self.nodes[0].outputs()
        for node in nodes or [node for node, here in enumerate(self.nodes) if timer in here.running]:
            found.extend(self.put(self.nodes[node].fires(timer)))
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
