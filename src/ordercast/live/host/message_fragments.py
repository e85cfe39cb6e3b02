"""Large messages in fragments: each is the payload of a packet, which is numbered, ordered and retransmitted like any.

The first byte of a packet's payload tells whether it holds whole messages, or the first, the last or another fragment
of one. A message is complete when its last fragment is delivered, which is its place in the order. `batching` cuts what
is sent.

A view may come between the fragments of a message. Those that go on have the same first fragments, and its sender sends
the rest in the new view. Who joins with that view is given the first ones by another member (`partial_messages`). A
fragment without those before it is dropped.

Not to be confused with `transport.fragmentation`, which is below the protocols: it cuts datagrams that are longer than
the packets of the network, and a fragment that is lost there is never retransmitted by itself.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ordercast.model.units import Packet

WHOLE, FRAGMENT, LAST_FRAGMENT, FIRST_FRAGMENT = b"\0", b"\1", b"\2", b"\3"


def messages_in(packet: Packet) -> int:
    """Messages that a packet holds, or completes."""
    mark = packet.payload[:1]
    return len(packet.lengths) if mark == WHOLE else int(mark == LAST_FRAGMENT)


class Partial(msgspec.Struct, array_like=True, gc=False):
    """The first fragments of a message."""

    source: int
    """The place of its sender."""
    priority: int
    to_all: bool
    """All fragments went to all members of their views."""
    size: int
    fragments: list[bytes]


class MessageReassembler:
    """Joins the fragments of large messages. Fragments of one source and priority arrive in their order."""

    def __init__(self, max_message_size: int) -> None:
        """`max_message_size`: a larger message is dropped, at every member alike."""
        self.max_message_size = max_message_size
        self.partials: dict[tuple[int, int], Partial] = {}
        """By source and priority."""
        self.too_large = 0
        """Messages that were dropped for their size."""

    def copy(self) -> "MessageReassembler":
        """One that goes on by itself."""
        found = MessageReassembler(self.max_message_size)
        found.load(replace(each, fragments=list(each.fragments)) for each in self.partials.values())
        return found

    def load(self, partials: Iterable[Partial]) -> None:
        """Goes on with these."""
        self.partials |= {(partial.source, partial.priority): partial for partial in partials}

    def move(self, places: Mapping[int, int]) -> None:
        """A view begins: sources have other places in it, by their old ones; the messages of the others end here."""
        kept = [replace(each, source=places[each.source]) for each in self.partials.values() if each.source in places]
        self.partials = {}
        self.load(kept)

    def messages(self, packet: Packet, everybody: int) -> list[bytes]:
        """The message that a packet with a fragment completes, or nothing. `everybody`: all members of the view."""
        payload = packet.payload
        mark, key = payload[:1], (packet.source, packet.priority)
        if mark == FIRST_FRAGMENT:
            partial = self.partials[key] = Partial(*key, to_all=True, size=0, fragments=[])
        elif mark in {FRAGMENT, LAST_FRAGMENT} and key in self.partials:
            partial = self.partials[key]
        else:
            return []
        partial.size += len(payload) - 1
        partial.to_all = partial.to_all and packet.destinations == everybody
        if partial.size <= self.max_message_size:
            partial.fragments.append(payload[1:])
        else:
            partial.fragments.clear()
        if mark != LAST_FRAGMENT:
            return []
        del self.partials[key]
        if partial.size > self.max_message_size:
            self.too_large += 1
            return []
        return [b"".join(partial.fragments)]
