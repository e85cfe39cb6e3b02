"""One SPO machine on the table, and honest peers around it."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Level, Submit
from ordercast.model.nodes import mask_of
from ordercast.model.units import Packet
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.units import Data, Ready, Status
from tests.protocols import driver
from tests.protocols.driver import E1, E2, E3, E4, Seat, player_of

__all__ = ["E1", "E2", "E3", "E4", "AnyNode", "Node", "Outputs", "Peer"]


class Outputs(driver.Outputs):
    """What followed from an input."""

    @property
    def data(self) -> list[Data]:
        """First transmissions."""
        return [send.unit for send in self.sends if isinstance(send.unit, Data) and not send.again]

    @property
    def copies(self) -> list[Data]:
        """Retransmissions."""
        return [send.unit for send in self.sends if isinstance(send.unit, Data) and send.again]

    @property
    def statuses(self) -> list[Ready]:
        """All status units, with or without a wish."""
        return self.of(Ready)

    @property
    def requests(self) -> list[Any]:
        """What the status units ask to be sent again."""
        return [unit.missing for unit in self.statuses if unit.missing]

    @property
    def polls(self) -> list[int]:
        """Whom the status units want to hear of."""
        return [unit.wants for unit in self.statuses if unit.wants]

    @property
    def accepted(self) -> list[Packet]:
        return self.risen_to(Level.ACCEPTED)

    @property
    def preacknowledged(self) -> list[Packet]:
        return self.risen_to(Level.PREACKNOWLEDGED)

    @property
    def acknowledged(self) -> list[Packet]:
        return self.risen_to(Level.ACKNOWLEDGED)

    @property
    def delivered(self) -> list[Packet]:
        return self.handed_over

    @property
    def timers(self) -> dict[str, int]:
        return self.durations


class AnyNode(Seat[Outputs]):
    """A machine under test that sends SPO's units, and a host that keeps its timers."""

    outputs = Outputs
    kind: ClassVar[type]

    def __init__(self, me: int, nodes: int = 3, **config: Any) -> None:
        super().__init__(player_of(self.kind)(me, GroupConfig(nodes=nodes, **config)))

    def submits(self, *to: int, lengths: Sequence[int] = (1,)) -> Outputs:
        return self.handle(Submit(mask_of(to), tuple(lengths), bytes(sum(lengths))))


class Node(AnyNode):
    """SPO under test."""

    kind = Spo
    machine: Spo

    def status_due(self) -> bool:
        """Whether it knows something that it has not transmitted."""
        return self.machine.status_due


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
