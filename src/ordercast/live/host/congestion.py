"""How much is sent at once, and how long datagrams are: as much as is not lost.

A datagram that is longer than the packets of the network goes as a train, and is lost with any of its segments. Where
units are lost because a receiver is overrun, less of them at a time helps, and shorter datagrams would only cost it
more; where the network loses by chance, shorter ones lose less. So the first is tried first.
"""

from typing import NamedTuple, Protocol

MAX_BYTES_IN_FLIGHT = 1 << 20
"""Bytes of one sender that may be on their way to their place in the order."""
_MIN_BYTES_IN_FLIGHT = 1 << 17  # two of the longest datagrams
_MANY = 0.02  # of the units that are sent: so many copies say that units are lost


class Counts(Protocol):
    """What a host counts, from its beginning on."""

    transmitted: int
    retransmitted: int
    requests: int


class DatagramSizes(NamedTuple):
    """Bytes of a datagram: of a packet of the network, of what is tried first, and of the longest."""

    least: int
    first: int
    most: int


class CongestionControl:
    """Looks at what was sent since it last looked."""

    def __init__(self, sizes: DatagramSizes) -> None:
        self._sizes = sizes
        self.datagram, self.under_way = sizes.first, MAX_BYTES_IN_FLIGHT
        """Bytes of the next datagrams, and of what is under way."""
        self._counted = 0, 0  # units, and copies with requests for them

    def suit(self, host: Counts) -> None:
        """Half as much if much was lost, a quarter more if nothing was."""
        counted = host.transmitted, host.retransmitted + host.requests
        units, copies = counted[0] - self._counted[0], counted[1] - self._counted[1]
        self._counted = counted
        if copies > units * _MANY:
            if self.under_way > _MIN_BYTES_IN_FLIGHT:
                self.under_way //= 2
            else:
                self.datagram = max(self._sizes.least, self.datagram // 2)
        elif units and not copies:
            self.under_way = min(MAX_BYTES_IN_FLIGHT, self.under_way * 5 // 4)
            self.datagram = min(self._sizes.most, self.datagram * 5 // 4)
