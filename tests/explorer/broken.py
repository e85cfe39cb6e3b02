"""SPO with one rule broken at a time: what an explorer must find, or it finds nothing."""

import msgspec

from ordercast.model.machine import Deliver, Input, Output, SetTimer
from ordercast.model.state import Snapshot
from ordercast.model.units import Packet
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.units import Data, Ready, Status


class TakesDuplicates(Spo):
    """Without the duplicate test: what was accepted is accepted again."""

    def _receive_data(self, unit: Data, out: list[Output]) -> None:
        packet = unit.packet
        if packet.seq < self.expected[packet.source] and packet.destinations >> self.me & 1:
            self._accept(packet, out)
        super()._receive_data(unit, out)


class GoesBack(Spo):
    """Without the duplicate test (D1): an old packet for others moves what is expected backwards."""

    def _receive_data(self, unit: Data, out: list[Output]) -> None:
        source = unit.packet.source
        if unit.packet.seq < self.expected[source] and not unit.packet.destinations >> self.me & 1:
            self.expected[source] = unit.packet.seq + 1
        super()._receive_data(unit, out)


class SaysPackForAck(Spo):
    """Says to have pre-acknowledged what it has only accepted (R1, A1)."""

    def _status(self) -> Status:
        status = super()._status()
        return msgspec.structs.replace(status, preacknowledged_below=status.expects)


class SaysSeenForExpected(Spo):
    """Says to have accepted what it has only seen."""

    def _status(self) -> Status:
        return msgspec.structs.replace(super()._status(), expects=tuple(self.seen))


class HoldsNothingBack(Spo):
    """Accepts what comes ahead of a gap."""

    def _hold(self, unit: Data, number: int, out: list[Output]) -> None:
        if unit.packet.destinations >> self.me & 1 and number > self.expected_to_me[unit.packet.source]:
            self._accept(unit.packet, out)


class DeliversEarly(Spo):
    """Delivers what it accepts."""

    def _accept(self, packet: Packet, out: list[Output]) -> None:
        super()._accept(packet, out)
        out.append(Deliver(packet))


class DeliversForOthers(Spo):
    """Delivers what is addressed to others."""

    def _receive_data(self, unit: Data, out: list[Output]) -> None:
        super()._receive_data(unit, out)
        if not unit.packet.destinations >> self.me & 1:
            out.append(Deliver(unit.packet))


class NeverOpens(Spo):
    """A window over nothing: it counts what was ever sent."""

    def _can_send(self, destinations: int) -> bool:
        return super()._can_send(destinations) and self.next_seq < self.config.window


class NeverPolls(Spo):
    """Waits without asking (C3)."""

    def handle(self, event: Input) -> list[Output]:
        return [
            output for output in super().handle(event) if not (isinstance(output, SetTimer) and output.name == "poll")
        ]


class AsksOnce(Spo):
    """Does not repeat its requests (C4)."""

    def _request_again(self, out: list[Output]) -> None:
        del out
        self.repeat_timer = False


class NeverSatisfied(Spo):
    """Owes a status for each that it hears."""

    def _receive_ready(self, unit: Ready, out: list[Output]) -> None:
        super()._receive_ready(unit, out)
        self.owes = True


class SilentWhenPolled(Spo):
    """Does not say what it has pre-acknowledged, nor answer those who ask."""

    def _preacknowledge(self, source: int, out: list[Output]) -> None:
        owed = self.owes
        super()._preacknowledge(source, out)
        self.owes = owed

    def _receive_ready(self, unit: Ready, out: list[Output]) -> None:
        super()._receive_ready(msgspec.structs.replace(unit, wants=0), out)


class ForgetsWhatItHolds(Spo):
    """Its snapshot leaves out what came ahead of a gap."""

    def snapshot(self) -> Snapshot:
        held, self.held = self.held, [{} for _ in self.held]
        try:
            return super().snapshot()
        finally:
            self.held = held
