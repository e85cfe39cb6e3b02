"""TO and PriTO with one rule taken back at a time: what an explorer must find, or it finds nothing."""

from heapq import heapify, heappush

from ordercast.model.machine import Output, Send
from ordercast.model.units import Packet
from ordercast.protocols.prito.machine import Prito
from ordercast.protocols.to.machine import To
from ordercast.protocols.to.state import Mode
from ordercast.protocols.to.units import EpochVector, Heading, OrderedData, Sequenced, Standing, Vector, vector_of


class HearsItselfAtOnce(To):
    """Accepts its own data when it sends them: they have no place on the channel yet (F3)."""

    def _transmit(self, packet: Packet, out: list[Output], *, again: bool) -> None:
        super()._transmit(packet, out, again=again)
        sent = out[-1]
        assert isinstance(sent, Send)
        assert isinstance(sent.unit, OrderedData)
        self._hear_in_epoch(sent.unit, sent.unit.heading, out)


class KeepsWhatSomebodyHas(To):
    """Cuts at the highest vector instead of the lowest."""

    def _take_vector(self, unit: Vector, vector: EpochVector, out: list[Output]) -> None:
        del unit
        expects = tuple(max(pair) for pair in zip(vector.expects, self.expected, strict=True))
        higher = EpochVector(vector.source, vector.epoch, expects, vector.installed, vector.wants)
        super()._take_vector(higher, higher, out)


class ChangesItsVector(To):
    """Goes on accepting after it has said what it has, and then says that."""

    def _hear(self, unit: Sequenced | Standing, out: list[Output]) -> None:
        if self.mode is Mode.RESET and unit.heading.epoch == self.epoch:
            self._hear_in_epoch(unit, unit.heading, out)
            self.vectors[self.me] = self._own_vector()
        else:
            super()._hear(unit, out)


class SendsAtOnce(To):
    """Sends in a new epoch as soon as it knows what is kept, whoever else does not (F7)."""

    def _take_installed(self, node: int, out: list[Output]) -> None:
        super()._take_installed(node | self._everybody, out)


class TakesAnyStatusForAnAcknowledgment(Prito):
    """Acknowledges what all say to have accepted, in sequence or not, at a place that differs between nodes."""

    def _acknowledge_early(self, out: list[Output]) -> None:
        self.preacknowledged.refill(tuple(self.preacknowledged.entries), self.accepted.columns)
        self._acknowledge(self.preacknowledged.rise(), out)

    def _settle(self, out: list[Output]) -> None:
        self._acknowledge_early(out)
        super()._settle(out)


class SortsInWhenAccepted(Prito):
    """Sorts packets in when they are accepted, as printed (F2): what only some have accepted overtakes only there."""

    def _enter(self, packet: Packet, seq: int, out: list[Output]) -> None:
        To._enter(self, packet, seq, out)

    def _accept(self, unit: Sequenced, source: int, seq: int, out: list[Output]) -> None:
        super()._accept(unit, source, seq, out)
        if isinstance(unit, OrderedData):
            ahead = sum(isinstance(other, OrderedData) for _, _, other in self.accepted.entries) - 1
            heappush(self.by_priority, (-unit.packet.priority, self.preacknowledged_count + ahead, unit.packet))

    def _install(self, vectors: list[Vector], out: list[Output]) -> None:
        """What is thrown away is taken out of the list again, and what is kept moves up."""
        cut = [min(column) for column in zip(*[vector_of(unit).expects for unit in vectors], strict=True)]
        heard = [entry for entry in self.accepted.entries if isinstance(entry[2], OrderedData)]
        kept = [unit.packet for source, seq, unit in heard if seq < cut[source] and isinstance(unit, OrderedData)]
        known = [entry for entry in self.by_priority if entry[1] < self.preacknowledged_count]
        places = range(self.preacknowledged_count, self.preacknowledged_count + len(kept))
        self.by_priority = [
            *known,
            *[(-packet.priority, place, packet) for place, packet in zip(places, kept, strict=True)],
        ]
        heapify(self.by_priority)
        super()._install(vectors, out)


class LastOfEqualsFirst(Prito):
    """Puts a packet before those of its own priority too: in one order everywhere, but not in the order sent."""

    def _enter(self, packet: Packet, seq: int, out: list[Output]) -> None:
        heappush(self.by_priority, (-packet.priority * 100 - seq, self.preacknowledged_count, packet))
        To._enter(self, packet, seq, out)


class DeliversAfterTheLoop(Prito):
    """Looks at the first only when all is pre-acknowledged that one receipt makes so (F4)."""

    put_off: list[Packet] | None = None

    def _hear_in_epoch(self, unit: Sequenced | Standing, heading: Heading, out: list[Output]) -> str:
        self.put_off = []
        wrong = super()._hear_in_epoch(unit, heading, out)
        risen, self.put_off = self.put_off, None
        super()._acknowledge(risen, out)
        return wrong

    def _acknowledge(self, risen: list[Packet], out: list[Output]) -> None:
        if self.put_off is None:
            super()._acknowledge(risen, out)
        else:
            self.put_off += risen


class EndsRunsAtOnce(Prito):
    """Ends a run when its timer fires, rather than at the place of its marker (F6)."""

    def _fire(self, name: str, out: list[Output]) -> None:
        super()._fire(name, out)
        if name == "run" and self.mode is Mode.NORMAL:
            self._close_run(self.acknowledged_count, out)
