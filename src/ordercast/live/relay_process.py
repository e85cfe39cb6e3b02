"""The one channel of a group as a process of its own: it may be stopped and started again while the group goes on.

Members and channel must be reached by each other; nobody has to be started first. What is under way while there is no
channel is lost, and what is lost the members send again, for as long as they are patient.
"""

import time
from collections import Counter

from ordercast.live.host.parameters import LOOPBACK_ROUND_TRIP, NETWORK_ROUND_TRIP, longest_wait
from ordercast.live.settings import NETWORK_MTU
from ordercast.live.transport.addresses import Address
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.relay import RELAY_INCARNATION, RELAY_INCARNATION_SIZE, Relay, is_for_relay
from ordercast.live.transport.reorder_buffer import ReorderBuffer, Stream
from ordercast.live.transport.sockets import enable_multicast_sending, open_socket
from ordercast.wire.datagram import Datagram, Rejection
from ordercast.wire.keys import GroupKeys
from ordercast.wire.sealing import seal_for


class RelayProcess:
    """Passes on what the members of one group say, from `start` to `close`. Used inside one event loop."""

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
        """`mtu`: as the members have it; None is what they take if they are told nothing."""
        self._members = len(members)
        self._seal = seal_for(group, keys)
        own = open_socket(address)
        if multicast is not None:
            enable_multicast_sending(own, address.host)
        near = all(member.is_loopback() for member in (address, *members))
        segment = mtu if mtu is not None else 0 if near else NETWORK_MTU
        self._endpoint = Endpoint(own, members, multicast=multicast, segment=segment)
        self._relay = Relay(self._seal, time.time_ns(), self._endpoint.send_to_all)
        self._longest_wait = longest_wait(LOOPBACK_ROUND_TRIP if near else NETWORK_ROUND_TRIP)
        # By session and sender. None is forgotten: only what was said to this life of the channel adds to it, so nobody
        # can fill it, and who could push one out could have us pass on again what we have forgotten.
        self._streams: dict[tuple[int, int], Stream] = {}
        self._sorter = ReorderBuffer(self._pass_on, self._endpoint.read_all, lambda: None)
        self.late = 0
        """Datagrams that were overtaken on their way here, and dropped."""
        self.dropped: Counter[str] = Counter()
        """What was not for a channel, or not understood, by reason; `former`: it was for another life of it."""

    @property
    def passed(self) -> int:
        """Datagrams that were passed on."""
        return self._relay.passed

    def start(self) -> None:
        """Begins to pass on."""
        self._endpoint.start(self._receive, lambda: None)

    def close(self) -> None:
        """Ends; members go on if another one is started soon."""
        self._sorter.close()
        self._endpoint.close()

    def _receive(self, datagram: bytes | memoryview) -> None:
        said = self._seal.open(datagram)
        if isinstance(said, Rejection):
            self.dropped[said] += 1
        elif not is_for_relay(said) or said.sender >= self._members:
            self.dropped["stranger"] += 1
        elif len(said.body) < RELAY_INCARNATION_SIZE:
            self.dropped[Rejection.TRUNCATED] += 1
        elif RELAY_INCARNATION.unpack_from(said.body)[0] != self._relay.incarnation:
            self.dropped["former"] += 1
            self._relay.tell_life(said.tag)
        else:
            self._take(said)

    def _take(self, said: Datagram) -> None:
        stream = self._streams.get((said.tag, said.sender))
        if stream is None:
            stream = self._streams[said.tag, said.sender] = Stream(self._longest_wait)
        if not self._sorter.take(stream, said):
            self.late += 1

    def _pass_on(self, said: Datagram) -> None:
        self._relay.pass_on(said.sender, said.tag, said.body[RELAY_INCARNATION_SIZE:])
