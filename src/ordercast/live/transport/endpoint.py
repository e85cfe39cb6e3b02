"""A member's sockets: sends datagrams to one member or to all, and reads until nothing is left.

Reading is by `add_reader` and `recv_into`, up to many datagrams a turn: asyncio's own datagram transport makes a large
buffer and takes a turn of the loop for each. Datagrams that are longer than the network's packets are fragmented.
Where there are links, units travel in those.
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
from ordercast.live.transport.fragmentation import DatagramReassembler, fragment
from ordercast.live.transport.links import Links
from ordercast.live.transport.pieces import MAGIC as PIECE
from ordercast.live.transport.sockets import SocketAddress, receive_buffer, socket_address, source_address
from ordercast.wire.datagram import MAX_DATAGRAM_SIZE

_MAX_READ = 32  # datagrams per turn of the event loop
MAX_POSTPONED = 256
"""How often a timer that is due waits for another turn of reading.

That is enough for what a socket's buffer holds; whoever floods it with more must not stop the timers.
"""
_UDP_SEGMENT, _UDP_GRO = 103, 104  # of Linux; Python has no names for them
_MAX_SEGMENTS = 64  # of one system call
_NO_SEGMENTATION = {EINVAL, EIO, EOPNOTSUPP}
_ANCILLARY = socket.CMSG_SPACE(4)

Receive = Callable[[bytes | memoryview], None]


class Endpoint:
    """Where a member receives and sends. Used inside one event loop."""

    def __init__(
        self,
        own: socket.socket,
        others: Sequence[Address],
        *,
        multicast: Address | None = None,
        heard: socket.socket | None = None,
        segment: int | None = 0,
    ) -> None:
        """`others` receive what is sent to all, unless there is a multicast address; `heard`: its socket.

        `segment`: bytes that fit into a packet of the network; 0: no fragmentation; None: not known until `adapt`.
        """
        self._own, self._others, self._multicast = own, tuple(others), multicast
        self._sockets = [own] if heard is None else [own, heard]
        self._buffer = bytearray(1 << 16)
        self.receive: Receive = lambda _: None
        """Is given each datagram that arrives."""
        self._drained: Callable[[], None] = lambda: None
        self._paused: Callable[[], None] = lambda: None
        self._segment = segment or 0
        self._reads_fragments = segment != 0
        self.system_segments = self._reads_fragments
        """The system cuts datagrams into segments (GSO); False once it has refused to."""
        self.next_number = secrets.randbits(32)
        """Of a fragmented datagram; random at first: fragments of a former process at our address do not fit."""
        self.reassembler = DatagramReassembler()
        self.links: Links | None = None
        """To the members of a view, once there is one; none on one machine, and none with multicast."""
        self.knows(others)
        self.datagrams_in = self.datagrams_out = self.bytes_in = self.bytes_out = 0
        self.not_sent: Counter[str] = Counter()
        """Datagrams that the system refused to send, by reason."""
        self.not_received: Counter[str] = Counter()
        """Errors that the system reported instead of a datagram, such as an unreachable port, by reason."""
        if self._reads_fragments:
            _merge_segments(self._sockets)

    def adapt(self, segment: int, multicast: Address | None, heard: socket.socket | None) -> None:
        """What was not known at first: see the arguments of the same names."""
        self._segment, self._multicast = segment, multicast
        self._reads_fragments = self.system_segments = segment > 0
        if heard is not None:
            self._sockets.append(heard)
        _merge_segments(self._sockets, merge=self._reads_fragments)

    def reach(self, others: Sequence[Address]) -> None:
        """From now on these receive what is sent to all, unless there is a multicast address."""
        self._others = tuple(others)
        self.knows(others)

    def knows(self, addresses: Iterable[Address]) -> None:
        """Members have these addresses: their fragments are kept apart from those of strangers."""
        self.reassembler.knows(map(source_address, addresses))

    @property
    def packet_size(self) -> int:
        """Bytes of a packet in which pieces of a link travel; 0: there are no links."""
        return 0 if self.has_multicast else self._segment

    @property
    def has_multicast(self) -> bool:
        """What is sent to all is one datagram."""
        return self._multicast is not None

    @property
    def receive_buffer(self) -> int:
        """Bytes of datagrams that may wait to be read, about."""
        return receive_buffer(self._own)

    @property
    def incomplete(self) -> int:
        """Datagrams of which some fragments arrived, but not all."""
        return self.reassembler.given_up

    def start(self, receive: Receive, drained: Callable[[], None], paused: Callable[[], None]) -> None:
        """Hands over every datagram from now on, in a buffer that is reused.

        After the last one `drained` is called; `paused` instead, if more wait than are read in one turn.
        """
        self.receive, self._drained, self._paused = receive, drained, paused
        loop = asyncio.get_running_loop()  # a second call replaces the first
        for place in self._sockets:
            loop.add_reader(place.fileno(), self._read)

    def close(self) -> None:
        """Receives nothing any more; called again it does nothing."""
        if self.links is not None:
            self.links.close()
        loop = asyncio.get_running_loop()
        for place in self._sockets:
            if place.fileno() >= 0:
                loop.remove_reader(place.fileno())
                place.close()

    # --- in ---

    def _read(self) -> None:
        if self.read():
            self._drained()
        else:
            self._paused()

    def read(self) -> bool:
        """Hands over what has arrived, up to a limit for each socket; True if nothing is left."""
        drained = True
        read_one = self._read_merged if self._reads_fragments else self._read_one
        view = memoryview(self._buffer)
        for place in self._sockets:
            for _ in range(_MAX_READ):
                try:
                    read_one(place, view)
                except (BlockingIOError, InterruptedError):
                    break
                except OSError as error:  # such as an unreachable port of somebody we sent to
                    if place.fileno() < 0:
                        return True  # what arrived was the end, and closed us
                    self.not_received[error.strerror or type(error).__name__] += 1
            else:
                drained = drained and _is_empty(place)
        if self.links is not None:
            self.links.after_reading()
        return drained

    def _read_one(self, place: socket.socket, view: memoryview) -> None:
        size = place.recv_into(view)
        self.datagrams_in += 1
        self.bytes_in += size
        self.receive(view[:size])

    def _read_merged(self, place: socket.socket, view: memoryview) -> None:
        """Several segments at once, where the system has merged them (GRO): it tells their size."""
        size, ancillary, _, source = place.recvmsg_into([view], _ANCILLARY)
        self.bytes_in += size
        segment = int.from_bytes(ancillary[0][2][:4], byteorder) if ancillary else size
        if not size or segment <= 0:
            return
        if self._buffer[0] == PIECE:
            if self.links is not None:
                for each in self.links.take(view[:size], segment, source[:2]):
                    self.datagrams_in += 1
                    self.receive(each)
            return
        if self.links is not None:
            self.links.heard_from(source[:2])
        for datagram in self.reassembler.take(view[:size], segment, source[:2]):
            self.datagrams_in += 1
            self.receive(datagram)

    # --- out ---

    def send_to_all(self, datagram: bytes) -> None:
        """Sends to every other member."""
        if self._multicast is not None:
            self.send(datagram, self._multicast)
        else:
            for address in self._others:
                self.send(datagram, address)

    def send(self, datagram: bytes, address: Address) -> None:
        """Sends to one address. What cannot be sent is lost, as anything may be, and counted."""
        try:
            if self._segment and len(datagram) > self._segment:
                self._send_fragments(datagram, address)
            else:
                self._own.sendto(datagram, socket_address(address))
        except OSError as error:
            self.not_sent[error.strerror or type(error).__name__] += 1
            return
        self.datagrams_out += 1
        self.bytes_out += len(datagram)

    def send_by_link(self, datagram: bytes, place: int) -> None:
        """Sends by the link to one member."""
        assert self.links is not None, "a member that asks for it has entered a view"
        self.datagrams_out += 1
        self.links.send(datagram, place)

    def send_to_all_by_links(self, datagram: bytes) -> None:
        """Sends to every other member, by its link."""
        assert self.links is not None, "a member that asks for it has entered a view"
        self.datagrams_out += len(self._others)
        self.links.send_to_all(datagram)

    def write_pieces(self, parts: list[bytes | memoryview], place: SocketAddress) -> None:
        """Sends pieces of a link. What the system refuses is lost, and repeated as such."""
        try:
            self._send_segments(parts, place)
        except OSError as error:
            self.not_sent[error.strerror or type(error).__name__] += 1
            return
        self.bytes_out += sum(map(len, parts))

    def _send_fragments(self, datagram: bytes, address: Address) -> None:
        self.next_number += 1
        parts = fragment(datagram, self.next_number, self._segment)
        at_once = 2 * min(_MAX_SEGMENTS, MAX_DATAGRAM_SIZE // self._segment)
        for start in range(0, len(parts), at_once):
            self._send_segments(parts[start : start + at_once], socket_address(address))

    def _send_segments(self, parts: list[bytes | memoryview], place: SocketAddress) -> None:
        if self.system_segments:
            size = self._segment.to_bytes(2, byteorder)
            try:
                self._own.sendmsg(parts, [(socket.IPPROTO_UDP, _UDP_SEGMENT, size)], 0, place)
            except BlockingIOError:
                raise
            except OSError as error:
                if error.errno in _NO_SEGMENTATION:
                    self.system_segments = False  # this system, or this device, cannot: we do it
            else:
                return
        for heading, piece in zip(parts[::2], parts[1::2], strict=True):
            self._own.sendto(b"".join((heading, piece)), place)


def _merge_segments(sockets: Sequence[socket.socket], *, merge: bool = True) -> None:
    """The system merges segments of one datagram, where it can."""
    for place in sockets:
        with suppress(OSError):  # then each segment is read alone
            place.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, int(merge))


def _is_empty(place: socket.socket) -> bool:
    """True if no datagram waits to be read: the event loop then says nothing until the next one arrives."""
    try:
        place.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:  # it is reported when it is read
        return place.fileno() < 0
    return False
