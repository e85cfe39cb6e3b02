"""One SPO machine on the table, and honest peers around it.

A test hands the machine units, timers and submissions one by one, and looks at what it does and what it knows.
A unit that is made and not handed over is lost.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    Deliver,
    Discard,
    Drained,
    Input,
    Level,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import mask_of
from ordercast.model.units import Data, Packet, Ready, Status, Unit
from ordercast.protocols.spo import Spo

E1, E2, E3, E4 = range(4)

_machine: ContextVar[type[Spo]] = ContextVar("machine", default=Spo)


@contextmanager
def played_by(machine: type[Spo]) -> Iterator[None]:
    """Within, every `Node` runs this machine: a broken one, to see who notices."""
    token = _machine.set(machine)
    try:
        yield
    finally:
        _machine.reset(token)


class Outputs(list[Output]):
    """What followed from an input."""

    @property
    def units(self) -> list[Unit]:
        """All that was transmitted."""
        return [output.unit for output in self if isinstance(output, Send)]

    @property
    def data(self) -> list[Data]:
        """First transmissions."""
        return [
            output.unit
            for output in self
            if isinstance(output, Send) and isinstance(output.unit, Data) and not output.again
        ]

    @property
    def copies(self) -> list[Data]:
        """Retransmissions."""
        return [
            output.unit
            for output in self
            if isinstance(output, Send) and isinstance(output.unit, Data) and output.again
        ]

    @property
    def statuses(self) -> list[Ready]:
        """All status units, with or without a wish."""
        return [unit for unit in self.units if isinstance(unit, Ready)]

    @property
    def requests(self) -> list[Any]:
        """What the status units ask to be sent again."""
        return [unit.missing for unit in self.statuses if unit.missing]

    @property
    def polls(self) -> list[int]:
        """Whom the status units want to hear of."""
        return [unit.wants for unit in self.statuses if unit.wants]

    @property
    def numbered(self) -> list[Packet]:
        return [output.packet for output in self if isinstance(output, Numbered)]

    def _reached(self, level: Level) -> list[Packet]:
        return [output.packet for output in self if isinstance(output, Reached) and output.level is level]

    @property
    def accepted(self) -> list[Packet]:
        return self._reached(Level.ACCEPTED)

    @property
    def preacknowledged(self) -> list[Packet]:
        return self._reached(Level.PREACKNOWLEDGED)

    @property
    def acknowledged(self) -> list[Packet]:
        return self._reached(Level.ACKNOWLEDGED)

    @property
    def delivered(self) -> list[Packet]:
        return [output.packet for output in self if isinstance(output, Deliver)]

    @property
    def discards(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Discard)]

    @property
    def timers(self) -> dict[str, int]:
        return {output.name: output.after for output in self if isinstance(output, SetTimer)}

    @property
    def aborts(self) -> list[str]:
        return [output.why for output in self if isinstance(output, Abort)]


class Node:
    """The machine under test, and a host that keeps its timers."""

    def __init__(self, me: int, nodes: int = 3, **config: Any) -> None:
        self.machine = _machine.get()(me, GroupConfig(nodes=nodes, **config))
        self.running: set[str] = set()

    def handle(self, event: Input) -> Outputs:
        outputs = Outputs(self.machine.handle(event))
        self.running |= set(outputs.timers)
        return outputs

    def submits(self, *to: int, lengths: Sequence[int] = (1,)) -> Outputs:
        return self.handle(Submit(mask_of(to), tuple(lengths), bytes(sum(lengths))))

    def hears(self, *units: Unit) -> Outputs:
        outputs = Outputs()
        for unit in units:
            outputs += self.handle(Receive(unit))
        return outputs

    def fires(self, name: str) -> Outputs:
        assert name in self.running, f"the timer {name!r} was never set"
        self.running.remove(name)
        return self.handle(TimerFired(name))

    def owes(self) -> bool:
        """Whether it knows something that it has not said."""
        return self.machine.owes

    def drained(self) -> Outputs:
        return self.handle(Drained())


class Peer:
    """Another node, as far as it is heard: it numbers as the protocol does, and says what the test makes it say."""

    def __init__(self, me: int, nodes: int = 3, first_seq: tuple[int, ...] = ()) -> None:
        first = first_seq or (0,) * nodes
        self.me = me
        self.next_seq, self.next_seq_to, self.messages = first[me], [first[me]] * nodes, 0
        self.expects, self.preacknowledged_below = list(first), list(first)
        self.stamp, self.free = 0, 256

    def accepts(self, source: int, below: int) -> "Peer":
        """From now on it says to have accepted all of a source below a seq."""
        self.expects[source] = below
        return self

    def preacknowledges(self, source: int, below: int) -> "Peer":
        """From now on it says to have accepted and pre-acknowledged all of a source below a seq."""
        self.expects[source] = max(self.expects[source], below)
        self.preacknowledged_below[source] = below
        return self

    def has_free(self, places: int) -> "Peer":
        self.free = places
        return self

    def sends(self, *to: int, lengths: Sequence[int] = (1,)) -> Data:
        """Its next packet."""
        packet = Packet(
            self.me,
            mask_of(to),
            self.next_seq,
            tuple(self.next_seq_to),
            self.messages,
            tuple(lengths),
            bytes(sum(lengths)),
        )
        self.next_seq += 1
        self.messages += len(lengths)
        self.expects[self.me] = self.next_seq
        for node in to:
            self.next_seq_to[node] += 1
        return Data(packet, self._status())

    def repeats(self, unit: Data) -> Data:
        """A copy: the same packet, a fresh status."""
        return Data(unit.packet, self._status())

    def ready(self, wants: Iterable[int] = (), missing: Any = ()) -> Ready:
        """A status without data."""
        return Ready(self.me, self.next_seq, tuple(self.next_seq_to), self._status(), mask_of(wants), missing)

    def _status(self) -> Status:
        self.stamp += 1
        return Status(self.stamp, tuple(self.expects), tuple(self.preacknowledged_below), self.free)
