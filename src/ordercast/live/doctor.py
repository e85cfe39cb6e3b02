"""Checks whether this machine is ready for a live group: each check tries what a member will do, and says what helps.

What one machine cannot know is not claimed: whether others receive what it sends, and how far their clocks differ.
Members need no common clock; only the times in their recordings depend on it.
"""

import select
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from ordercast.live.settings import NETWORK_MTU
from ordercast.live.transport.addresses import LOOPBACK, Address
from ordercast.live.transport.sockets import (
    BUFFER,
    REPORTED_PER_BYTE,
    enable_multicast_sending,
    open_multicast,
    open_socket,
    socket_address,
)
from ordercast.model.compiled import is_compiled
from ordercast.model.errors import ConfigError

_HEADERS = 48  # of IPv6 and UDP
_IP_MTU, _IPV6_MTU = 14, 24  # of Linux; Python has no names for them
_INTERFACES = Path("/sys/class/net")
_UP, _MULTICAST = 0x1, 0x1000
_PATIENCE = 1.0
TRIED_MULTICAST, TRIED_MULTICAST_OF_IPV6 = Address("239.255.77.77", 20_777), Address("ff15::4d4d", 20_777)


class Health(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    """A group works, but more slowly than it could, or not everywhere."""
    FAIL = "fail"
    """Something that was asked for does not work."""


class Check(msgspec.Struct, frozen=True):
    """One check and its result."""

    name: str
    health: Health
    found: str
    fix: str = ""
    """What to do: a command, or a step."""


def examine(members: Mapping[str, Address], multicast: Address | None) -> Iterator[Check]:
    """All checks, one after the other; also of these members, and of this multicast address."""
    yield from _software()
    yield _clock()
    yield from _buffers()
    yield from _interfaces()
    for name, address in members.items():
        yield _member(name, address)
    own = next((address.host for address in members.values() if _is_here(address)), None)
    if multicast is None:
        tried = TRIED_MULTICAST_OF_IPV6 if own is not None and ":" in own else TRIED_MULTICAST
        yield _multicast(tried, own or LOOPBACK, Health.WARN)
    else:
        yield _multicast(multicast, own or _default_host(multicast), Health.FAIL)


def _software() -> Iterator[Check]:
    yield Check("python", Health.OK, sys.version.split()[0])
    yield Check("compiled build", Health.OK, "yes" if is_compiled() else "no: the protocols run from their sources")
    needed = {
        "cryptography": "for members on other machines",
        "uvloop": "for speed",
        "prometheus-client": "for metrics",
    }
    for package, why in needed.items():
        try:
            yield Check(package, Health.OK, version(package))
        except PackageNotFoundError:
            yield Check(package, Health.WARN, f"not installed; needed {why}", "pip install 'ordercast[live]'")


def _clock() -> Check:
    resolution = time.get_clock_info("monotonic").resolution
    begun = time.monotonic()
    for _ in range(10):
        time.sleep(0.001)
    slept = (time.monotonic() - begun) / 10
    found = f"resolution {resolution * 1e9:,.0f} ns; a sleep of 1 ms takes {slept * 1e3:.1f} ms"
    if resolution > 1e-3 or slept > 0.02:
        return Check("clock", Health.WARN, found, "timers fire late: reduce the load of this machine")
    return Check("clock", Health.OK, f"{found}; not compared with other machines")


def _buffers() -> Iterator[Check]:
    with open_socket(Address(LOOPBACK, 0)) as tried:
        for name, option, setting in (
            ("receive buffer", socket.SO_RCVBUF, "net.core.rmem_max"),
            ("send buffer", socket.SO_SNDBUF, "net.core.wmem_max"),
        ):
            size = tried.getsockopt(socket.SOL_SOCKET, option) // REPORTED_PER_BYTE
            found = f"{size:,} bytes, recommended: {BUFFER:,}"
            fix = "" if size >= BUFFER else f"sysctl -w {setting}={BUFFER}"
            yield Check(name, Health.WARN if fix else Health.OK, found, fix)


def _interfaces() -> Iterator[Check]:
    """Those of Linux, which lists them in files; elsewhere none."""
    for place in sorted(_INTERFACES.glob("*")):
        try:
            flags = int((place / "flags").read_text(), 16)
            mtu = int((place / "mtu").read_text())
        except (OSError, ValueError):
            continue
        if flags & _UP:
            words = [f"MTU {mtu:,}", "multicast" if flags & _MULTICAST else "no multicast"]
            short = mtu < NETWORK_MTU + _HEADERS
            fix = f"set the mtu of all members to {mtu - _HEADERS}, or IP fragments packets" if short else ""
            yield Check(f"interface {place.name}", Health.WARN if short else Health.OK, ", ".join(words), fix)


def _member(name: str, address: Address) -> Check:
    title = f"member {name}"
    if _is_here(address):
        try:
            open_socket(address).close()
        except ConfigError as error:
            return Check(title, Health.WARN, f"{address} is in use: {error}", "nothing, if this member is running")
        return Check(title, Health.OK, f"{address} is on this machine, and free")
    v6 = ":" in address.host
    try:
        with socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM) as tried:
            tried.connect(socket_address(address))
            here = tried.getsockname()[0]
            mtu = tried.getsockopt(socket.IPPROTO_IPV6 if v6 else socket.IPPROTO_IP, _IPV6_MTU if v6 else _IP_MTU)
    except OSError as error:
        return Check(title, Health.FAIL, f"no route to {address}: {error.strerror}", "check routes and addresses")
    found = f"route to {address} from {here}, MTU {mtu:,}; whether it answers was not checked"
    if mtu < NETWORK_MTU + _HEADERS:
        return Check(title, Health.WARN, found, f"set the mtu of all members to {mtu - _HEADERS}")
    return Check(title, Health.OK, found)


def _is_here(address: Address) -> bool:
    """Whether an address belongs to this machine: then a socket can be bound to it."""
    try:
        open_socket(Address(address.host, 0)).close()
    except (ConfigError, OSError):
        return False
    return True


def _default_host(group: Address) -> str:
    """The address of this machine from which the system would send to this multicast group."""
    with socket.socket(socket.AF_INET6 if ":" in group.host else socket.AF_INET, socket.SOCK_DGRAM) as tried:
        try:
            tried.connect((group.host, group.port))
            return str(tried.getsockname()[0])
        except OSError:
            return "::1" if ":" in group.host else LOOPBACK


def _multicast(group: Address, interface: str, if_not: Health) -> Check:
    """Sends one datagram to the multicast group and waits to receive it."""
    title = "multicast"
    fix = "omit multicast to use unicast"
    sent = b"ordercast doctor %d" % time.monotonic_ns()
    try:
        with open_multicast(group, interface) as received, open_socket(Address(interface, 0)) as sender:
            enable_multicast_sending(sender, interface)
            sender.sendto(sent, group)
            end = time.monotonic() + _PATIENCE
            while (left := end - time.monotonic()) > 0 and select.select([received], [], [], left)[0]:
                if received.recv(1 << 16) == sent:
                    found = f"{group} on {interface} is received on this machine"
                    return Check(title, Health.OK, f"{found}; other machines were not checked")
    except ConfigError as error:
        return Check(title, if_not, str(error), fix)
    except OSError as error:
        return Check(title, if_not, f"cannot send to {group} on {interface}: {error.strerror}", fix)
    return Check(title, if_not, f"{group} on {interface} is not received on this machine", fix)
