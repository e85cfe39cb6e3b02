"""Congestion control: how many bytes are in flight, and how long datagrams are, by what is lost.

A datagram that is longer than the packets of the network travels in fragments, and is lost with any of them. Where a
receiver is overrun, fewer bytes in flight help, and shorter datagrams would only cost it more; where the network loses
at random, shorter datagrams lose less. So bytes in flight are reduced first.
"""

from typing import NamedTuple, Protocol

MAX_BYTES_IN_FLIGHT = 1 << 20
"""Bytes of one sender that may be on their way to their place in the order."""
_MIN_BYTES_IN_FLIGHT = 1 << 17  # two of the longest datagrams
_LOSS_RATE = 0.02  # retransmissions and requests per unit above which units are taken to be lost


class Counts(Protocol):
    """What a member counts, from its start on."""

    transmitted: int
    retransmitted: int
    requests: int


class DatagramSizes(NamedTuple):
    """Bytes of a datagram: of one packet of the network, of what is tried first, and of the longest."""

    least: int
    first: int
    most: int


class CongestionControl:
    """Adapts to what was sent since it last looked."""

    def __init__(self, sizes: DatagramSizes) -> None:
        self._sizes = sizes
        self.datagram, self.bytes_in_flight = sizes.first, MAX_BYTES_IN_FLIGHT
        """The limits in bytes, of a datagram and of what is in flight."""
        self._counted = 0, 0  # units; retransmissions and requests

    def adapt(self, counts: Counts) -> None:
        """Half as much if much was lost, a quarter more if nothing was."""
        counted = counts.transmitted, counts.retransmitted + counts.requests
        units, lost = counted[0] - self._counted[0], counted[1] - self._counted[1]
        self._counted = counted
        if lost > units * _LOSS_RATE:
            if self.bytes_in_flight > _MIN_BYTES_IN_FLIGHT:
                self.bytes_in_flight //= 2
            else:
                self.datagram = max(self._sizes.least, self.datagram // 2)
        elif units and not lost:
            self.bytes_in_flight = min(MAX_BYTES_IN_FLIGHT, self.bytes_in_flight * 5 // 4)
            self.datagram = min(self._sizes.most, self.datagram * 5 // 4)
