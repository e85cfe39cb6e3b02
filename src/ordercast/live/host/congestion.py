"""Congestion control: how many bytes are in flight, and how long datagrams are.

Where units travel in links (`live.transport.links`), each link knows its path, and none how long a message takes to
its place in the order, by a relay or a sequencer and perhaps several rounds: `FlightWindow` measures that. Elsewhere,
on one machine and with multicast, both follow what is lost:

A datagram that is longer than the packets of the network travels in fragments, and is lost with any of them. Where a
receiver is overrun, fewer bytes in flight help, and shorter datagrams would only cost it more; where the network loses
at random, shorter datagrams lose less. So bytes in flight are reduced first; but if very much is lost, datagrams are
shortened at once: hardly any that travels in twenty fragments arrives then, and what has a number is not cut any more.
"""

from collections import deque
from typing import NamedTuple, Protocol

MAX_BYTES_IN_FLIGHT = 1 << 20
"""Bytes of one sender that may be on their way to their place in the order."""
MAX_BYTES_BY_LINKS = 32 << 20
"""The same where links limit what is under way: for a line of 1 Gbit/s and 100 ms, twice."""
MIN_BYTES_BY_LINKS = 4 << 20
"""The least of these: links, and a relay that closes its own, keep shorter what waits on a narrow line."""
_MIN_BYTES_IN_FLIGHT = 1 << 17  # two of the longest datagrams
_LOSS_RATE = 0.02  # retransmissions and requests per unit above which units are taken to be lost
_HEAVY_LOSS = 0.2  # the same, above which datagrams are shortened at once


_RATES = 10  # measurements for which a rate counts
_LEAST_INTERVAL = 0.02  # seconds of a measurement
_SHORTEST_FOR = 10.0  # seconds for which the shortest time counts
_PROBE_SECONDS = 0.2  # in which less is in flight, to measure it again


class FlightWindow:
    """Bytes in flight: twice the highest rate of the last measurements times the shortest time to a place in the order.

    More would only wait somewhere on the way. It is BBR's window, from end to end. No clock: times are seconds.
    """

    def __init__(self) -> None:
        self.limit = MIN_BYTES_BY_LINKS
        """Bytes."""
        self.rates: deque[float] = deque(maxlen=_RATES)
        self.shortest, self.shortest_at = 0.0, 0.0  # 0: not known
        self._bytes, self._since = 0, 0.0
        self.probe_until, self._probed = 0.0, 0.0

    def placed(self, size: int, seconds: float, now: float) -> None:
        """So many bytes have their place in the order, so many seconds after they were sent."""
        if not self.shortest or seconds <= self.shortest:
            self.shortest, self.shortest_at = seconds, now
        if self.probe_until:
            self._probed = min(self._probed or seconds, seconds)
            if now > self.probe_until:
                self.shortest, self.shortest_at = self._probed, now
                self.probe_until = self._probed = 0.0
        elif now > self.shortest_at + _SHORTEST_FOR:
            self.probe_until = now + _PROBE_SECONDS + 2 * seconds
        self._bytes += size
        elapsed = now - self._since
        if elapsed >= max(self.shortest, _LEAST_INTERVAL):
            if elapsed < 2 * self.shortest + 1:  # else nothing was sent for a while
                self.rates.append(self._bytes / elapsed)
            self._bytes, self._since = 0, now
            self.update()

    def update(self) -> None:
        """Sets the window anew, by what is measured."""
        wanted = 2 * max(self.rates, default=0.0) * self.shortest
        if self.probe_until:
            wanted /= 4
        self.limit = int(min(MAX_BYTES_BY_LINKS, max(MIN_BYTES_BY_LINKS, wanted)))


class Counts(Protocol):
    """What a member counts, from its start on."""

    transmitted: int
    retransmitted: int
    requests: int
    sent: int


class DatagramSizes(NamedTuple):
    """Bytes of a datagram: of one packet of the network, of what is tried first, and of the longest."""

    least: int
    first: int
    most: int


class CongestionControl:
    """Adapts to what was sent since it last looked."""

    def __init__(self, sizes: DatagramSizes, *, has_links: bool = False) -> None:
        """`has_links`: those control what is in flight, and repeat what is lost."""
        self._sizes = sizes
        self.flight = FlightWindow() if has_links else None
        """Limits bytes in flight, where units travel in links."""
        self.datagram = sizes.first
        self.bytes_in_flight = MAX_BYTES_IN_FLIGHT if self.flight is None else self.flight.limit
        """The limits in bytes, of a datagram and of what is in flight."""
        self._counted = 0, 0, 0  # units; retransmissions and requests; new messages

    def adapt(self, counts: Counts) -> None:
        """Half as much if much was lost, a quarter more if nothing was; that says nothing while nothing new is sent."""
        counted = counts.transmitted, counts.retransmitted + counts.requests, counts.sent
        units, lost, new = (now - before for now, before in zip(counted, self._counted, strict=True))
        self._counted = counted
        if self.flight is not None:
            self.bytes_in_flight = self.flight.limit
        elif lost > units * _LOSS_RATE:
            if lost > units * _HEAVY_LOSS:
                self.datagram = max(self._sizes.least, self.datagram // 4)
            elif self.bytes_in_flight <= _MIN_BYTES_IN_FLIGHT:
                self.datagram = max(self._sizes.least, self.datagram // 2)
            if self.bytes_in_flight > _MIN_BYTES_IN_FLIGHT:
                self.bytes_in_flight //= 2
        elif new and not lost:
            self.bytes_in_flight = min(MAX_BYTES_IN_FLIGHT, self.bytes_in_flight * 5 // 4)
            self.datagram = min(self._sizes.most, self.datagram * 5 // 4)
