"""The relay of a group as a process of its own: it may be stopped and restarted while the group continues.

Members and relay must be able to reach each other; they may be started in any order. What is in flight while there is
no relay is lost; the members retransmit it, until they give the relay up.
"""

import time
from collections import Counter

from ordercast.live.host.parameters import LOOPBACK_ROUND_TRIP, NETWORK_ROUND_TRIP, longest_wait
from ordercast.live.settings import NETWORK_MTU
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.relay import RELAY_INCARNATION, RELAY_INCARNATION_SIZE, Relay, is_for_relay
from ordercast.live.transport.reorder_buffer import ReleaseTimer, ReorderBuffer, Stream
from ordercast.live.transport.sockets import enable_multicast_sending, open_socket
from ordercast.wire.datagram import Datagram, Rejection
from ordercast.wire.keys import GroupKeys
from ordercast.wire.seal import seal_for


class RelayProcess:
    """Passes on what the members of one group send, from `start` to `close`. Used inside one event loop."""

    def __init__(
        self,
        group: str,
        address: Address,
        members: list[Address],
        *,
        keys: GroupKeys | None = None,
        multicast: Address | None = None,
        mtu: int | None = None,
    ) -> None:
        """`mtu`: the same as the members have; default: as theirs, by whether all are on this machine."""
        self._members = len(members)
        self._seal = seal_for(group, keys)
        own = open_socket(address)
        if multicast is not None:
            enable_multicast_sending(own, address.host)
        near = all(member.is_loopback() for member in (address, *members))
        segment = mtu if mtu is not None else 0 if near else NETWORK_MTU
        self._endpoint = Endpoint(own, members, multicast=multicast, segment=segment)
        self._relay = Relay(self._seal, time.time_ns(), self._endpoint.send_to_all)
        self.max_hold = longest_wait(LOOPBACK_ROUND_TRIP if near else NETWORK_ROUND_TRIP)
        """Nanoseconds that a datagram is held for those that it has overtaken, at most."""
        # By session and sender. None is forgotten: only what was sent to this incarnation of the relay adds to it, so
        # nobody can fill it, and whoever could push one out could have us pass on again what we have forgotten.
        self._streams: dict[tuple[int, int], Stream] = {}
        self._reorder_buffer = ReorderBuffer()
        self._release_timer = ReleaseTimer(self._reorder_buffer, self._release, self._endpoint.read)
        self.late = 0
        """Datagrams that were overtaken on their way here, and dropped."""
        self.dropped: Counter[str] = Counter()
        """Datagrams that were dropped, by reason; `stale_relay`: they were for an earlier incarnation of the relay."""

    @property
    def passed(self) -> int:
        """Datagrams that were passed on."""
        return self._relay.passed

    @property
    def incarnation(self) -> int:
        """The number of this incarnation: when it was started."""
        return self._relay.incarnation

    def start(self) -> None:
        """Begins to pass on."""
        self._endpoint.start(self._receive, lambda: None, lambda: None)

    def close(self) -> None:
        """Ends; members continue if another one is started soon."""
        self._reorder_buffer.clear()
        self._release_timer.cancel()
        self._endpoint.close()

    def _receive(self, data: bytes | memoryview) -> None:
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self.dropped[datagram] += 1
        elif not is_for_relay(datagram) or datagram.sender >= self._members:
            self.dropped["non_member"] += 1
        elif len(datagram.body) < RELAY_INCARNATION_SIZE:
            self.dropped[Rejection.TRUNCATED] += 1
        elif RELAY_INCARNATION.unpack_from(datagram.body)[0] != self._relay.incarnation:
            self.dropped["stale_relay"] += 1
            self._relay.announce(datagram.tag)
        else:
            self._reorder(datagram)

    def _reorder(self, datagram: Datagram) -> None:
        stream = self._streams.get((datagram.tag, datagram.sender))
        if stream is None:
            stream = self._streams[datagram.tag, datagram.sender] = Stream(self.max_hold)
        ready = self._reorder_buffer.take(stream, datagram, time.monotonic_ns())
        if ready is None:
            self.late += 1
        else:
            self._pass_on(ready)
            self._release_timer.update()

    def _release(self, _: bool) -> None:  # noqa: FBT001 (a callback)
        self._pass_on(self._reorder_buffer.release(time.monotonic_ns()))

    def _pass_on(self, datagrams: list[Datagram]) -> None:
        for datagram in datagrams:
            records = memoryview(datagram.body)[RELAY_INCARNATION_SIZE:]
            self._relay.pass_on(datagram.sender, datagram.tag, records)
