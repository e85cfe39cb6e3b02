"""Sockets: datagrams to one member or to all, and a loop that reads until nothing is left.

Reading is by `add_reader` and `recv_into`, up to many datagrams a turn: asyncio's own datagram transport makes a large
buffer and takes a turn of the loop for each.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from ordercast.live.addresses import Address
from ordercast.model.errors import ConfigError

LARGEST_DATAGRAM = 65_507
_TURN = 32  # datagrams that are read before others have their turn
_BUFFER = 4 << 20

Receive = Callable[[memoryview], None]


def open_socket(address: Address) -> socket.socket:
    """A socket that is bound to an address, with buffers as large as the system lets us have."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_DGRAM)
    found.setblocking(False)  # noqa: FBT003 (the standard library's way)
    try:
        _enlarge(found)
        found.bind((address.host, address.port))
    except OSError as error:
        found.close()
        raise ConfigError(
            f"{address} cannot be bound: {error.strerror}; name a free address of this machine"
        ) from error
    return found


def open_multicast(group: Address, interface: str) -> socket.socket:
    """A socket that hears what is sent to a multicast address, on the interface that has this address."""
    v6 = ":" in group.host
    found = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
    found.setblocking(False)  # noqa: FBT003 (the standard library's way)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _enlarge(found)
        found.bind((group.host, group.port))
        if v6:
            joined = socket.inet_pton(socket.AF_INET6, group.host) + _interface_number(interface).to_bytes(4, "little")
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joined)
        else:
            joined = socket.inet_aton(group.host) + socket.inet_aton(interface)
            found.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
    except OSError as error:
        found.close()
        raise ConfigError(
            f"the multicast group {group} cannot be joined on {interface}: {error.strerror}; "
            "leave multicast away, and every member is sent to one by one"
        ) from error
    return found


def sends_multicast(sender: socket.socket, interface: str) -> None:
    """Lets a socket send to multicast addresses by the interface that has this address, members on this host too."""
    if sender.family == socket.AF_INET6:
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, _interface_number(interface))
        sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
    else:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)


def _enlarge(found: socket.socket) -> None:
    for plain, forced in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):  # SO_RCVBUFFORCE, SO_SNDBUFFORCE
        found.setsockopt(socket.SOL_SOCKET, plain, _BUFFER)
        with suppress(OSError):  # only for root, and only on Linux
            found.setsockopt(socket.SOL_SOCKET, forced, 2 * _BUFFER)


def _interface_number(address: str) -> int:
    """Of an IPv6 address written with its zone, fe80::1%eth0; 0 is the system's choice."""
    _, _, zone = address.partition("%")
    return socket.if_nametoindex(zone) if zone else 0


class Endpoint:
    """A member's sockets."""

    def __init__(
        self,
        own: socket.socket,
        others: Sequence[Address],
        multicast: Address | None = None,
        heard: socket.socket | None = None,
    ) -> None:
        """`others` are told what is sent to all, unless a multicast address is; `heard` is where that is heard."""
        self._own, self._others, self._multicast = own, tuple(others), multicast
        self._sockets = [own] if heard is None else [own, heard]
        self._buffer = bytearray(1 << 16)
        self._receive: Receive = lambda _: None
        self._drained: Callable[[], None] = lambda: None
        self.datagrams_in = self.datagrams_out = self.bytes_in = self.bytes_out = 0
        self.not_sent: dict[str, int] = {}
        """What the system refused to send, by its reason."""

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

    def _read(self) -> None:
        self.read_all()
        self._drained()

    def read_all(self) -> None:
        """Hands over what has come, up to a turn's worth from each socket."""
        view = memoryview(self._buffer)
        for place in self._sockets:
            receive_into = place.recv_into
            for _ in range(_TURN):
                try:
                    size = receive_into(view)
                except (BlockingIOError, InterruptedError):
                    break
                except OSError as error:  # what others did to us, such as an unreachable port
                    self._count(error)
                    continue
                self.datagrams_in += 1
                self.bytes_in += size
                self._receive(view[:size])

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
            self._own.sendto(datagram, address)
        except OSError as error:
            self._count(error)
            return
        self.datagrams_out += 1
        self.bytes_out += len(datagram)

    def _count(self, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        self.not_sent[reason] = self.not_sent.get(reason, 0) + 1
