"""The log of a node as its machine sees it: what it wrote, and how much of that the disk is known to have.

The disk is the host's: a machine says what is to be written, and is told how much of that is on the disk.
"""

from hashlib import blake2b
from typing import Any

import msgspec

from ordercast.model.declared_state import DeclaredState
from ordercast.model.units import Packet
from ordercast.protocols.restart.node_units import LogPlace

_HASH_SIZE = 16
BEGINNING: LogPlace = (0, b"")


class WritePacket(msgspec.Struct, frozen=True, gc=False):
    """Output: write the messages of a packet to the log."""

    packet: Packet


class WriteNote(msgspec.Struct, frozen=True, gc=False):
    """Output: write a note to the log."""

    note: bytes


class DropLog(msgspec.Struct, frozen=True, gc=False):
    """Output: drop everything from this position on; it was never agreed on."""

    position: int


class Synced(msgspec.Struct, frozen=True, gc=False):
    """Input: the first so many of all writes are on the disk."""

    writes: int


class Recovered(msgspec.Struct, frozen=True, gc=False):
    """Input, the first one: the process was started again, and this is in its log, on the disk."""

    packets: tuple[Packet, ...]
    note: bytes


class NodeLog(DeclaredState):
    """The log of one node."""

    packets: list[Packet]  # in the order in which they were written
    ends: list[LogPlace]  # of each packet
    written: int  # how many writes there were: packets and notes
    synced: int  # how many of them are on the disk
    unsynced: list[tuple[int, int]]  # packets that may not be on the disk: number of the write, packets with it
    durable: int  # packets that are on the disk
    held: list[tuple[int, str, Any]]  # what is done once a write is on the disk

    def __init__(self) -> None:
        self.packets, self.ends = [], []
        self.written = self.synced = self.durable = 0
        self.unsynced, self.held = [], []

    def recover(self, packets: tuple[Packet, ...]) -> None:
        """These were in it."""
        for packet in packets:
            self._append(packet)
        self.durable = len(self.packets)

    @property
    def end(self) -> LogPlace:
        """The place behind the last message."""
        return self.ends[-1] if self.ends else BEGINNING

    @property
    def durable_end(self) -> LogPlace:
        """Of what is on the disk."""
        return self.ends[self.durable - 1] if self.durable else BEGINNING

    def places(self) -> tuple[LogPlace, ...]:
        """All, the last one first."""
        return (*reversed(self.ends), BEGINNING)

    def has(self, place: LogPlace) -> bool:
        """Whether this is a place of it that is on the disk."""
        return place == BEGINNING or place in self.ends[: self.durable]

    def between(self, start: LogPlace, end: LogPlace) -> tuple[Packet, ...]:
        """What is behind one place, up to another one."""
        ends = [BEGINNING, *self.ends]
        return tuple(self.packets[ends.index(start) : ends.index(end)])

    def common(self, places: tuple[LogPlace, ...], position: int) -> LogPlace:
        """The first of these places that is one of this log, no later than a position."""
        return next((place for place in places if place[0] <= position and self.has(place)), BEGINNING)

    def write(self, packet: Packet) -> WritePacket:
        """Appends the messages of a packet."""
        self._append(packet)
        self.written += 1
        self.unsynced.append((self.written, len(self.packets)))
        return WritePacket(packet)

    def write_note(self, note: bytes) -> WriteNote:
        """The newest note."""
        self.written += 1
        return WriteNote(note)

    def drop_above(self, place: LogPlace) -> None:
        """What is behind a place is gone; all else that was written is on the disk before."""
        count = 0 if place == BEGINNING else self.ends.index(place) + 1
        del self.packets[count:], self.ends[count:]
        self.unsynced = []
        self.durable = count

    def sync(self, writes: int) -> list[tuple[str, Any]]:
        """So many are on the disk: what was held until then."""
        self.synced = max(self.synced, writes)
        while self.unsynced and self.unsynced[0][0] <= self.synced:
            self.durable = self.unsynced.pop(0)[1]
        done = [(kind, what) for number, kind, what in self.held if number <= self.synced]
        self.held = [each for each in self.held if each[0] > self.synced]
        return done

    def hold(self, kind: str, what: Any) -> bool:
        """Until all that is written is on the disk; False if it is."""
        if self.synced >= self.written:
            return False
        self.held.append((self.written, kind, what))
        return True

    def _append(self, packet: Packet) -> None:
        position, before = self.end
        record = repr((packet.source, packet.first, packet.lengths, packet.priority)).encode()
        self.packets.append(packet)
        hash_ = blake2b(before + record + packet.payload, digest_size=_HASH_SIZE).digest()
        self.ends.append((position + len(packet.lengths), hash_))
