"""Packing: records wait for the end of a turn, and go in as few datagrams as possible."""

from ordercast.wire.datagram import LENGTH_SIZE, MAX_DATAGRAM_SIZE, pack_records

ALL, BY_RELAY, BESIDE = -1, -2, -3
"""Destinations: every other member; all members by the relay; all members beside it. Any other number is a member."""


class Packer:
    """Records by destination, packed into bodies of datagrams."""

    def __init__(self, max_datagram_size: int, overhead: int) -> None:
        """`overhead`: bytes of a datagram besides its records. A record that is longer than the limit goes alone."""
        self.max_datagram_size, self._overhead = max_datagram_size, overhead
        self._records: dict[int, list[bytes]] = {}
        self._sizes: dict[int, int] = {}
        self.too_large = 0
        """Records that no datagram can carry."""

    def add(self, record: bytes, to: int) -> bytes | None:
        """Adds a record; the body that must be sent there now, if the record does not fit behind those that wait."""
        size = len(record) + LENGTH_SIZE
        if size + self._overhead > MAX_DATAGRAM_SIZE:
            self.too_large += 1
            return None
        waiting = self._sizes.get(to, 0)
        if not waiting:
            self._records[to] = [record]
            self._sizes[to] = size
            return None
        if waiting + size + self._overhead <= self.max_datagram_size:
            self._records[to].append(record)
            self._sizes[to] = waiting + size
            return None
        full, self._records[to] = self._records.pop(to), [record]  # it is now the last that began to wait
        self._sizes[to] = size
        return pack_records(full)

    def has(self, to: int) -> bool:
        """Whether something waits to be sent there."""
        return to in self._records

    def take(self) -> list[tuple[int, bytes]]:
        """The bodies that wait, with their destinations."""
        bodies = []
        for to, waiting in self._records.items():
            bodies.append((to, pack_records(waiting)))
        self._records, self._sizes = {}, {}
        return bodies

    def clear(self) -> None:
        """Forgets what waits."""
        self._records, self._sizes = {}, {}
