"""TO and PriTO on the table: one machine with honest peers around it, or a whole group on one channel.

A packet is called by a letter; "h5" is h of priority 5.
"""

from typing import Any

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Submit
from ordercast.model.nodes import everybody, mask_of
from ordercast.model.units import Packet
from ordercast.protocols.prito.machine import Prito
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.to.machine import To
from ordercast.protocols.to.units import (
    CarryingVector,
    EpochVector,
    Heading,
    OrderedData,
    OrderedReady,
    UnorderedReady,
)
from tests.protocols.driver import E1, E2, E3, E4, NamedOutputs, OneChannel, Seat, name_of_packet, player_of

__all__ = ["E1", "E2", "E3", "E4", "Group", "Node", "Outputs", "Peer", "body", "name_of_packet"]


def body(word: str) -> tuple[bytes, int]:
    """ "h5" is h of priority 5."""
    name = word.rstrip("0123456789")
    return name.encode(), int(word[len(name) :] or 0)


class Outputs(NamedOutputs):
    """What followed from one input, or from several."""

    @property
    def data(self) -> list[str]:
        """The packets that were transmitted in sequence, again or not."""
        return [name_of_packet(unit.packet) for unit in self.of(OrderedData)]

    @property
    def copies(self) -> list[str]:
        """The packets that were transmitted again."""
        return [name_of_packet(unit.packet) for unit in self.again]


class Node(Seat[Outputs]):
    """A machine, and a host that keeps its timers."""

    outputs = Outputs
    machine: Any

    def __init__(self, me: int, nodes: int = 3, *, priorities: bool = False, **config: Any) -> None:
        super().__init__(player_of(Prito if priorities else To)(me, GroupConfig(nodes=nodes, **config)))
        self.nodes = nodes

    def submits(self, *words: str) -> Outputs:
        found = Outputs()
        for word in words:
            payload, priority = body(word)
            found += self.handle(Submit(everybody(self.nodes), (len(payload),), payload, priority))
        return found

    def hears_itself(self, outputs: Outputs) -> Outputs:
        """The channel brings back what it sent."""
        return self.hears(*outputs.units)


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

    def marker(self, covered_below: int) -> RunMarker:
        return RunMarker(self.heading(), covered_below)

    def standing(self, *wants: int) -> UnorderedReady:
        return UnorderedReady(self.heading(in_sequence=False, wants=wants))

    def vector(self, *expects: int, installed: bool = False, wants: tuple[int, ...] = ()) -> EpochVector:
        return EpochVector(self.me, self.epoch + 1, expects, installed, mask_of(wants))

    def carries(self, unit: OrderedData, *expects: int, installed: bool = False) -> CarryingVector:
        return CarryingVector(unit.packet, self.vector(*expects, installed=installed), unit.heading.seq)

    def goes_on(self, next_seq: int) -> None:
        """It begins the next epoch, with this number."""
        self.epoch += 1
        self.next_seq = next_seq


class Group(OneChannel[Node, Outputs]):
    """Machines on one channel."""

    def __init__(self, nodes: int = 3, **config: Any) -> None:
        super().__init__([Node(me, nodes, **config) for me in range(nodes)])

    def submit(self, node: int, *words: str) -> Outputs:
        return self.put(self.nodes[node].submits(*words))
