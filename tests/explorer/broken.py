"""SPO with one rule broken at a time: what an explorer must find, or it finds nothing."""

import msgspec

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import Snapshot
from ordercast.model.machine import Deliver, Input, Output, SetTimer
from ordercast.model.units import Packet
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.retransmission import SelectiveRepeat
from ordercast.protocols.spo.units import Data, Ready, Status


class TakesDuplicates(Spo):
    """Without the duplicate test: what was accepted is accepted again."""

    def receive_data(self, unit: Data, out: list[Output]) -> None:
        packet = unit.packet
        if packet.seq < self.expected[packet.source] and packet.destinations >> self.me & 1:
            self.accept(packet, out)
        super().receive_data(unit, out)


class GoesBack(Spo):
    """Without the duplicate test (D1): an old packet for others moves what is expected backwards."""

    def receive_data(self, unit: Data, out: list[Output]) -> None:
        source = unit.packet.source
        if unit.packet.seq < self.expected[source] and not unit.packet.destinations >> self.me & 1:
            self.expected[source] = unit.packet.seq + 1
        super().receive_data(unit, out)


class SaysPackForAck(Spo):
    """Says to have pre-acknowledged what it has only accepted (R1, A1)."""

    def status(self) -> Status:
        status = super().status()
        return msgspec.structs.replace(status, preacknowledged_below=status.expects)


class SaysSeenForExpected(Spo):
    """Says to have accepted what it has only seen."""

    def status(self) -> Status:
        return msgspec.structs.replace(super().status(), expects=tuple(self.seen))


class HoldsNothingBack(Spo):
    """Accepts what comes ahead of a gap."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        machine = self

        class AcceptsAhead(SelectiveRepeat):
            def receive_ahead(self, unit: Data, number: int, out: list[Output]) -> None:
                if unit.packet.destinations >> me & 1 and number > machine.expected_to_me[unit.packet.source]:
                    machine.accept(unit.packet, out)

        super().__init__(me, config, AcceptsAhead)


class DeliversEarly(Spo):
    """Delivers what it accepts."""

    def accept(self, packet: Packet, out: list[Output]) -> None:
        super().accept(packet, out)
        out.append(Deliver(packet))


class DeliversForOthers(Spo):
    """Delivers what is addressed to others."""

    def receive_data(self, unit: Data, out: list[Output]) -> None:
        super().receive_data(unit, out)
        if not unit.packet.destinations >> self.me & 1:
            out.append(Deliver(unit.packet))


class NeverOpens(Spo):
    """A window over nothing: it counts what was ever sent."""

    def can_send(self, destinations: int) -> bool:
        return super().can_send(destinations) and self.next_seq < self.config.window


class NeverPolls(Spo):
    """Waits without asking (C3)."""

    def handle(self, event: Input) -> list[Output]:
        return [
            output for output in super().handle(event) if not (isinstance(output, SetTimer) and output.name == "poll")
        ]


class _RequestsOnce(SelectiveRepeat):
    def repeat_requests(self, out: list[Output]) -> None:
        del out
        self.repeat_timer = False


class AsksOnce(Spo):
    """Does not repeat its requests (C4)."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config, _RequestsOnce)


class NeverSatisfied(Spo):
    """Answers each status by a status."""

    def receive_ready(self, unit: Ready, out: list[Output]) -> None:
        super().receive_ready(unit, out)
        self.status_due = True


class SilentWhenPolled(Spo):
    """Does not say what it has pre-acknowledged, nor answer polls."""

    def preacknowledge(self, source: int, out: list[Output]) -> None:
        due = self.status_due
        super().preacknowledge(source, out)
        self.status_due = due

    def receive_ready(self, unit: Ready, out: list[Output]) -> None:
        super().receive_ready(msgspec.structs.replace(unit, wants=0), out)


class ForgetsWhatItHolds(Spo):
    """Its snapshot leaves out what came ahead of a gap."""

    def snapshot(self) -> Snapshot:
        kept, self.retransmission.out_of_order = (
            self.retransmission.out_of_order,
            [{} for _ in self.retransmission.out_of_order],
        )
        try:
            return super().snapshot()
        finally:
            self.retransmission.out_of_order = kept
