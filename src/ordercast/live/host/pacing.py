"""How long rounds take while the group runs, and timers that suit it.

Where members hurry to acknowledge, a round is from accepting a packet to hearing that all have it. Elsewhere nobody
hurries, and a round is from sending an own packet to having it with its number.
"""

import time

from ordercast.live.host.round_trips import Pace
from ordercast.live.host.timers import Timers
from ordercast.live.host.unit_counts import UnitCounts
from ordercast.live.transport.transport import Transport
from ordercast.model.config import Timing
from ordercast.model.machine import Level
from ordercast.model.units import Packet

_SELECTIVE_SECONDS = 1.0  # after a message to some members in which acknowledgments are not gathered


class Pacing:
    """Of one member."""

    def __init__(
        self,
        timing: Timing,
        timers: Timers,
        transport: Transport,
        counts: UnitCounts,
        *,
        acknowledges: bool,
        measures: bool,
    ) -> None:
        """`acknowledges`: whether members hurry to; `measures`: whether timers follow how long rounds take."""
        self._pace = Pace(timing, measures=measures)
        self._timers, self._transport, self._counts = timers, transport, counts
        self.acknowledges = acknowledges

    def use(self, timing: Timing, members: int) -> None:
        """A view begins."""
        self._pace.use(timing, members if self.acknowledges else 1)
        self._timers.pace = self._pace.factor

    def numbered(self, packet: Packet) -> None:
        """An own packet is sent."""
        if not self.acknowledges and self._pace.packet is None:
            self._pace.accepted(packet.source, packet.seq, time.monotonic_ns(), self._losses())

    def delivered(self, packet: Packet) -> None:
        """An own packet is delivered here."""
        pace = self._pace
        if not self.acknowledges and pace.packet == (packet.source, packet.seq):
            pace.acknowledged(packet.source, packet.seq, time.monotonic_ns(), self._losses())
            self._timers.pace = pace.factor

    def reached(self, packet: Packet, level: Level, everybody: int) -> None:
        """A packet was accepted or pre-acknowledged, where members hurry to acknowledge. `everybody`: in the view."""
        pace = self._pace
        if level < Level.PREACKNOWLEDGED:
            if pace.measures and pace.packet is None:
                pace.accepted(packet.source, packet.seq, time.monotonic_ns(), self._losses())
            if packet.destinations != everybody:
                self._transport.send_directly(_SELECTIVE_SECONDS)
        elif pace.packet == (packet.source, packet.seq):
            pace.acknowledged(packet.source, packet.seq, time.monotonic_ns(), self._losses())
            if pace.factor != self._timers.pace:
                self._timers.pace = pace.factor
                self._transport.set_pace(pace.factor)

    def _losses(self) -> int:
        """Changes whenever something is known to be lost."""
        counts = self._counts
        return counts.retransmitted + counts.requests + counts.recoveries
