"""The members of a group and their addresses: names, hosts and ports."""

import os
import re
import socket
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import blake2b
from ipaddress import ip_address
from itertools import combinations
from secrets import randbelow
from typing import NamedTuple

from ordercast.model.errors import ConfigError
from ordercast.wire.control import MAX_MEMBERS

LOOPBACK = "127.0.0.1"
_FIRST_PORT, _PORTS = 10_000, 22_000  # below the ephemeral ports
_NO_GROUP = "127.255"  # hosts of loopback at which no group is


_NAME = re.compile(
    r"(?=.{1,253}$)(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.?",
    re.ASCII,
)


class Address(NamedTuple):
    """A host, as a numeric IP address, and a port. As it was given the host may be a name."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_name(self) -> bool:
        """True if the host is a name, which has to be looked up."""
        return not _is_host(self.host)

    @property
    def is_unspecified(self) -> bool:
        """True for 0.0.0.0 and ::, which mean any address of the local machine."""
        return not self.is_name and ip_address(self.host.partition("%")[0]).is_unspecified

    def is_loopback(self) -> bool:
        """True if it is an address of the loopback interface."""
        return not self.is_name and ip_address(self.host.partition("%")[0]).is_loopback


def place_of(text: str, *, any_port: bool = False) -> Address:
    """Reads an address as a user gives it: as `address_of`, or orders-0.orders:7000, with the name of a host."""
    host, colon, port = str(text).rpartition(":")
    if not colon or host == "localhost" or not _NAME.fullmatch(host):
        return address_of(text, any_port=any_port)
    if not (port.isdecimal() and (0 if any_port else 1) <= int(port) < 1 << 16):
        raise ConfigError(f"{text!r} is not an address; use a host and a port, such as {host}:7000")
    return Address(host, int(port))


def address_of(text: str, *, any_port: bool = False) -> Address:
    """Reads 10.0.0.1:7000, [fe80::1%eth0]:7000 or localhost:7000. `any_port`: 0 is allowed.

    No other names are taken: addresses that peers send are read here too, and must not cause DNS queries.
    """
    host, colon, port = str(text).rpartition(":")  # str: a value from a file may be a number
    host = host.removeprefix("[").removesuffix("]")
    if host == "localhost":
        host = LOOPBACK
    least = 0 if any_port else 1
    if not (colon and _is_host(host) and port.isdecimal() and least <= int(port) < 1 << 16):
        raise ConfigError(
            f"{text!r} is not an address; use a numeric host and a port, such as 10.0.0.1:7000 or [fd00::1]:7000"
        )
    return Address(host, int(port))


def _is_host(text: str) -> bool:
    """True for a numeric address; only IPv6 has zones, and sockets take no zero bytes in them."""
    number, percent, zone = text.partition("%")
    try:
        version = ip_address(number).version
    except ValueError:
        return False
    return not percent or (version == 6 and zone != "" and zone.isprintable())


def multicast_of(text: str, member: Address | None = None) -> Address:
    """Reads a multicast address, such as 239.7.7.7:7000; `member` must be able to send to it."""
    address = address_of(text)
    if not ip_address(address.host.partition("%")[0]).is_multicast:
        raise ConfigError(f"{text} is not a multicast address; use one such as 239.7.7.7:7000 or [ff15::7]:7000")
    if member is not None and (":" in address.host) != (":" in member.host):
        raise ConfigError(
            f"{member} cannot send to the multicast address {address}: use IPv4 for both, or IPv6 for both"
        )
    return address


def reachable(address: Address) -> Address:
    """The address itself, if others can send to it: 0.0.0.0 and :: mean any address of the local machine."""
    if address.is_unspecified:
        raise ConfigError(
            f"others cannot send to {address}; use an address of an interface of this machine, or give the one that "
            "others send to besides (advertise)"
        )
    return address


def seen_from(own: Address, other: Address) -> Address:
    """Another machine's address as it must be used here: zones are names of local interfaces."""
    zone = own.host.partition("%")[2]
    host, said, _ = other.host.partition("%")
    return Address(f"{host}%{zone}", other.port) if said and zone else other


def require_group_name(group: object) -> None:
    """Raises `ConfigError` unless it is a printable name."""
    if not (isinstance(group, str) and group and group.isprintable()):
        raise ConfigError(f"{group!r} is not a valid group name; use printable characters")


def require_member_name(name: object) -> None:
    """Raises `ConfigError` unless the name can be used in a line of text such as `@B,C hello`."""
    if not (isinstance(name, str) and name and name.isprintable()) or set(name) & set(" ,@=\t"):
        raise ConfigError(f"{name!r} is not a valid member name; use letters, digits, dots and dashes")


def members_of(group: str, members: Mapping[str, str] | Iterable[str], *, shared: bool = False) -> dict[str, Address]:
    """Names and addresses, sorted by name: the same order at all members.

    Names without addresses are members on this machine, at addresses that are derived from group and name. They are
    those of this user's group; `shared`: of that of all users.
    """
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise ConfigError(f"members must be names or a mapping from names to addresses, not {members!r}")
    require_group_name(group)
    named: dict[str, str | None] = {}
    for name in members:
        if name in named:
            raise ConfigError(f"{name!r} occurs twice among the members")
        named[name] = members[name] if isinstance(members, Mapping) else None
    if not 2 <= len(named) <= MAX_MEMBERS:
        raise ConfigError(f"a group has 2 to {MAX_MEMBERS} members, not {len(named)}")
    for name in named:
        require_member_name(name)
    found: dict[str, Address] = {}
    owner = "" if shared else str(os.geteuid())
    for name, text in sorted(named.items()):
        found[name] = reachable(place_of(text)) if text else _local(group, name, owner, found.values())
    require_one_network(found)
    return found


def require_one_network(addresses: Mapping[str, Address]) -> None:
    """Raises `ConfigError` unless each has an address of its own, at which all others can reach it."""
    for (one, here), (other, there) in combinations(addresses.items(), 2):
        both = f"{one} has the address {here}, {other} has {there}"
        if here == there:
            raise ConfigError(f"{one} and {other} have the same address, {here}; give each its own")
        if here.is_name or there.is_name:
            continue
        if here.is_loopback() != there.is_loopback():
            raise ConfigError(
                f"{both}: a loopback address cannot be reached from another machine; give all of them addresses of "
                "interfaces, or all of them loopback addresses"
            )
        if (":" in here.host) != (":" in there.host):
            raise ConfigError(f"{both}: they cannot send to each other; use IPv4 for all, or IPv6 for all")


def _local(group: str, name: str, owner: str, taken: Iterable[Address]) -> Address:
    """Where a name of a group on this machine is.

    Each group of each user has a host of its own, of the 16 million of loopback, so that groups do not take each
    other's ports. A port that is in use at all addresses, or by an earlier name, is passed over.
    """
    number = int.from_bytes(blake2b(f"{group}\0{owner}".encode(), digest_size=8).digest())
    host = f"127.{1 + number // 65_024 % 254}.{number // 254 % 256}.{1 + number % 254}" if _has_hosts() else LOOPBACK
    port = int.from_bytes(blake2b(f"{group}\0{name}".encode(), digest_size=8).digest()) % _PORTS
    while Address(host, _FIRST_PORT + port) in taken or (_has_hosts() and not _is_free(_FIRST_PORT + port)):
        port = (port + 1) % _PORTS
    return Address(host, _FIRST_PORT + port)


@cache
def _has_hosts() -> bool:
    """Whether all of 127.0.0.0/8 is this machine, as on Linux; elsewhere only one host is."""
    return _can_bind(_host_without_group(), 0)


def _is_free(port: int) -> bool:
    """Whether no program has this port at all addresses of this machine, as servers have.

    All members find the same: each tries at hosts of chance, since others may be trying just now.
    """
    return _can_bind(_host_without_group(), port) or _can_bind(_host_without_group(), port)


def _host_without_group() -> str:
    return f"{_NO_GROUP}.{1 + randbelow(254)}.{1 + randbelow(254)}"


def _can_bind(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.bind((host, port))
        except OSError:
            return False
    return True
