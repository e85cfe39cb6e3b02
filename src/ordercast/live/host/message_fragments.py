"""Large messages in fragments: each is the payload of a packet, which is numbered, ordered and retransmitted like any.

The first byte of a packet's payload tells whether it holds whole messages, a fragment, or the last fragment. A message
is complete when its last fragment is delivered, which is its place in the order. `batching` cuts what is sent.

Not to be confused with `transport.fragmentation`, which is below the protocols: it cuts datagrams that are longer than
the packets of the network, and a fragment that is lost there is never retransmitted by itself.
"""

from collections.abc import Mapping

from ordercast.model.units import Packet

WHOLE, FRAGMENT, LAST_FRAGMENT = b"\0", b"\1", b"\2"


def messages_in(packet: Packet) -> int:
    """Messages that a packet holds, or completes."""
    mark = packet.payload[:1]
    return len(packet.lengths) if mark == WHOLE else int(mark == LAST_FRAGMENT)


class MessageReassembler:
    """Joins the fragments of large messages. Fragments of one source and priority arrive in their order."""

    def __init__(self, max_message_size: int) -> None:
        """`max_message_size`: a larger message is dropped, at every member alike."""
        self.max_message_size = max_message_size
        self._fragments: dict[tuple[int, int], list[bytes]] = {}  # by source and priority
        self._sizes: dict[tuple[int, int], int] = {}
        self.too_large = 0
        """Messages that were dropped for their size."""

    def move(self, places: Mapping[int, int]) -> None:
        """A view begins: sources have other places in it, by their old ones; the messages of the others end here.

        Whoever was given the first fragments of a message in the view before was given the same ones as all that go
        on, and its sender sends the rest in this view.
        """
        self._fragments = {(places[key[0]], key[1]): kept for key, kept in self._fragments.items() if key[0] in places}
        self._sizes = {(places[key[0]], key[1]): size for key, size in self._sizes.items() if key[0] in places}

    def messages(self, packet: Packet) -> list[bytes]:
        """The message that a packet with a fragment completes, or nothing."""
        payload = packet.payload
        mark = payload[:1]
        if mark not in {FRAGMENT, LAST_FRAGMENT}:
            return []
        key = (packet.source, packet.priority)
        fragments = self._fragments.setdefault(key, [])
        size = self._sizes[key] = self._sizes.get(key, 0) + len(payload) - 1
        if size <= self.max_message_size:
            fragments.append(payload[1:])
        else:
            fragments.clear()
        if mark == FRAGMENT:
            return []
        del self._fragments[key], self._sizes[key]
        if size > self.max_message_size:
            self.too_large += 1
            return []
        return [b"".join(fragments)]
