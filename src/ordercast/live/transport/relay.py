"""The relay: one order for all datagrams (the papers' one channel, 1C), on a network that has none.

Members send to the relay, and the relay sends to all, the sender included, with a counter of its own. A member drops
what is not above the last counter that it received: so all receive in one order, and what is late counts as lost,
which the protocols repair.

What members send to the relay must stay in each sender's order, too: every protocol on one channel relies on it. What
was overtaken on its way there would look like a loss to all members at once, and is worthless when it is relayed
after its overtaker: the group has gone back by then. So a relay has a reorder buffer as members do, and drops what is
late.

A relay keeps no state that matters. When it is restarted its counters begin again, but under a later incarnation, and
any counter of a later incarnation is above all counters of an earlier one.

It has then also forgotten what it relayed. If that arrived once more, duplicated and delayed by the network or
recorded by somebody, a member that had lost it would accept it, at another place in the order than all others. So what
members send names the incarnation of the relay that they received from last, and a relay relays only what names its
own. Whoever names another is told the right one; what was sent is lost. (A relay that is a member lives as long as the
session, and forgets nothing of it.)

Whoever sent much has it still: a relay that is a member sends it to the others, and to its origin an **echo** with the
number that the origin gave it, at the same place in the order.
"""

from collections.abc import Callable
from struct import Struct

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.beside_relay import EarlyStatuses, OnTheWay
from ordercast.live.transport.gathering import COMPRESSED, GATHERED, Gathering, Parts, compressed, joined
from ordercast.live.transport.reorder_buffer import Stream
from ordercast.model.config import MILLISECOND
from ordercast.wire.datagram import (
    CAN_WAIT,
    ECHO,
    FROM_RELAY,
    MAX_DATAGRAM_SIZE,
    RELAY,
    TO_RELAY,
    UNORDERED,
    Datagram,
)
from ordercast.wire.seal import Seal

ORIGIN = Struct(">HQ")
"""In front of the records that a relay passes on: who sent them, in which session."""
RELAY_INCARNATION = Struct(">Q")
"""In front of the records that a member sends to a relay: the relay's last known incarnation; 0: none yet."""
ORIGIN_SIZE, RELAY_INCARNATION_SIZE = ORIGIN.size, RELAY_INCARNATION.size
ECHO_FROM = 512
"""Bytes of records that are not sent back to their origin: with less it saves nothing that matters."""
_ECHOED = Struct(">Q")
"""What is sent instead: the counter of the datagram in which the relay received them."""
_MAX_KEPT = 4096  # datagrams whose echoes are awaited; of more the first count as lost
_MAX_KEPT_BYTES = 48 << 20  # of their records: more than is ever in flight
_MAX_COLLECTED = 8 * ECHO_FROM  # bytes; more go at once
LEAST_PATIENCE = 20 * MILLISECOND
"""After it an acknowledgment that did not come back counts as lost, if rounds take no longer than expected."""
_TICKS_TO_ASK = 3  # without an answer, as members are asked: one and a half heartbeats


class Relay:
    """Passes on what members send. It belongs to whoever runs it: a member, or a process of its own."""

    def __init__(self, seal: Seal, incarnation: int, send_to_all: Callable[[bytes], None]) -> None:
        """`incarnation`: higher than that of any relay of this group before, such as the wall-clock time."""
        self._seal, self.incarnation, self._send_to_all = seal, incarnation, send_to_all
        self._counter = 0
        self.passed = 0
        """Datagrams that were passed on."""
        self.gathering: Gathering | None = None
        """What waits to be passed on together; None: nothing waits."""
        self._members = 0  # of which each can be sent something else; 0: all are sent the same
        self._send_apart: Callable[[bytes | None, int, bytes], None]
        self._collecting: int | None = None  # the session of which what is short waits for the end of a turn
        self._collected: Parts = []
        self._collected_size = 0

    @property
    def position(self) -> int:
        """The next counter of its order."""
        return self._counter

    def gather(self, session: int, members: int, hold: int) -> None:
        """From now on acknowledgments of so many members, all in this session, wait for each other.

        `hold`: nanoseconds, at most.
        """
        self.gathering = Gathering(
            members, hold, lambda parts, alike, number: self._pass_on_all(session, parts, number, alike=alike)
        )

    def collect(self, session: int) -> None:
        """From now on what is short, all in this session, is passed on when the turn is over: see `release`."""
        self._collecting = session

    def release(self) -> None:
        """The turn is over, and what this member says itself is there: all goes in one datagram."""
        if self._collected and self._collecting is not None:
            parts, self._collected, self._collected_size = self._collected, [], 0
            self._pass_on_all(self._collecting, parts, None)

    def echo(self, members: int, send_apart: Callable[[bytes | None, int, bytes], None]) -> None:
        """From now on so many members, of which this is one, are not sent again what they have sent.

        `send_apart`: sends the first to all others but one member, and the last to that one.
        """
        self._members, self._send_apart = members, send_apart

    def pass_on(
        self,
        origin: int,
        session: int,
        records: bytes | memoryview,
        *,
        waits: bool = False,
        number: int | None = None,
    ) -> None:
        """Sends to all what one member sent; `waits`: together with what others send, if it gathers.

        `number`: the counter under which the origin knows it; None: it is sent to the origin, too.
        """
        if self._collecting is not None:
            if len(records) < ECHO_FROM:
                self._collected.append((origin, records))
                self._collected_size += len(records)
                if self._collected_size > _MAX_COLLECTED:
                    self.release()
                return
            self.release()
        if self.gathering is None:
            self._pass_on_all(session, [(origin, records)], number)
        else:
            self.gathering.add(origin, records, waits=waits, number=number)

    def close(self) -> None:
        """Nothing that waits is passed on."""
        self._collected = []
        if self.gathering is not None:
            self.gathering.close()

    def _pass_on_all(self, session: int, parts: Parts, number: int | None, *, alike: bool = False) -> None:
        origin, last = parts[-1]
        if len(parts) > 1 and sum(len(records) for _, records in parts) > MAX_DATAGRAM_SIZE // 2:
            self._pass_on_all(session, parts[:-1], None, alike=True)  # a datagram full of data takes nothing along
            parts = parts[-1:]
        echo = None
        if number is not None and self._members and len(last) >= ECHO_FROM:
            echo = origin, joined([*parts[:-1], (origin, _ECHOED.pack(number))])
        if len(parts) == 1:
            self._pass_on(origin, session, last, echo)
            return
        body = joined(parts)
        smaller = compressed(body) if alike else None
        if smaller is None:
            self._pass_on(GATHERED, session, body, echo)
        else:
            self._pass_on(COMPRESSED, session, smaller)

    def _pass_on(
        self, origin: int, session: int, records: bytes | memoryview, echo: tuple[int, bytes] | None = None
    ) -> None:
        """`echo`: for which member, and what it is sent instead."""
        self.passed += 1
        counter, self._counter = self._counter, self._counter + 1
        datagram = None
        if echo is None or self._members > 2:
            body = ORIGIN.pack(origin, session) + records
            datagram = self._seal.seal(FROM_RELAY, RELAY, self.incarnation, counter, body)
        if echo is not None:
            place, short = echo
            body = ORIGIN.pack(GATHERED, session) + short
            self._send_apart(
                datagram, place, self._seal.seal(FROM_RELAY, ECHO, self.incarnation, counter, body, place + 1)
            )
        elif datagram is not None:
            self._send_to_all(datagram)

    def take(self, datagram: Datagram) -> memoryview | None:
        """Passes on the records of a datagram that a member sent to the relay; None: it is too short to have any."""
        if len(datagram.body) < RELAY_INCARNATION_SIZE:
            return None
        records = memoryview(datagram.body)[RELAY_INCARNATION_SIZE:]
        waits = bool(datagram.flags & CAN_WAIT)
        number = None if waits or datagram.sender & UNORDERED else datagram.counter
        self.pass_on(datagram.sender & ~UNORDERED, datagram.tag, records, waits=waits, number=number)
        return records

    def is_named_in(self, datagram: Datagram) -> bool:
        """True if what a member sent to the relay names this incarnation of it."""
        return bool(RELAY_INCARNATION.unpack_from(datagram.body)[0] == self.incarnation)

    def announce(self, session: int) -> None:
        """Tells all its incarnation, and nothing else."""
        self._pass_on(RELAY, session, b"")
        self.passed -= 1


class RelayClient:
    """A member's view of a relay that it is not itself: where it is, its incarnation, and whether it answers."""

    def __init__(self, address: Address, *, is_member: bool, max_hold: int) -> None:
        """`is_member`: then the failure detector watches it; `max_hold`: of what it sends, for the reorder buffer."""
        self.address, self.is_member, self._max_hold = address, is_member, max_hold
        self.incarnation = 0
        """The one that was received from last; 0: none yet."""
        self.stream = Stream(max_hold)
        self.patience = LEAST_PATIENCE
        """Nanoseconds after which an acknowledgment that did not come back counts as lost."""
        self.position = 0
        """Below this counter of its incarnation everything is handled, or lost."""
        self.early = EarlyStatuses()
        self.on_the_way = OnTheWay(_MAX_KEPT, _MAX_KEPT_BYTES)
        """What was sent by it, as far as an echo may stand for it, or somebody asks whether all is back."""
        self._unanswered, self._silent_ticks = False, 0
        self._asked_at: int | None = None

    def keep(self, number: int, records: bytes, *, short: bool = False) -> None:
        """They are sent to the relay in the datagram with this number. `short`: those that no echo stands for, too."""
        if self.is_member and (short or len(records) >= ECHO_FROM):
            self.on_the_way.add(number, records)

    def echoed(self, echo: bytes | memoryview) -> bytes | None:
        """What an echo stands for; None: nothing that is kept."""
        return self.on_the_way.back(*_ECHOED.unpack(echo)) if len(echo) == _ECHOED.size else None

    def body_of(self, records: bytes) -> bytes:
        """The body of a datagram to the relay. If it has records, they should come back; without, it only asks."""
        if records and not self._unanswered:
            self._unanswered, self._silent_ticks = True, 0
        return RELAY_INCARNATION.pack(self.incarnation) + records

    def answered(self) -> None:
        """Something of ours came back, or a new incarnation has announced itself."""
        self._unanswered, self._silent_ticks = False, 0
        self._asked_at = None

    def asked_at(self, now: int) -> None:
        """An acknowledgment is sent by it now, in nanoseconds."""
        if self._asked_at is None:
            self._asked_at = now

    def is_late(self, now: int) -> bool:
        """Whether an acknowledgment should have come back long ago: the next one is better sent without it.

        After that it is tried again.
        """
        if self._asked_at is None or now - self._asked_at < self.patience:
            return False
        self._asked_at = None
        return True

    def restarted(self, incarnation: int) -> Stream:
        """A later incarnation is there; the stream of the former one."""
        former, self.stream = self.stream, Stream(self._max_hold)
        self.incarnation, self.position = incarnation, 0
        return former

    def tick(self) -> int:
        """For how many ticks, of which this is one, nothing of ours has come back; 0 if nothing should have.

        One that was never heard of is asked, whether anything was sent by it or not.
        """
        if not self._is_awaited():
            return 0
        self._silent_ticks += 1
        return self._silent_ticks if self._unanswered else 0

    @property
    def is_unknown(self) -> bool:
        """Nothing has come from it yet."""
        return self.incarnation == 0

    @property
    def is_silent(self) -> bool:
        """It is asked, and does not answer."""
        return self._is_awaited() and self._silent_ticks > 2 * _TICKS_TO_ASK

    def _is_awaited(self) -> bool:
        return not self.is_member and (self._unanswered or self.is_unknown)

    def must_be_asked(self) -> bool:
        """True if it is silent for so long that what was sent to it, or its answer, may be lost."""
        return self._silent_ticks > _TICKS_TO_ASK


def is_for_relay(datagram: Datagram) -> bool:
    """True if a member wants it passed on."""
    return bool(datagram.flags & TO_RELAY) and datagram.sender != RELAY
