"""ST on the table: one machine with honest peers around it, or a whole group on one channel."""

from collections.abc import Sequence
from typing import Any

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Submit
from ordercast.model.nodes import mask_of
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Ready, Status
from ordercast.protocols.st.machine import St
from ordercast.protocols.st.units import ResetDone, ResetNeed, ResetReply
from tests.protocols.driver import E1, E2, E3, E4, NamedOutputs, OneChannel, Seat, name_of_packet, player_of

__all__ = ["E1", "E2", "E3", "E4", "Group", "Node", "Outputs", "Peer", "name_of_packet"]


class Outputs(NamedOutputs):
    """What followed from one input, or from several."""

    @property
    def copies(self) -> list[str]:
        """What was transmitted again."""
        return [name_of_packet(unit.packet) for unit in self.again if isinstance(unit, Data)]


class Node(Seat[Outputs]):
    """A machine, and a host that keeps its timers."""

    outputs = Outputs
    machine: St

    def __init__(self, me: int, nodes: int = 3, **config: Any) -> None:
        super().__init__(player_of(St)(me, GroupConfig(nodes=nodes, **config)))

    def submits(self, name: str, *to: int) -> Outputs:
        return self.handle(Submit(mask_of(to), (len(name),), name.encode()))


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

    def need(self, *missing: Data, has: int = 0, done: int = 0, backoff: int = 1) -> ResetNeed:
        ids = tuple((unit.packet.source, unit.packet.seq) for unit in missing)
        return ResetNeed(self.me, self.epoch, has, ids, done, backoff)

    def done(self) -> ResetDone:
        return ResetDone(self.me, self.epoch)

    def status(self) -> Status:
        self.stamp += 1
        return Status(
            self.stamp, tuple(self.expects), tuple(self.preacknowledged_below), free=self.free, epoch=self.epoch
        )


class Group(OneChannel[Node, Outputs]):
    """Machines on one channel."""

    def __init__(self, nodes: int = 3, **config: Any) -> None:
        super().__init__([Node(me, nodes, **config) for me in range(nodes)])

    def submit(self, node: int, name: str, *to: int) -> Outputs:
        return self.put(self.nodes[node].submits(name, *to))
