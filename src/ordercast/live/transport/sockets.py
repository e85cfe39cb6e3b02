"""Opening sockets: bound, with large buffers, with or without multicast."""

import socket
import sys
from contextlib import suppress
from errno import EADDRINUSE
from functools import lru_cache
from pathlib import Path

from ordercast.live.transport.addresses import Address
from ordercast.model.errors import ConfigError


class AddressInUseError(ConfigError):
    """Another socket on this machine is bound to the address."""


BUFFER = 4 << 20
"""Bytes of each buffer of a socket that we ask the system for."""
REPORTED_PER_BYTE = 2 if sys.platform == "linux" else 1
"""Linux counts its own overhead, and reports twice what was asked for."""


SocketAddress = tuple[str, int] | tuple[str, int, int, int]
"""An address as sockets take and give it."""


@lru_cache(maxsize=1024)
def socket_address(address: Address) -> SocketAddress:
    """An address as sockets take it: they ignore the zone of fe80::1%eth0 unless it is a number beside the host."""
    host, _, zone = address.host.partition("%")
    return (host, address.port, 0, socket.if_nametoindex(zone)) if zone else (host, address.port)


def source_address(address: Address) -> tuple[str, int]:
    """Host and port as sockets report them for what arrives from there: a host has many spellings."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.inet_ntop(family, socket.inet_pton(family, address.host.partition("%")[0])), address.port


def open_socket(address: Address) -> socket.socket:
    """A socket that is bound to an address, with buffers as large as the system lets us have."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        found = socket.socket(family, socket.SOCK_DGRAM)
    except OSError as error:
        raise ConfigError(f"cannot bind {address}: this system does not support {family.name}") from error
    found.setblocking(False)  # noqa: FBT003 (the standard library's way)
    try:
        _enlarge(found)
        found.bind(socket_address(address))
    except OSError as error:
        found.close()
        if error.errno == EADDRINUSE:
            raise AddressInUseError(f"cannot bind {address}: the address is in use by another program") from error
        raise ConfigError(
            f"cannot bind {address}: {error.strerror or error}; use an address of this machine"
        ) from error
    return found


def open_multicast(group: Address, interface: str) -> socket.socket:
    """A socket that receives what is sent to a multicast address, on the interface that has this address."""
    v6 = ":" in group.host
    found = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
    found.setblocking(False)  # noqa: FBT003 (the standard library's way)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _enlarge(found)
        found.bind((group.host, group.port))
        if v6:
            joined = socket.inet_pton(socket.AF_INET6, group.host) + _interface_number(interface).to_bytes(
                4, sys.byteorder
            )
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, joined)
        else:
            joined = socket.inet_aton(group.host) + socket.inet_aton(interface)
            found.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
    except OSError as error:
        found.close()
        raise ConfigError(
            f"cannot join the multicast group {group} on {interface}: {error.strerror or error}; "
            "omit multicast to use unicast"
        ) from error
    return found


def enable_multicast_sending(sender: socket.socket, interface: str) -> None:
    """Lets a socket send to multicast addresses by the interface with this address, also to members on this host."""
    try:
        if sender.family == socket.AF_INET6:
            sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, _interface_number(interface))
            sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
        else:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    except OSError as error:
        sender.close()
        raise ConfigError(
            f"{interface} cannot send to multicast addresses: {error.strerror}; use an address of this machine"
        ) from error


def receive_buffer(found: socket.socket) -> int:
    """Bytes of datagrams that may wait to be read, about."""
    return found.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // REPORTED_PER_BYTE


def _enlarge(found: socket.socket) -> None:
    for plain, forced in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):  # SO_RCVBUFFORCE, SO_SNDBUFFORCE
        found.setsockopt(socket.SOL_SOCKET, plain, BUFFER)
        with suppress(OSError):  # only for root, and only on Linux
            found.setsockopt(socket.SOL_SOCKET, forced, 2 * BUFFER)


def _interface_number(address: str) -> int:
    """The number of the interface with an IPv6 address: by its zone, fe80::1%eth0, or as Linux lists them.

    0: the system chooses.
    """
    host, _, zone = address.partition("%")
    if zone:
        return socket.if_nametoindex(zone)
    wanted = socket.inet_pton(socket.AF_INET6, host).hex()
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            found, number, *_ = line.split()
            if found == wanted:
                return int(number, 16)
    return 0
