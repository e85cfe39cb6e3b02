"""Congestion control: how many bytes are in flight, and how long datagrams are, by what is lost.

A datagram that is longer than the packets of the network travels in fragments, and is lost with any of them. Where a
receiver is overrun, fewer bytes in flight help, and shorter datagrams would only cost it more; where the network loses
at random, shorter datagrams lose less. So bytes in flight are reduced first; but if very much is lost, datagrams are
shortened at once: hardly any that travels in twenty fragments arrives then, and what has a number is not cut any more.
"""

from typing import NamedTuple, Protocol

MAX_BYTES_IN_FLIGHT = 1 << 20
"""Bytes of one sender that may be on their way to their place in the order."""
MAX_BYTES_BY_LINKS = 32 << 20
"""The same where links limit what is under way: for a line of 1 Gbit/s and 100 ms, twice."""
_MIN_BYTES_IN_FLIGHT = 1 << 17  # two of the longest datagrams
_LOSS_RATE = 0.02  # retransmissions and requests per unit above which units are taken to be lost
_HEAVY_LOSS = 0.2  # the same, above which datagrams are shortened at once


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
        self._sizes, self._has_links = sizes, has_links
        self.datagram = sizes.first
        self.bytes_in_flight = MAX_BYTES_BY_LINKS if has_links else MAX_BYTES_IN_FLIGHT
        """The limits in bytes, of a datagram and of what is in flight."""
        self._counted = 0, 0, 0  # units; retransmissions and requests; new messages

    def adapt(self, counts: Counts) -> None:
        """Half as much if much was lost, a quarter more if nothing was; that says nothing while nothing new is sent."""
        counted = counts.transmitted, counts.retransmitted + counts.requests, counts.sent
        units, lost, new = (now - before for now, before in zip(counted, self._counted, strict=True))
        self._counted = counted
        if self._has_links:
            if new:
                self.datagram = min(self._sizes.most, self.datagram * 5 // 4)
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
