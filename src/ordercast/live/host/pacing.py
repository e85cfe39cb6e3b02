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
        self.begins_at_own = self.begins_at_accepted = False
        """A round may begin when an own packet is sent, or when any packet is accepted."""
        self.seq = -1
        """The number of the packet whose round is being measured; -1: none is."""
        self._end()

    def use(self, timing: Timing, members: int) -> None:
        """A view begins."""
        self._pace.use(timing, members if self.acknowledges else 1)
        self._timers.pace = self._pace.factor
        self._end()

    def begin(self, packet: Packet) -> None:
        """A round begins with a packet."""
        self._pace.accepted(packet.source, packet.seq, time.monotonic_ns(), self._losses())
        self.begins_at_own = self.begins_at_accepted = False
        self.seq = packet.seq

    def ends(self, packet: Packet) -> None:
        """A packet with the number of the one that is measured came to the end of its round."""
        pace = self._pace
        if pace.packet != (packet.source, packet.seq):
            return
        pace.acknowledged(packet.source, packet.seq, time.monotonic_ns(), self._losses())
        self._end()
        if pace.factor != self._timers.pace:
            self._timers.pace = pace.factor
            if self.acknowledges:
                self._transport.set_pace(pace.factor)

    def accepted_by_some(self) -> None:
        """A packet to some members was accepted, where members hurry to acknowledge."""
        self._transport.send_directly(_SELECTIVE_SECONDS)

    def _end(self) -> None:
        self.seq, measures = -1, self._pace.measures
        self.begins_at_own, self.begins_at_accepted = measures and not self.acknowledges, measures and self.acknowledges

    def _losses(self) -> int:
        """Changes whenever something is known to be lost."""
        counts = self._counts
        return counts.retransmitted + counts.requests + counts.recoveries
