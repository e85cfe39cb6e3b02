"""The disk of a node's log: what is on it, what is written and not yet synced, and what a crash leaves of that.

How frames are torn and recovered is the matter of `ordercast.log`: whatever a crash leaves of sectors, sizes and names,
the log that is opened again has a beginning of what was written, and all that was synced. That is searched by itself,
to the end for short histories (`tests/log/test_every_crash.py`) and at random for long ones. So here a crash leaves any
beginning of what was not synced.

A disk that fails, or is full, needs no step of its own: from then on no sync returns, and the member ends. That is a
crash before the next sync.
"""

from typing import NamedTuple

from ordercast.model.units import Packet
from ordercast.protocols.restart.node_log import DropLog, Recovered, WriteNote, WritePacket
from ordercast.protocols.restart.standing import forgetting

_DAMAGED = 1 << 8
LOST = _DAMAGED
"""A crash after which the disk is lost; `kept` otherwise: how many of the writes that were not synced are on it."""


class NodeDisk(NamedTuple):
    """A value: what a disk has."""

    packets: tuple[Packet, ...] = ()
    note: bytes = b""
    waiting: tuple[WritePacket | WriteNote, ...] = ()
    """Written, and not synced."""
    writes: int = 0
    """Of this process, so far."""
    told: int = 0
    """How many of them the process knows to be on the disk."""

    def write(self, output: WritePacket | WriteNote) -> "NodeDisk":
        """One more write."""
        return self._replace(waiting=(*self.waiting, output), writes=self.writes + 1)

    def sync(self) -> "NodeDisk":
        """Everything that was written is on it, and the process is told."""
        return self._kept(len(self.waiting))._replace(writes=self.writes, told=self.writes)

    def drop(self, output: DropLog) -> "NodeDisk":
        """What follows a position is gone; all that was written before is synced by that."""
        synced = self._kept(len(self.waiting))
        packets, position = [], 0
        for packet in synced.packets:
            position += len(packet.lengths)
            if position <= output.position:
                packets.append(packet)
        return synced._replace(packets=tuple(packets), writes=self.writes, told=self.told)

    def crashes(self) -> list[int]:
        """What a crash may leave: beginnings of what was not synced, by their lengths."""
        return list(range(len(self.waiting) + 1))

    def damages(self) -> list[int]:
        """What a crash may leave of a disk that is damaged then: beginnings of its log, or nothing at all."""
        return [LOST, *(_DAMAGED | 1 + kept for kept in range(len(self.packets)))]

    def crash(self, left: int) -> "NodeDisk":
        """After a crash, by its number in `crashes` or `damages`."""
        if left == LOST:
            return NodeDisk()
        if left & _DAMAGED:
            kept = (left & ~_DAMAGED) - 1
            return NodeDisk(self.packets[:kept], forgetting(self.note))
        return self._kept(left)

    def describe_crash(self, left: int) -> str:
        """What a crash leaves, as words; empty: there was nothing but what was synced."""
        if left == LOST:
            return "and its disk is lost"
        if left & _DAMAGED:
            kept = (left & ~_DAMAGED) - 1
            return f"and {len(self.packets) - kept} packets at the end of its log are damaged"
        return f"and its disk has {left} of {len(self.waiting)} writes" if self.waiting else ""

    def recovered(self) -> Recovered:
        """What the next process finds."""
        return Recovered(self.packets, self.note)

    def all_packets(self) -> tuple[Packet, ...]:
        """Those that are not synced among them."""
        return (*self.packets, *(each.packet for each in self.waiting if isinstance(each, WritePacket)))

    def _kept(self, count: int) -> "NodeDisk":
        packets, note = self.packets, self.note
        for each in self.waiting[:count]:
            if isinstance(each, WritePacket):
                packets = (*packets, each.packet)
            else:
                note = each.note
        return NodeDisk(packets, note)
