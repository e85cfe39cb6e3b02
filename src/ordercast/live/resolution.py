"""Host names become addresses, when a member joins and again while it waits: pods and containers move.

Only names that this process was given are looked up. Those that peers send are numbers: nobody can make a member ask
for names. A name that has no address yet may get one; until then its place is nowhere, and the others are not held up.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from ipaddress import ip_address

from ordercast.live.join_options import MIN_TIMEOUT, JoinOptions
from ordercast.live.transport.addresses import Address, require_one_network
from ordercast.model.errors import JoinError

LOOK_AGAIN, LOOK_LATER = 1.0, 30.0
"""Seconds between two looks at names: while a member is not in the group, and when it is."""
_NOWHERE_PORT = 9
_log = logging.getLogger("ordercast.join")


def has_names(options: JoinOptions) -> bool:
    """Whether anything that was given is a name of a host."""
    given = (*options.members.values(), *(options.contacts or ()), options.advertise)
    return any(address is not None and address.is_name for address in given)


async def resolved(options: JoinOptions) -> JoinOptions:
    """With addresses for names, which `named` still has. Raises `JoinError` if our own name has none in time.

    Of several contacts one must have an address; a name may stand for many. Members without one are nowhere for now.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + options.timeout
    named = options.named or options
    family = _family(named)
    while True:
        missing = []
        advertise = named.advertise and await _one(named.advertise, family)
        if named.advertise and advertise is None:
            missing.append(named.advertise.host)
        members = await look_up(named.members, family)
        own = named.members.get(str(named.name))
        if own is not None and str(named.name) not in members:
            missing.append(own.host)
        contacts = await _all(named.contacts, family) if named.contacts else named.contacts
        if named.contacts and not contacts:
            missing += [contact.host for contact in named.contacts]
        if not missing:
            require_one_network(members)
            nowhere = {name: _nowhere(members[str(named.name)]) for name in named.members if name not in members}
            return replace(
                options,
                members={name: (members | nowhere)[name] for name in named.members},
                contacts=contacts,
                advertise=advertise,
                named=named,
                timeout=max(until - clock(), MIN_TIMEOUT),
            )
        if clock() >= until:
            raise JoinError(
                f"no address is known for {', '.join(missing)} after {options.timeout:g} s: check the name, and that "
                "this machine can ask for names"
            )
        await asyncio.sleep(min(LOOK_AGAIN, max(until - clock(), 0)))


async def look_up(named: Mapping[str, Address], family: int = socket.AF_UNSPEC) -> dict[str, Address]:
    """The addresses of members, as far as their names have one: always the same of several."""
    found = await asyncio.gather(*(_one(address, family) for address in named.values()))
    return {name: address for name, address in zip(named, found, strict=True) if address is not None}


async def follow(
    options: JoinOptions, is_open: Callable[[], bool], moved: Callable[[dict[str, Address]], None]
) -> None:
    """Looks the names of members up again and again, and tells where they are now. Ends when it is cancelled.

    What `moved` raises is logged, and the next look comes: members that move later must still be found.
    """
    named = options.named
    assert named is not None, "it has names"
    others = {name: address for name, address in named.members.items() if name != named.name}
    while True:
        pause = LOOK_LATER if is_open() else LOOK_AGAIN
        await asyncio.sleep(pause)
        try:
            moved(await look_up(others, _family(named)))
        except Exception:  # whatever it is, it must not end silently
            _log.exception("new addresses of members were not taken; names are looked up again in %g s", pause)


def _family(options: JoinOptions) -> int:
    """That of the numbers that were given; any, if there are only names."""
    given = (options.bind, options.advertise, *options.members.values(), *(options.contacts or ()))
    for address in given:
        if address is not None and not address.is_name:
            return socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.AF_UNSPEC


async def _one(address: Address, family: int) -> Address | None:
    return next(iter(await _addresses(address, family)), None)


async def _all(contacts: tuple[Address, ...], family: int) -> tuple[Address, ...]:
    found = await asyncio.gather(*(_addresses(contact, family) for contact in contacts))
    return tuple(dict.fromkeys(address for each in found for address in each))


async def _addresses(address: Address, family: int) -> list[Address]:
    """IPv4 first, and in an order that does not change from one answer to the next."""
    if not address.is_name:
        return [address]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, address.port, family=family, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        return []
    hosts = sorted(
        {str(place[0]) for *_, place in found}, key=lambda host: (":" in host, ip_address(host.partition("%")[0]))
    )
    return [Address(host, address.port) for host in hosts]


def _nowhere(own: Address) -> Address:
    """Where nobody is."""
    return Address("::" if ":" in own.host else "0.0.0.0", _NOWHERE_PORT)  # noqa: S104 (nothing is bound there)
