"""The one channel (1C) that some protocols need, on a network that has none: a relay gives everything one order.

Members send to the relay, and the relay sends to all, the sender too, with a number of its own. Who hears a number that
is not above the last it heard drops it: so all hear one order, and what is late is lost, which the protocols mend.

What members send to the relay must stay in each sender's order, too: every protocol on one channel counts on it. What
was overtaken on its way there would look like a loss to all members at once, and is worthless when it is passed on
after its overtaker: the group has gone back by then. So who runs a relay waits for the overtaken as members do
(`resequencing`), and drops the late.

A relay remembers nothing that matters. When it is started anew its numbers begin anew, but under a later incarnation,
and any number of a later incarnation is above all numbers of an earlier one.

It has then forgotten what it passed on, too. If that came once more, doubled and delayed by the network or kept by
somebody, a member that had lost it would take it, at another place in the order than all others. So what members send
names the life of the relay that they heard last, and a relay passes on only what names its own. Who names another is
told which life it is; what was sent is lost. (A relay that is a member lives as long as the session, and forgets
nothing of it.)
"""

from collections.abc import Callable
from struct import Struct

from ordercast.wire.datagram import FROM_RELAY, RELAY, TO_RELAY, Datagram
from ordercast.wire.sealing import Seal

ORIGIN = Struct(">HQ")
"""In front of the records that a relay passes on: who said it, in which session."""
RELAY_INCARNATION = Struct(">Q")
"""In front of the records that a member sends to a relay: the life of the relay that it heard last; 0: none yet."""

ORIGIN_SIZE, RELAY_INCARNATION_SIZE = ORIGIN.size, RELAY_INCARNATION.size


class Relay:
    """Passes on what members say. It belongs to whoever runs it: a member, or a process of its own."""

    def __init__(self, seal: Seal, incarnation: int, send_to_all: Callable[[bytes], None]) -> None:
        """`incarnation`: higher than that of any relay of this group before, such as the time on the wall."""
        self._seal, self.incarnation, self._send_to_all = seal, incarnation, send_to_all
        self._counter = 0
        self.passed = 0

    def pass_on(self, origin: int, session: int, records: bytes) -> bytes:
        """Sends to all what one said; gives back the body."""
        self.passed += 1
        return self._say(origin, session, records)

    def tell_life(self, session: int) -> None:
        """Says that it is there, and nothing else."""
        self._say(RELAY, session, b"")

    def _say(self, origin: int, session: int, records: bytes) -> bytes:
        body = ORIGIN.pack(origin, session) + records
        counter, self._counter = self._counter, self._counter + 1
        self._send_to_all(self._seal.seal(FROM_RELAY, RELAY, self.incarnation, counter, body))
        return body


def is_for_relay(said: Datagram) -> bool:
    """Whether a member wants it passed on."""
    return bool(said.flags & TO_RELAY) and said.sender != RELAY
