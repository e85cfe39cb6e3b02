"""How long packets should be: where units are lost, shorter ones lose less; where none is, longer ones cost less.

A packet that is longer than those of the network goes as a train, and is lost with any of its segments.
"""

from typing import Protocol

_MANY = 0.02  # of the units that are sent: so many copies say that the network loses


class Counts(Protocol):
    """What a host counts, from its beginning on."""

    transmitted: int
    retransmitted: int
    requests: int


class PacketRoom:
    """Looks at what was sent since it last looked."""

    def __init__(self, least: int, most: int) -> None:
        """Bytes of messages in a packet: what fits into one packet of the network, and what fits into a datagram."""
        self._least, self._most = least, most
        self._room = most
        self._counted = 0, 0  # units, and copies with requests for them

    def suit(self, host: Counts) -> int:
        """The bytes for the next packets: half as many if much was lost, a quarter more if nothing was."""
        counted = host.transmitted, host.retransmitted + host.requests
        units, copies = counted[0] - self._counted[0], counted[1] - self._counted[1]
        self._counted = counted
        if copies > units * _MANY:
            self._room = max(self._least, self._room // 2)
        elif not copies:
            self._room = min(self._most, self._room * 5 // 4)
        return self._room
