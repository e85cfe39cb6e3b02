"""Who the members of a group are, and where: names, hosts and ports."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from ipaddress import ip_address
from itertools import combinations
from typing import NamedTuple

from ordercast.model.errors import ConfigError
from ordercast.wire.control import MAX_MEMBERS

LOOPBACK = "127.0.0.1"
_FIRST_PORT, _PORTS = 10_000, 22_000  # below those that systems hand out by themselves


class Address(NamedTuple):
    """A host, by its number, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        """Whether only this machine can be meant."""
        return ip_address(self.host.partition("%")[0]).is_loopback


def address_of(text: str, *, any_port: bool = False) -> Address:
    """Reads 10.0.0.1:7000, [fe80::1%eth0]:7000 or localhost:7000. `any_port`: 0 is a port that the system chooses.

    No other names are looked up: what members say of themselves is read here too, and must not make us ask strangers.
    """
    host, colon, port = str(text).rpartition(":")  # whatever it is: who reads a file may hand us a number
    host = host.removeprefix("[").removesuffix("]")
    if host == "localhost":
        host = LOOPBACK
    least = 0 if any_port else 1
    if not (colon and _is_host(host) and port.isdecimal() and least <= int(port) < 1 << 16):
        raise ConfigError(
            f"{text!r} is not an address; write a host's number and a port, such as 10.0.0.1:7000 or [fd00::1]:7000"
        )
    return Address(host, int(port))


def _is_host(text: str) -> bool:
    """A number; only IPv6 has zones, and sockets take no names of interfaces that have zero bytes in them."""
    number, percent, zone = text.partition("%")
    try:
        version = ip_address(number).version
    except ValueError:
        return False
    return not percent or (version == 6 and zone != "" and zone.isprintable())


def multicast_of(text: str, member: Address | None = None) -> Address:
    """Reads an address that stands for all who listen there, such as 239.7.7.7:7000; `member` is to send to it."""
    address = address_of(text)
    if not ip_address(address.host.partition("%")[0]).is_multicast:
        raise ConfigError(f"{text} is no multicast address; 239.7.7.7:7000 and [ff15::7]:7000 are")
    if member is not None and (":" in address.host) != (":" in member.host):
        raise ConfigError(f"{member} cannot send to {address}, the multicast address: give both IPv4, or IPv6")
    return address


def reachable(address: Address) -> Address:
    """The same, if others can send to it: 0.0.0.0 and :: mean any address of whoever reads them."""
    if ip_address(address.host.partition("%")[0]).is_unspecified:
        raise ConfigError(f"{address} is no address that others can send to; name one of this machine")
    return address


def seen_from(own: Address, other: Address) -> Address:
    """An address as another machine says it, for us: what a link is called there is another matter than here."""
    zone = own.host.partition("%")[2]
    host, said, _ = other.host.partition("%")
    return Address(f"{host}%{zone}", other.port) if said and zone else other


def require_group_name(group: object) -> None:
    """A name that can be hashed, shown and said to others."""
    if not (isinstance(group, str) and group and group.isprintable()):
        raise ConfigError(f"{group!r} is no name for a group: printable letters are")


def require_member_name(name: object) -> None:
    """A name that can stand in a line of text, such as `@B,C hello`."""
    if not (isinstance(name, str) and name and name.isprintable()) or set(name) & set(" ,@=\t"):
        raise ConfigError(f"{name!r} is no name for a member: letters, digits, dots and dashes are")


def members_of(group: str, members: Mapping[str, str] | Iterable[str]) -> dict[str, Address]:
    """Names and addresses, in the order of the names, which all members have alike.

    Names alone are members on this machine: then every name stands for a port that anybody can work out.
    """
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise ConfigError(f"members must be names or a mapping from names to addresses, not {members!r}")
    require_group_name(group)
    named: dict[str, str | None] = {}
    for name in members:
        if name in named:
            raise ConfigError(f"{name!r} is named twice among the members")
        named[name] = members[name] if isinstance(members, Mapping) else None
    if not 2 <= len(named) <= MAX_MEMBERS:
        raise ConfigError(f"a group has 2 to {MAX_MEMBERS} members, not {len(named)}")
    for name in named:
        require_member_name(name)
    found: dict[str, Address] = {}
    for name, text in sorted(named.items()):
        found[name] = reachable(address_of(text)) if text else _local(group, name, found.values())
    require_one_network(found)
    return found


def require_one_network(addresses: Mapping[str, Address]) -> None:
    """Each with an address of its own, at which all others can reach it."""
    for (one, here), (other, there) in combinations(addresses.items(), 2):
        told = f"{one} has the address {here}, {other} has {there}"
        if here == there:
            raise ConfigError(f"{one} and {other} have the same address, {here}; give each its own")
        if here.is_loopback() != there.is_loopback():
            raise ConfigError(
                f"{told}: a loopback address is no way to another machine; give all of them addresses of interfaces, "
                "or all of them loopback addresses"
            )
        if (":" in here.host) != (":" in there.host):
            raise ConfigError(f"{told}, and none of them can send to the other: give all of them IPv4, or IPv6")


def _local(group: str, name: str, taken: Iterable[Address]) -> Address:
    """A port of this machine for a name; if two names meet, the later one takes the next."""
    port = int.from_bytes(blake2b(f"{group}\0{name}".encode(), digest_size=8).digest()) % _PORTS
    while Address(LOOPBACK, _FIRST_PORT + port) in taken:
        port = (port + 1) % _PORTS
    return Address(LOOPBACK, _FIRST_PORT + port)
