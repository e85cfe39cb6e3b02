"""What others lack of this node's packets: copies, and new generations (REP, REISSUE)."""

from typing import Final

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Output
from ordercast.model.units import Packet
from ordercast.protocols.st.channel_logs import OWN, RECEIVED
from ordercast.protocols.st.place.acknowledgments import Acknowledgments
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.place.positions import UNKNOWN
from ordercast.protocols.st.place.transmission import ECHO_PERIODS, Transmission
from ordercast.protocols.st.units import Wanted


class Copies(DeclaredState):
    """Answers to requests."""

    me: Final[int]
    generations: Final[Generations]
    logs: Final[Acknowledgments]
    transmission: Final[Transmission]

    sent: set[int]
    """Own seqs of which copies were sent, and are not sent again before the timer ends and they have come back."""
    timer: bool
    """Whether the timer runs after which copies may be sent again."""
    periods: int
    """Timers that ended while a copy was out."""

    def __init__(self, me: int, generations: Generations, logs: Acknowledgments, transmission: Transmission) -> None:
        self.me, self.generations, self.logs, self.transmission = me, generations, logs, transmission
        self.sent, self.timer, self.periods = set(), False, 0

    def answer(self, node: int, wanted: Wanted, free: int, out: list[Output]) -> None:
        """Copies for a node; or a new generation, if it takes none, or if I did not hear where the packet is."""
        _, generation, ranges, vetoed = wanted
        if generation != self.generations.own:
            return
        for packet in [packet for packet in self.logs.accepted.logs[OWN] if packet.destinations >> node & 1]:
            number, seq = packet.seq_to[node], packet.seq
            if not any(start <= number < stop for start, stop in ranges):
                continue
            if vetoed or (seq not in self.logs.positions.low and not self._may_come_back(packet)):
                self.transmission.send_again(seq, free, out)
                return
            if seq not in self.logs.positions.low:
                return
            if seq not in self.sent:
                self.sent.add(seq)
                self.transmission.send_copy(packet, out)

    def _may_come_back(self, packet: Packet) -> bool:
        """I lack it myself, and shall learn its place, or send it again if nobody tells."""
        mine = packet.destinations >> self.me & 1
        return bool(mine) and packet.seq_to[self.me] >= self.transmission.expected_to_me[self.me]

    def testify(self, wanted: Wanted, out: list[Output]) -> None:
        """Tells a source where a packet of its own is that did not come back: my log is in the channel's order."""
        source, generation, ranges, _ = wanted
        if generation != self.generations.known[source]:
            return
        for at, packet in enumerate(self.logs.accepted.logs[RECEIVED]):
            number, is_its_own = packet.seq_to[source], packet.source == source
            to_itself = is_its_own and packet.destinations >> source & 1
            if to_itself and any(start <= number < stop for start, stop in ranges):
                self._send_position(packet, at, out)
                return

    def _send_position(self, packet: Packet, at: int, out: list[Output]) -> None:
        low, high = list(self.logs.stable_below), [UNKNOWN] * len(packet.seq_to)
        for place, other in enumerate(self.logs.accepted.logs[RECEIVED]):
            if place < at:
                low[other.source] = other.seq + 1
            elif place > at and high[other.source] == UNKNOWN:
                high[other.source] = other.seq
        self.transmission.send_position(packet, low, high, out)

    def wait_for_return(self) -> bool:
        """The timer ended: copies may be sent again, unless they are still out. True: it goes on."""
        self.timer = False
        if self.transmission.came_back < self.transmission.copy_stamp and self.periods < ECHO_PERIODS:
            self.periods += 1
            self.timer = True
        else:
            self.sent.clear()
            self.periods = 0
        return self.timer
