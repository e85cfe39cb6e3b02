"""The relay of a group as a process of its own: it may be stopped and restarted while the group continues.

Members and relay must be able to reach each other; they may be started in any order. What is in flight while there is
no relay is lost; the members retransmit it, until they give the relay up.
"""

import time
from collections import Counter, OrderedDict

from ordercast.live.host.parameters import Parameters, longest_wait
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.relay import RELAY_INCARNATION_SIZE, Relay, is_for_relay
from ordercast.live.transport.reorder_buffer import OrderedStreams, Stream
from ordercast.live.transport.sockets import enable_multicast_sending, open_socket
from ordercast.wire.datagram import Datagram, Rejection
from ordercast.wire.keys import GroupKeys
from ordercast.wire.seal import seal_for

MAX_UNAUTHENTICATED_STREAMS = 4096
"""Senders in sessions that a relay without a key remembers: those that it received from last."""


class RelayProcess:
    """Passes on what the members of one group send, from `start` to `close`. Used inside one event loop."""

    def __init__(
        self,
        group: str,
        address: Address,
        members: list[Address],
        parameters: Parameters,
        *,
        keys: GroupKeys | None = None,
        multicast: Address | None = None,
    ) -> None:
        """`parameters`: those of the group, as its members have them."""
        self._members = len(members)
        self._seal = seal_for(group, keys)
        own = open_socket(address)
        if multicast is not None:
            enable_multicast_sending(own, address.host)
        self._endpoint = Endpoint(own, members, multicast=multicast, segment=parameters.mtu)
        self._relay = Relay(self._seal, time.time_ns(), self._endpoint.send_to_all)
        self.max_hold = longest_wait(parameters.config.timing.guard)
        """Nanoseconds that a datagram is held for those that it has overtaken, at most."""
        # By session and sender. With a key none is forgotten: only what members sent to this incarnation of the relay
        # adds to it, so nobody can fill it, and whoever could push one out could have us pass on again what we have
        # forgotten. Without a key anybody can do that anyway, and must not fill our memory, too.
        self.streams: OrderedDict[tuple[int, int], Stream] = OrderedDict()
        self._forgets_streams = keys is None
        self.dropped: Counter[str] = Counter()
        """Datagrams that were dropped, by reason.

        `stale_relay`: they were for an earlier incarnation of the relay; `late`: they were overtaken on their way here.
        """
        self._in_order = OrderedStreams(self._pass_on, self._endpoint.read, self.dropped, lambda _: None)

    @property
    def passed(self) -> int:
        """Datagrams that were passed on."""
        return self._relay.passed

    @property
    def incarnation(self) -> int:
        """The number of this incarnation: when it was started."""
        return self._relay.incarnation

    def rotate_keys(self, keys: GroupKeys) -> None:
        """Encrypts with the first of these keys from now on, and decrypts with any of them."""
        self._seal.rotate(keys)

    def start(self) -> None:
        """Begins to pass on."""
        self._endpoint.start(self.receive, lambda: None, lambda: None)

    def close(self) -> None:
        """Ends; members continue if another one is started soon."""
        self._in_order.close()
        self._endpoint.close()

    def receive(self, data: bytes | memoryview) -> None:
        """A datagram of a member, or of anybody."""
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self.dropped[datagram] += 1
        elif not is_for_relay(datagram) or datagram.sender >= self._members:
            self.dropped["non_member"] += 1
        elif len(datagram.body) < RELAY_INCARNATION_SIZE:
            self.dropped[Rejection.TRUNCATED] += 1
        elif not self._relay.is_named_in(datagram):
            self.dropped["stale_relay"] += 1
            self._relay.announce(datagram.tag)
        else:
            self._in_order.take(self._stream(datagram.tag, datagram.sender), datagram)

    def _stream(self, session: int, sender: int) -> Stream:
        key = session, sender
        stream = self.streams.get(key)
        if stream is None:
            stream = self.streams[key] = Stream(self.max_hold)
            if self._forgets_streams and len(self.streams) > MAX_UNAUTHENTICATED_STREAMS:
                self.streams.popitem(last=False)
        elif self._forgets_streams:
            self.streams.move_to_end(key)
        return stream

    def _pass_on(self, datagram: Datagram) -> None:
        self._relay.take(datagram)
