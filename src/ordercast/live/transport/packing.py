"""What a member says waits for the end of a turn, and goes in as few datagrams as there can be."""

from collections.abc import Callable

from ordercast.wire.datagram import LENGTH_SIZE, MAX_DATAGRAM_SIZE, pack_records

ALL, CHANNEL = -1, -2
"""To every other member; to everybody by the one channel. Any other number is a member."""


class Packer:
    """Records by where they go to, joined into bodies."""

    def __init__(self, datagram: int, overhead: int, transmit: Callable[[bytes, int], None]) -> None:
        """`datagram`: the bytes that one should not have more of; a record that alone has more goes alone."""
        self.datagram, self._overhead = datagram, overhead
        self._transmit = transmit
        self._waiting: dict[int, list[bytes]] = {}
        self._sizes: dict[int, int] = {}
        self.too_large = 0
        """Records that no datagram can carry."""

    def say(self, record: bytes, to: int) -> None:
        """Sends a record with the next datagram there."""
        size = len(record) + LENGTH_SIZE
        if size + self._overhead > MAX_DATAGRAM_SIZE:
            self.too_large += 1
            return
        waiting = self._sizes.get(to, 0)
        if waiting and waiting + size + self._overhead > self.datagram:
            self._transmit(pack_records(self._waiting.pop(to)), to)
            waiting = 0
        if waiting:
            self._waiting[to].append(record)
        else:
            self._waiting[to] = [record]
        self._sizes[to] = waiting + size

    def flush(self) -> None:
        """Sends what waits."""
        while self._waiting:
            waiting, self._waiting = self._waiting, {}
            self._sizes.clear()
            for to, records in waiting.items():
                self._transmit(pack_records(records), to)
