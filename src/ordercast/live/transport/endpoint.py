"""A member's sockets at work: datagrams to one member or to all, and a loop that reads until nothing is left.

Reading is by `add_reader` and `recv_into`, up to many datagrams a turn: asyncio's own datagram transport makes a large
buffer and takes a turn of the loop for each. Where packets of the network are small, long datagrams go as trains.
"""

import asyncio
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from errno import EINVAL, EIO, EOPNOTSUPP
from sys import byteorder

from ordercast.live.transport.addresses import Address
from ordercast.live.transport.fragmentation import Reassembler, cut
from ordercast.live.transport.sockets import SocketAddress, receive_buffer, socket_address, source_address
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

_TURN = 32  # datagrams that are read before others have their turn
_UDP_SEGMENT, _UDP_GRO = 103, 104  # of Linux; Python has no names for them
_MOST_CUT = 64  # segments that the system cuts at once
_CANNOT_CUT = {EINVAL, EIO, EOPNOTSUPP}
_ANCILLARY = socket.CMSG_SPACE(4)

Receive = Callable[[bytes | memoryview], None]


class Endpoint:
    """Where a member is heard, and speaks."""

    def __init__(
        self,
        own: socket.socket,
        others: Sequence[Address],
        *,
        multicast: Address | None = None,
        heard: socket.socket | None = None,
        segment: int = 0,
    ) -> None:
        """`others` are told what is sent to all, unless a multicast address is; `heard` is where that is heard.

        `segment`: the bytes that fit into a packet of the network; 0: datagrams of any length do.
        """
        self._own, self._others, self._multicast = own, tuple(others), multicast
        self._sockets = [own] if heard is None else [own, heard]
        self._buffer = bytearray(1 << 16)
        self._receive: Receive = lambda _: None
        self._drained: Callable[[], None] = lambda: None
        self._segment, self._cuts = segment, segment > 0
        self._train = secrets.randbits(32)  # what a former life at our address began must not be mixed with ours
        self._assembler = Reassembler()
        self.knows(others)
        self.datagrams_in = self.datagrams_out = self.bytes_in = self.bytes_out = 0
        self.not_sent: Counter[str] = Counter()
        """What the system refused to send, by its reason."""
        if segment:
            for place in self._sockets:
                with suppress(OSError):  # then every segment is read by itself
                    place.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)

    def knows(self, addresses: Iterable[Address]) -> None:
        """Members are there: what they send in parts is kept apart from what strangers do."""
        self._assembler.knows(map(source_address, addresses))

    @property
    def receive_buffer(self) -> int:
        """Bytes of datagrams that may wait here to be read, about."""
        return receive_buffer(self._own)

    @property
    def incomplete(self) -> int:
        """Datagrams of which some parts came, and not all."""
        return self._assembler.given_up

    def start(self, receive: Receive, drained: Callable[[], None]) -> None:
        """From now on every datagram is handed over, in a buffer that will be used again, and then the end of them."""
        self._receive, self._drained = receive, drained
        loop = asyncio.get_running_loop()
        for place in self._sockets:
            loop.add_reader(place.fileno(), self._read)

    def close(self) -> None:
        """Nothing is heard any more."""
        loop = asyncio.get_running_loop()
        for place in self._sockets:
            loop.remove_reader(place.fileno())
            place.close()

    # --- in ---

    def _read(self) -> None:
        self.read_all()
        self._drained()

    def read_all(self) -> None:
        """Hands over what has come, up to a turn's worth from each socket."""
        read_one = self._read_coupled if self._segment else self._read_one
        view = memoryview(self._buffer)
        for place in self._sockets:
            for _ in range(_TURN):
                try:
                    read_one(place, view)
                except (BlockingIOError, InterruptedError):
                    break
                except OSError as error:  # what others did to us, such as an unreachable port
                    if place.fileno() < 0:
                        return  # what came was the end, and closed us
                    self.not_sent[error.strerror or type(error).__name__] += 1

    def _read_one(self, place: socket.socket, view: memoryview) -> None:
        size = place.recv_into(view)
        self.datagrams_in += 1
        self.bytes_in += size
        self._receive(view[:size])

    def _read_coupled(self, place: socket.socket, view: memoryview) -> None:
        """Several segments at once, where the system has coupled them: it says how long each is."""
        size, ancillary, _, source = place.recvmsg_into([view], _ANCILLARY)
        self.bytes_in += size
        segment = int.from_bytes(ancillary[0][2][:4], byteorder) if ancillary else size
        if not size or segment <= 0:
            return
        for datagram in self._assembler.take(view[:size], segment, source[:2]):
            self.datagrams_in += 1
            self._receive(datagram)

    # --- out ---

    def send_to_all(self, datagram: bytes) -> None:
        """To every other member."""
        if self._multicast is not None:
            self.send(datagram, self._multicast)
        else:
            for address in self._others:
                self.send(datagram, address)

    def send(self, datagram: bytes, address: Address) -> None:
        """To one address. What cannot be sent is lost, as anything may be, and counted."""
        try:
            if self._segment and len(datagram) > self._segment:
                self._send_train(datagram, address)
            else:
                self._own.sendto(datagram, socket_address(address))
        except OSError as error:
            self.not_sent[error.strerror or type(error).__name__] += 1
            return
        self.datagrams_out += 1
        self.bytes_out += len(datagram)

    def _send_train(self, datagram: bytes, address: Address) -> None:
        self._train += 1
        parts = cut(datagram, self._train, self._segment)
        at_once = 2 * min(_MOST_CUT, MAX_DATAGRAM_SIZE // self._segment)
        for start in range(0, len(parts), at_once):
            self._send_segments(parts[start : start + at_once], socket_address(address))

    def _send_segments(self, parts: list[bytes | memoryview], place: SocketAddress) -> None:
        if self._cuts:
            size = self._segment.to_bytes(2, byteorder)
            try:
                self._own.sendmsg(parts, [(socket.IPPROTO_UDP, _UDP_SEGMENT, size)], 0, place)
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno in _CANNOT_CUT:
                    self._cuts = False  # this system, or this device, does not: we do
            else:
                return
        for heading, piece in zip(parts[::2], parts[1::2], strict=True):
            self._own.sendto(b"".join((heading, piece)), place)
