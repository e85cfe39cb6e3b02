"""The lines between members: units and control messages in, datagrams out, and back.

Whatever comes from the network is understood, or counted and dropped by its reason; nothing of it raises anything here.
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Protocol

from ordercast.live.host.busy_polling import LONGEST
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.packing import ALL, CHANNEL, Packer
from ordercast.live.transport.relay import ORIGIN, ORIGIN_SIZE, RELAY_INCARNATION, RELAY_INCARNATION_SIZE, Relay
from ordercast.live.transport.reorder_buffer import ReorderBuffer, Stream
from ordercast.model.runs import Channel
from ordercast.model.units import Unit
from ordercast.wire.checks import is_valid
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import IN_SESSION, Control
from ordercast.wire.datagram import (
    FROM_RELAY,
    HEADER,
    OPENING,
    RELAY,
    TO_ALL,
    TO_RELAY,
    UNKNOWN,
    Datagram,
    Rejection,
    unpack_records,
)
from ordercast.wire.keys import GroupKeys
from ordercast.wire.sealing import Seal

_TICKS_TO_ASK = 3  # of silence, as members are asked: one and a half beats


class Listener(Protocol):
    """Who is told what was heard."""

    def opens(self, member: int, session: int) -> bool:
        """Something of a session came that we are not in: whether we are now."""

    def hears(self, member: int, message: Control) -> None:
        """A control message."""

    def receives(self, member: int, unit: Unit) -> None:
        """A unit of the session that is open."""


class Transport:
    """One member's part of the network."""

    def __init__(
        self, endpoint: Endpoint, addresses: list[Address], me: int, seal: Seal, codec: Codec, *, datagram: int
    ) -> None:
        self._endpoint, self._addresses, self._me, self._seal, self._codec = endpoint, addresses, me, seal, codec
        self._nodes = len(addresses)
        endpoint.knows(addresses)
        self._listener: Listener
        self._own = {me}  # whom we speak as
        self._for_us = (TO_ALL, me + 1)
        self._incarnation = 0
        self._session: int | None = None
        self._counters: dict[int, int] = {}  # by tag
        self._control = Packer(datagram, seal.overhead, self._transmit_control)
        self._units = Packer(datagram, seal.overhead + ORIGIN_SIZE, self._transmit_units)
        self._in_order = False
        self._longest_wait = 0
        self._sorter: ReorderBuffer
        self._streams: list[Stream] = []  # of what members say to us, by member
        self._relay: Relay | None = None  # that of the group, if it is ours
        self._relay_address: Address | None = None
        self._awaits_channel, self._channel_silent = False, 0  # the channel was spoken to; ticks since then
        self._relayed = 0, Stream(0)  # the life of the relay that is heard, 0 if none is, and what it passes on
        self._passed: deque[bytes] = deque()  # what our own relay passed on, for ourselves
        self._passing = self._in_session = False
        self.by_channel = False
        self.hears_strangers: Callable[[bytes], None] | None = None
        """Who answers those that look for a group by multicast."""
        self.dropped: Counter[str] = Counter()
        """Datagrams and records that were not understood, by reason."""

    def start(self, incarnation: int, listener: Listener, drained: Callable[[], None]) -> None:
        """Begins to hear."""
        self._incarnation, self._listener = incarnation, listener
        self._sorter = ReorderBuffer(self._hand_over, self.read_all, drained)
        self._endpoint.start(self._receive, drained)

    def open(self, session: int, channel: Channel, relay: Relay | Address | None, *, longest_wait: int = 0) -> None:
        """From now on there are units: in no order, in each sender's order, or in the one order of a relay.

        `longest_wait`: nanoseconds that what comes out of order waits for what it has overtaken, at most.
        """
        self._session = session
        self._seal.hold(session)
        # On one channel only its relay hears all that a member counts, and needs it in order; beats need none.
        self._in_order = channel is Channel.MANY or isinstance(relay, Relay)
        self._longest_wait = longest_wait
        self._streams = [Stream(longest_wait) for _ in range(self._nodes)]
        self.by_channel = channel is Channel.ONE
        if isinstance(relay, Relay):
            self._relay = relay
            self._own.add(RELAY)
        elif relay is not None:
            self._relay_address = relay
            if relay not in self._addresses:
                self._endpoint.knows([relay])
                self._send_to_relay(b"")  # it tells which life it is

    @property
    def too_large(self) -> int:
        """Records that no datagram can carry."""
        return self._control.too_large + self._units.too_large

    @property
    def datagram(self) -> int:
        """The bytes that a datagram of units should not have more of."""
        return self._units.datagram

    @datagram.setter
    def datagram(self, size: int) -> None:
        self._units.datagram = size

    @property
    def network(self) -> Endpoint:
        """The sockets, which count what goes through them."""
        return self._endpoint

    def rotate(self, keys: GroupKeys) -> None:
        """Seals with other keys from now on."""
        self._seal.rotate(keys)

    def read_all(self) -> None:
        """Hears what has come."""
        self._endpoint.read_all()

    def linger(self) -> bool:
        """Waits for a moment, awake, until something comes; whether it does."""
        before, until = self._endpoint.datagrams_in, time.perf_counter() + LONGEST
        while self._endpoint.datagrams_in == before and time.perf_counter() < until:
            self._endpoint.read_all()
        return self._endpoint.datagrams_in > before

    def close(self) -> None:
        """Nothing is heard or said any more."""
        self._sorter.close()
        self._endpoint.close()

    # --- out ---

    def say(self, message: Control, to: int | None) -> None:
        """Sends a control message, at once."""
        self._control.say(self._codec.encode(message), ALL if to is None else to)
        self._in_session = isinstance(message, IN_SESSION)
        self._control.flush()

    def send(self, unit: Unit, to: int | None) -> None:
        """Sends a unit, when the turn is over or a datagram is full."""
        self._units.say(self._codec.encode(unit), (CHANNEL if self.by_channel else ALL) if to is None else to)

    def flush(self) -> bool:
        """The turn is over. What our own relay passed on is heard now: a machine does one thing after the other.

        True: something was heard, and there may be more to send.
        """
        self._units.flush()
        heard = bool(self._passed) and not self._passing
        if heard:
            self._hear_passed()
        return heard

    def _transmit_control(self, body: bytes, to: int) -> None:
        tag, flags = (self._session or 0, 0) if self._in_session else (self._incarnation, OPENING)
        # Words of an opening name the lives that they are for; who has other members counts other places.
        self._transmit(self._sealed(flags, tag, body, to if self._in_session else ALL), to)

    def _transmit_units(self, body: bytes, to: int) -> None:
        session = self._session
        assert session is not None, "a protocol begins when its session is open"
        if to != CHANNEL:
            self._transmit(self._sealed(0, session, body, to), to)
        elif self._relay is not None:
            self._passed.append(self._relay.pass_on(self._me, session, body))
        else:
            self._awaits_channel = True
            self._send_to_relay(body)

    def watch_channel(self) -> int:
        """For how many ticks, of which this is one, nothing of ours came back from a channel that is no member.

        It is asked meanwhile: what was said to it may be lost, and nobody have anything more to say.
        """
        if not self._awaits_channel or self._relay_address in self._addresses:
            return 0
        self._channel_silent += 1
        if self._channel_silent > _TICKS_TO_ASK:
            self._send_to_relay(b"")
        return self._channel_silent

    def _send_to_relay(self, body: bytes) -> None:
        if self._relay_address is not None and self._session is not None:
            datagram = self._sealed(TO_RELAY, self._session, RELAY_INCARNATION.pack(self._relayed[0]) + body, ALL)
            self._endpoint.send(datagram, self._relay_address)

    def _sealed(self, flags: int, tag: int, body: bytes, to: int) -> bytes:
        counter = self._counters.get(tag, 0)
        self._counters[tag] = counter + 1
        return self._seal.seal(flags, self._me, tag, counter, body, TO_ALL if to == ALL else to + 1)

    def _transmit(self, datagram: bytes, to: int) -> None:
        if to == ALL:
            self._endpoint.send_to_all(datagram)
        else:
            self._endpoint.send(datagram, self._addresses[to])

    # --- in ---

    def _receive(self, datagram: bytes | memoryview) -> None:
        if len(datagram) >= HEADER.size and int.from_bytes(datagram[4:6]) in self._own:
            return  # a multicast brings us our own
        said = self._seal.open(datagram)
        if isinstance(said, Rejection):
            self.dropped[said] += 1
        elif said.flags & FROM_RELAY:
            self._receive_from_channel(said)
        elif said.sender >= self._nodes:
            self._receive_from_stranger(said)
        elif said.flags & OPENING:
            self._understand(said.sender, said.body, in_session=False)
        elif said.tag != self._session and not self._listener.opens(said.sender, said.tag):
            self.dropped["session"] += 1
        elif said.to not in self._for_us:
            self.dropped["redirected"] += 1
        elif not self._in_order:
            self._hand_over(said)
        elif not self._sorter.take(self._streams[said.sender], said):
            self.dropped["late"] += 1

    def _hand_over(self, said: Datagram) -> None:
        """In its order."""
        if said.flags & FROM_RELAY:
            self._understand_passed(said.body)
        elif said.flags & TO_RELAY:
            self._pass_on(said)
        else:
            self._understand(said.sender, said.body, in_session=True)

    def _receive_from_stranger(self, said: Datagram) -> None:
        if said.sender == UNKNOWN and said.flags & OPENING and self.hears_strangers is not None:
            self.hears_strangers(said.body)
        else:
            self.dropped["stranger"] += 1

    def _pass_on(self, said: Datagram) -> None:
        """If we are the relay it goes to everybody, us included."""
        if self._relay is None:
            self.dropped["stranger"] += 1
        elif len(said.body) < RELAY_INCARNATION_SIZE:
            self.dropped[Rejection.TRUNCATED] += 1
        else:
            self._passed.append(self._relay.pass_on(said.sender, said.tag, said.body[RELAY_INCARNATION_SIZE:]))
            self._hear_passed()

    def _hear_passed(self) -> None:
        """In the order in which it was passed on, whatever follows from it."""
        if not self._passing:
            self._passing = True
            try:
                while self._passed:
                    self._understand_passed(self._passed.popleft())
            finally:
                self._passing = False

    def _receive_from_channel(self, said: Datagram) -> None:
        if said.sender != RELAY:
            self.dropped["stranger"] += 1
        elif len(said.body) < ORIGIN_SIZE:
            self.dropped[Rejection.TRUNCATED] += 1
        elif ORIGIN.unpack_from(said.body)[1] != self._session:  # it must not count: its relay's clock may be ahead
            self.dropped["session"] += 1
        elif not self._take_relayed(said):
            self.dropped["late"] += 1

    def _take_relayed(self, said: Datagram) -> bool:
        """Whether it is not below what was heard before; whatever a relay says is above all that former ones said."""
        life, stream = self._relayed
        if said.tag < life:
            return False
        if said.tag > life:
            self._sorter.finish(stream)
            stream = Stream(self._longest_wait)
            self._relayed = said.tag, stream
        return self._sorter.take(stream, said)

    def _understand_passed(self, body: bytes) -> None:
        origin, _ = ORIGIN.unpack_from(body)
        if origin == self._me or origin == RELAY:  # noqa: PLR1714 (the quicker)
            self._awaits_channel, self._channel_silent = False, 0
        if origin < self._nodes:
            self._understand(origin, body[ORIGIN_SIZE:], in_session=True)
        elif origin != RELAY:  # which only tells that it is there
            self.dropped["stranger"] += 1

    def _understand(self, member: int, body: bytes, *, in_session: bool) -> None:
        records = unpack_records(body)
        if isinstance(records, Rejection):
            self.dropped[records] += 1
            return
        for record in records:
            try:
                said = self._codec.decode(record)
            except Malformed:
                self.dropped["malformed"] += 1
                continue
            if not isinstance(said, Unit):
                if isinstance(said, IN_SESSION) == in_session:
                    self._listener.hears(member, said)
                else:
                    self.dropped["session"] += 1
            elif in_session and said.source == member and is_valid(said, self._nodes):
                self._listener.receives(member, said)
            else:
                self.dropped["senseless"] += 1
