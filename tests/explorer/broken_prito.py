"""TO and PriTO with one rule taken back at a time: what an explorer must find, or it finds nothing."""

from collections.abc import Sequence
from heapq import heapify, heappush
from typing import ClassVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output, Send
from ordercast.model.units import Packet
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.to.delivery import ChannelOrder, Deliveries, DeliveryPolicy
from ordercast.protocols.to.machine import To, TotalOrderBroadcast
from ordercast.protocols.to.reception import Reception
from ordercast.protocols.to.recovery import Mode, Recovery
from ordercast.protocols.to.units import EpochVector, Heading, OrderedData, Sequenced, UnorderedReady, Vector, vector_of


class Assembled(TotalOrderBroadcast):
    """A machine with other parts."""

    policies: ClassVar[type[DeliveryPolicy]] = ChannelOrder
    receptions: ClassVar[type[Reception]] = Reception
    recoveries: ClassVar[type[Recovery]] = Recovery

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config, self.policies)
        self.reception = self.receptions(me, config, self.transmission, self.policy, self.backoff)
        self.recovery = self.recoveries(me, config, self.transmission, self.reception, self.backoff)


class HearsItselfAtOnce(To):
    """Accepts its own data when it sends them: they have no place on the channel yet (F3)."""

    def transmit(self, packet: Packet, out: list[Output], *, again: bool) -> None:
        super().transmit(packet, out, again=again)
        sent = out[-1]
        assert isinstance(sent, Send)
        assert isinstance(sent.unit, OrderedData)
        self.reception.receive(sent.unit, sent.unit.heading, out)


class _HighestVectors(Recovery):
    def collect(self, unit: Vector, vector: EpochVector) -> bool:
        del unit
        expects = tuple(map(max, vector.expects, vector_of(self.own_vector(0)).expects))
        higher = EpochVector(vector.source, vector.epoch, expects, vector.installed, vector.wants)
        return super().collect(higher, higher)


class KeepsWhatSomebodyHas(Assembled):
    """Cuts at the highest vector instead of the lowest."""

    recoveries = _HighestVectors


class ChangesItsVector(To):
    """Goes on accepting after it has said what it has, and then says that."""

    def receive_normal(self, unit: Sequenced | UnorderedReady, out: list[Output]) -> None:
        recovery, reception = self.recovery, self.reception
        if recovery.mode is Mode.COLLECTING and unit.heading.epoch == recovery.epoch:
            reception.receive(unit, unit.heading, out)
            installed = recovery.installed
            recovery.fix_vector(reception.expected, self.transmission.discarded_before())
            recovery.installed = installed
        else:
            super().receive_normal(unit, out)


class _AllInstalled(Recovery):
    def note_installed(self, nodes: int) -> bool:
        return super().note_installed(nodes | self.everybody)


class SendsAtOnce(Assembled):
    """Sends in a new epoch as soon as it knows what is kept, whoever else does not (F7)."""

    recoveries = _AllInstalled


class TakesAnyStatusForAnAcknowledgment(Assembled):
    """Acknowledges what all say to have accepted, in sequence or not, at a place that differs between nodes."""

    policies = PriorityOrder

    def settle(self, out: list[Output]) -> None:
        log = self.reception.preacknowledged
        log.refill(tuple(log.entries), self.reception.accepted.acknowledged_below)
        self.policy.acknowledge(log.take_acknowledged(), out)
        super().settle(out)


class _SortedElsewhere(PriorityOrder):
    def enter(self, packet: Packet, position: int) -> None:
        """It is there already."""


class _SortsInWhenAccepted(Reception):
    def accept(self, unit: Sequenced, source: int, seq: int, out: list[Output]) -> None:
        super().accept(unit, source, seq, out)
        if isinstance(unit, OrderedData):
            ahead = sum(isinstance(other, OrderedData) for _, _, other in self.accepted.entries) - 1
            entry = (-unit.packet.priority, self.preacknowledged_count + ahead, unit.packet)
            heappush(self._by_priority().by_priority, entry)

    def roll_back(self, cut: list[int], out: list[Output]) -> None:
        """What is thrown away is taken out of the list again, and what is kept moves up."""
        known, policy = self.preacknowledged_count, self._by_priority()
        heard = [entry for entry in self.accepted.entries if isinstance(entry[2], OrderedData)]
        kept = [unit.packet for source, seq, unit in heard if seq < cut[source] and isinstance(unit, OrderedData)]
        policy.by_priority = [
            *[entry for entry in policy.by_priority if entry[1] < known],
            *[(-packet.priority, place, packet) for place, packet in enumerate(kept, start=known)],
        ]
        heapify(policy.by_priority)
        super().roll_back(cut, out)

    def _by_priority(self) -> PriorityOrder:
        assert isinstance(self.policy, PriorityOrder)
        return self.policy


class SortsInWhenAccepted(Assembled):
    """Sorts packets in when they are accepted, as printed (F2): what only some have accepted overtakes only there."""

    policies, receptions = _SortedElsewhere, _SortsInWhenAccepted


class _AllEqual(PriorityOrder):
    def enter(self, packet: Packet, position: int) -> None:
        heappush(self.by_priority, (0, position, packet))


class IgnoresPriorities(Assembled):
    """Delivers in the order of the channel: one order, all levels true, and nothing urgent goes first."""

    policies = _AllEqual


class _LeastUrgentFirst(PriorityOrder):
    def enter(self, packet: Packet, position: int) -> None:
        heappush(self.by_priority, (packet.priority, position, packet))


class LeastUrgentFirst(Assembled):
    """Lower priorities first."""

    policies = _LeastUrgentFirst


class _LastOfEqualsFirst(PriorityOrder):
    def enter(self, packet: Packet, position: int) -> None:
        heappush(self.by_priority, (-packet.priority * 100 - packet.seq, position, packet))


class LastOfEqualsFirst(Assembled):
    """Puts a packet before those of its own priority too: in one order everywhere, but not in the order sent."""

    policies = _LastOfEqualsFirst


class _PutsOff(PriorityOrder):
    """Looks at the first packet only where it is told to."""

    put_off: list[Packet]
    putting_off: bool

    def __init__(self, config: GroupConfig, deliveries: Deliveries) -> None:
        super().__init__(config, deliveries)
        self.put_off, self.putting_off = [], False

    def acknowledge(self, packets: Sequence[Packet], out: list[Output]) -> None:
        if self.putting_off:
            self.put_off += packets
        else:
            super().acknowledge(packets, out)


class _LooksAfterTheLoop(Reception):
    def receive(self, unit: Sequenced | UnorderedReady, heading: Heading, out: list[Output]) -> str:
        policy = self.policy
        assert isinstance(policy, _PutsOff)
        policy.putting_off = True
        wrong = super().receive(unit, heading, out)
        packets, policy.put_off, policy.putting_off = policy.put_off, [], False
        policy.acknowledge(packets, out)
        return wrong


class DeliversAfterTheLoop(Assembled):
    """Looks at the first only when all is pre-acknowledged that one receipt makes so (F4)."""

    policies, receptions = _PutsOff, _LooksAfterTheLoop


class EndsRunsAtOnce(Assembled):
    """Ends a run when its timer fires, rather than at the place of its marker (F6)."""

    policies = PriorityOrder

    def fire(self, name: str, out: list[Output]) -> None:
        super().fire(name, out)
        if name == "run" and self.recovery.mode is Mode.NORMAL:
            assert isinstance(self.policy, PriorityOrder)
            self.policy.end_run(self.policy.acknowledged_count, out)
