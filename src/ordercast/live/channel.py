"""The one channel (1C) that some protocols need, on a network that has none: a relay gives everything one order.

Members send to the relay, and the relay sends to all, the sender too, with a number of its own. Who hears a number that
is not above the last it heard drops it: so all hear one order, and what is late is lost, which the protocols mend.

What members send to the relay must stay in each sender's order, too: every protocol on one channel counts on it. What
was overtaken on its way there would look like a loss to all members at once, and is worthless when it is passed on
after its overtaker: the group has gone back by then. So who runs a relay waits for the overtaken as members do
(`resequencing`), and drops the late.

A relay remembers nothing that matters. When it is started anew its numbers begin anew, but under a later incarnation,
and any number of a later incarnation is above all numbers of an earlier one. It has then forgotten what it passed on,
and somebody who kept that could have it passed on again: so it repeats the number that the origin gave, and members
drop what is not above the last of that origin, too.
"""

from collections.abc import Callable
from struct import Struct

from ordercast.wire.datagram import FROM_CHANNEL, RELAY, TO_CHANNEL, Datagram
from ordercast.wire.sealing import Seal

ORIGIN = Struct(">HQQ")
"""In front of the records that a relay passes on: who said it, in which session, with which counter."""

ORIGIN_SIZE = ORIGIN.size


class Relay:
    """Passes on what members say. It belongs to whoever runs it: a member, or a process of its own."""

    def __init__(self, seal: Seal, incarnation: int, send_to_all: Callable[[bytes], None]) -> None:
        """`incarnation`: higher than that of any relay of this group before, such as the time on the wall."""
        self._seal, self._incarnation, self._send_to_all = seal, incarnation, send_to_all
        self._counter = 0
        self.passed = 0

    def pass_on(self, origin: int, session: int, counter: int, records: bytes) -> bytes:
        """Sends to all what one said; gives back the body."""
        body = ORIGIN.pack(origin, session, counter) + records
        number, self._counter = self._counter, self._counter + 1
        self._send_to_all(self._seal.seal(FROM_CHANNEL, RELAY, self._incarnation, number, body))
        self.passed += 1
        return body


def is_for_relay(said: Datagram) -> bool:
    """Whether a member wants it passed on."""
    return bool(said.flags & TO_CHANNEL) and said.sender != RELAY
