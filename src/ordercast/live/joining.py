"""How a process becomes a member: addresses, keys, a socket, and then the others."""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Any

import msgspec

from ordercast.live.events import View
from ordercast.live.group import Group
from ordercast.live.host.discovery_host import DiscoveryHost, new_discovery
from ordercast.live.host.member import Member
from ordercast.live.host.recording import NewRecorder, no_recorder, record_detail_of, require_writable
from ordercast.live.session.events import SessionConfig
from ordercast.live.session.handshake import Handshake, Identity
from ordercast.live.session.machine import Session
from ordercast.live.session.parameters import encode_parameters
from ordercast.live.settings import (
    PRIORITISED,
    Agreement,
    Order,
    Wishes,
    agreement,
    protocol_of,
    require_seconds,
    require_whole,
    round_trip_of,
    silence_of,
)
from ordercast.live.transport.addresses import (
    Address,
    address_of,
    members_of,
    multicast_of,
    reachable,
    require_group_name,
    require_member_name,
    require_one_network,
    seen_from,
)
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.relay import Relay
from ordercast.live.transport.sockets import AddressInUseError, enable_multicast_sending, open_multicast, open_socket
from ordercast.live.transport.transport import Transport
from ordercast.live.waiting import for_whom, refusals_in_words, waiting
from ordercast.model.config import SECOND, Rules
from ordercast.model.errors import ConfigError, JoinError
from ordercast.model.runs import Channel, Record
from ordercast.model.services import SELECTIVE
from ordercast.protocols.registry import machine_class
from ordercast.wire.codec import Codec
from ordercast.wire.control import CONTROL, MAX_MEMBERS
from ordercast.wire.keys import GroupKeys, keys_from_environment, keys_from_file
from ordercast.wire.sealing import Seal, seal_for

_FIRST_NUMBERS = 1 << 16
_SHORTEST_OPENING, _LONGEST_OPENING = 0.5, 1e9  # seconds


class Joining:
    """A group that is being joined: await it, or enter it."""

    def __init__(self, options: "Options") -> None:
        self._options = options
        self._group: Group | None = None

    def __await__(self) -> Generator[Any, None, Group]:
        return open_group(self._options).__await__()

    async def __aenter__(self) -> Group:
        self._group = await self
        return self._group

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None
        await self._group.__aexit__(kind, error, trace)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `join` is asked for; see there."""

    group: str
    name: str | None
    members: dict[str, Address]
    """Empty: they are found."""
    bind: Address | None
    """Where we are heard while the others are found."""
    agreed: Agreement
    one_clock: bool
    """All members are on this machine."""
    keys: GroupKeys | None
    multicast: Address | None
    channel: Address | None
    timeout: float
    record: Path | None
    recorded: Record
    on_view: Callable[[View], None] | None
    on_waiting: Callable[[str], None] | None


def join(  # noqa: PLR0913 (its options are its arguments)
    group: str,
    *,
    members: Mapping[str, str] | Iterable[str] | None = None,
    size: int | None = None,
    name: str | None = None,
    bind: str | None = None,
    order: str = "total",
    key: GroupKeys | Path | str | None = None,
    insecure: bool = False,
    multicast: str | None = None,
    channel: str | None = None,
    mtu: int | None = None,
    datagram: int | None = None,
    window: int | None = None,
    round_trip: float | None = None,
    silence: float | None = None,
    resilience: int = 0,
    timeout: float = 60.0,
    record: Path | str | None = None,
    recorded: Record | str = Record.ALL,
    on_view: Callable[[View], None] | None = None,
    on_waiting: Callable[[str], None] | None = None,
) -> Joining:
    """Joins a group, which is open when all its members have joined.

        async with ordercast.join("orders", members=["A", "B", "C"], order="total") as group:
            await group.send(b"hello", to={"B", "C"})
            async for message in group:
                print(message.sender, message.payload)

    `members`: names of members on this machine, or a mapping from names to addresses such as "10.0.0.1:7000"; all
    are given the same. `name`: which of them we are; without it, the first whose address is free on this machine.
    `size`, instead of `members`: how many there are; they find each other at the `multicast` address, each by its
    `name` and `bind`, its own address there, such as "10.0.0.1:0", in which 0 is any port. `order`: partial (each
    sender's order), total (one order), priority (the urgent first), sequenced (one order, given by one member).
    `key`: a file with the group's keys, or the keys; without it, those in ORDERCAST_KEY. Without any key only this
    machine is allowed, unless `insecure`. `multicast`: an address to send to all at once; without it each member is
    sent to by itself. `channel`: the address of an `ordercast channel`, for orders that need one; without it the
    first member is the channel. `mtu`: bytes that fit into a packet of the network; `datagram`: of a datagram,
    which may take several; `window`: packets that may be under way. `round_trip`: seconds that a datagram to
    another member and back takes, if it is not to be measured. `silence`: seconds without a sign of life after which a
    member is taken for dead; 3 without it. `resilience`: how many members besides the sequencer hold a message before
    anybody is given it (sequenced only). `timeout`: seconds that the members may take to come together. `record`: a
    folder to write a trace of this member to, which `ordercast audit` judges together with those of the others;
    `recorded`: all of it, or "deliveries" only, which costs less. `on_view`: is told when a sequenced group goes on
    without a member; `on_waiting`: is told for whom we wait, if the others are not there within two seconds.
    """
    require_group_name(group)
    require_whole(size=size, mtu=mtu, datagram=datagram, window=window, resilience=resilience)
    require_seconds(timeout=timeout, round_trip=round_trip, silence=silence)
    own = _own_address(members, size, name, bind, multicast)
    found = {} if members is None else members_of(group, members)
    if found and name is not None and name not in found:
        raise ConfigError(f"{name!r} is no member; members are: {', '.join(found)}")
    addresses = [own] if own is not None else list(found.values())
    loopback = all(address.is_loopback() for address in addresses)
    keys = keys_for(addresses, key, insecure=insecure)
    relay = address_of(channel) if channel else None
    if relay is not None:
        require_one_network({**(found or {str(name): addresses[0]}), "the channel": relay})
    protocol = protocol_of(order)
    _require_meant(protocol, channel, resilience, timeout)
    trip, quiet = round_trip_of(round_trip), silence_of(silence)
    wishes = Wishes(mtu=mtu, datagram=datagram, window=window, resilience=resilience, round_trip=trip, silence=quiet)
    options = Options(
        group=group,
        name=name,
        members=found,
        bind=own,
        agreed=agreement(protocol, size or len(found), wishes, loopback=loopback),
        one_clock=loopback,
        keys=keys,
        multicast=multicast_of(multicast, addresses[0]) if multicast else None,
        channel=relay,
        timeout=timeout,
        record=Path(record) if record is not None else None,
        recorded=record_detail_of(recorded),
        on_view=on_view,
        on_waiting=on_waiting,
    )
    return Joining(options)


async def open_group(options: Options) -> Group:
    """Binds, and comes back when all members have come together; raises `JoinError` if they do not."""
    protocol = options.agreed.protocol
    if options.record is not None:
        require_writable(options.record)
    seal, codec = seal_for(options.group, options.keys), Codec(protocol, CONTROL)
    finder = None
    if options.bind is None:
        me, own = _bind(options)
        addresses = list(options.members.values())
        interface = addresses.pop(me).host
        endpoint = _endpoint(options, own, interface, addresses)
    else:
        finder, endpoint = _finder(options, seal, codec)
        with waiting(options.on_waiting, finder.awaited):
            found = await finder.find()
    try:
        if finder is not None:
            assert options.bind is not None
            members = {name: seen_from(options.bind, each) for name, each in members_of(options.group, found).items()}
            options = msgspec.structs.replace(options, members=members)
            me = list(options.members).index(str(options.name))
        member, lines, opening = _member(options, me, endpoint, seal, codec, finder)
    except ConfigError:
        endpoint.close()
        raise
    try:
        with waiting(options.on_waiting, lambda: for_whom(opening.silent(), lines.dropped)):
            await asyncio.shield(member.opened)
    except JoinError as error:
        try:
            await asyncio.shield(member.left)  # the others are told, too
        finally:
            member.leave()  # at once, if we may not wait for that
        hint = refusals_in_words(lines.dropped) if opening.silent() else ""
        if hint:
            raise JoinError(f"{error}; {hint}") from None
        raise
    except asyncio.CancelledError:
        member.opened.cancel()  # nobody will ask what came of it
        member.give_up("it does not want to join any more")
        member.leave()
        raise
    selective = protocol in {service.value for service in SELECTIVE}
    return Group(options.group, member, selective=selective, prioritised=protocol in PRIORITISED)


def _member(
    options: Options, me: int, endpoint: Endpoint, seal: Seal, codec: Codec, finder: DiscoveryHost | None
) -> tuple[Member, Transport, Handshake]:
    """Us, looking for the others, and what knows how far that is."""
    agreed, names = options.agreed, tuple(options.members)
    datagram = agreed.sizes(endpoint.receive_buffer).first
    lines = Transport(endpoint, list(options.members.values()), me, seal, codec, max_datagram_size=datagram)
    if finder is not None:
        lines.stranger_received = finder.receive
    incarnation = secrets.randbits(64) or 1
    machine = machine_class(agreed.protocol, Rules.SOUND)
    terms = agreed.terms()
    if machine.needs is Channel.ONE:
        terms["channel"] = names[0] if options.channel is None else "a process of its own"
    session = Session(
        me,
        names,
        Identity(incarnation=incarnation, first_seq=secrets.randbelow(_FIRST_NUMBERS)),
        encode_parameters(options.group, names, terms),
        has_views=machine.has_views,
        config=SessionConfig.for_failure_timeout(agreed.silence, handshake_timeout=int(options.timeout * SECOND)),
    )
    relay = _relay(options, me, seal, endpoint) if machine.needs is Channel.ONE else None
    member = Member(names, me, agreed, lines, session, relay, _record(options, me), group=options.group)
    if options.on_view is not None:
        member.on_view = options.on_view
    member.begin(incarnation)
    return member, lines, session.handshake


def _require_meant(protocol: str, channel: str | None, resilience: int, timeout: float) -> None:
    """What only some orders have use for is not taken for others: it would be waited for in vain."""
    if channel is not None and machine_class(protocol, Rules.SOUND).needs is not Channel.ONE:
        raise ConfigError("only the orders total and priority need a channel; leave it away, or take one of them")
    if resilience and protocol != Order.SEQUENCED.value:
        raise ConfigError("resilience is for the order sequenced: in others every member holds what is delivered")
    if not _SHORTEST_OPENING <= timeout <= _LONGEST_OPENING:
        raise ConfigError(
            f"timeout is the seconds that members have to come together, at least {_SHORTEST_OPENING}, not {timeout:g}"
        )


def _record(options: Options, me: int) -> NewRecorder:
    """How to record a session here."""
    if options.record is None or options.recorded is Record.NONE:
        return no_recorder
    from ordercast.live.host.trace_recorder import row_of, trace_recorders  # noqa: PLC0415 (a third of the time to start)

    row = row_of(tuple(options.members), me, options.agreed, one_clock=options.one_clock)
    return trace_recorders(options.record, options.group, row, deliveries_only=options.recorded is Record.DELIVERIES)


def keys_for(addresses: Iterable[Address], key: GroupKeys | Path | str | None, *, insecure: bool) -> GroupKeys | None:
    """The keys that are given, in a file or by the environment; none are needed on one machine, or if so wished."""
    if key is None:
        keys = keys_from_environment(os.environ)
    else:
        keys = key if isinstance(key, GroupKeys) else keys_from_file(Path(key))
    if keys is None and not insecure and not all(address.is_loopback() for address in addresses):
        raise ConfigError(
            "members on other machines need a key: give all the same key file (`ordercast key` makes one), or say "
            "insecure on a network that only you can reach"
        )
    return keys


def _bind(options: Options) -> tuple[int, socket]:
    """Our place among the members, and a socket there."""
    names = list(options.members)
    if options.name is not None:
        return names.index(options.name), _open(options, options.name)
    taken = []
    for place, name in enumerate(names):
        try:
            return place, _open(options, name)
        except AddressInUseError:
            taken.append(name)
        except ConfigError:  # it is another machine's
            continue
    if not taken:
        raise ConfigError("no member has an address of this machine; write those of its interfaces (members)")
    raise ConfigError(
        f"no place is free on this machine: {', '.join(taken)} are taken by members that are running already, "
        "or by other programs"
    )


def _open(options: Options, name: str) -> socket:
    address = options.members[name]
    try:
        return open_socket(address)
    except AddressInUseError:
        raise AddressInUseError(
            f"{address} cannot be bound: {name} is running already on this machine, or another program has its port"
        ) from None


def _own_address(
    members: Mapping[str, str] | Iterable[str] | None,
    size: int | None,
    name: str | None,
    bind: str | None,
    multicast: str | None,
) -> Address | None:
    """Where we are heard, if the members are to be found; None if they are given."""
    if (members is None) == (size is None):
        raise ConfigError("say either who the members are (members), or how many are to be found (size)")
    if size is None:
        if bind is not None:
            raise ConfigError("bind is for members that are to be found (size); else members has our address")
        return None
    if name is None or bind is None or multicast is None:
        raise ConfigError("members that are to be found need a name, an address of their own (bind), and multicast")
    if not 2 <= size <= MAX_MEMBERS:
        raise ConfigError(f"a group has 2 to {MAX_MEMBERS} members, not {size}")
    require_member_name(name)
    return reachable(address_of(bind, any_port=True))


def _finder(options: Options, seal: Seal, codec: Codec) -> tuple[DiscoveryHost, Endpoint]:
    assert options.bind is not None
    assert options.name is not None
    own = open_socket(options.bind)
    bound = Address(options.bind.host, own.getsockname()[1])
    endpoint = _endpoint(options, own, bound.host, [])
    discovery = new_discovery(options.group, options.name, bound, options.agreed.config.nodes, options.timeout)
    return DiscoveryHost(endpoint, seal, codec, discovery), endpoint


def _endpoint(options: Options, own: socket, interface: str, others: Sequence[Address]) -> Endpoint:
    if options.multicast is None:
        return Endpoint(own, others, segment=options.agreed.mtu)
    enable_multicast_sending(own, interface)
    try:
        heard = open_multicast(options.multicast, interface)
    except ConfigError:
        own.close()
        raise
    return Endpoint(own, others, multicast=options.multicast, heard=heard, segment=options.agreed.mtu)


def _relay(options: Options, me: int, seal: Seal, endpoint: Endpoint) -> Callable[[], Relay] | Address:
    """The channel: a process of its own, or the first member."""
    if options.channel is not None:
        return options.channel
    if me == 0:
        return lambda: Relay(seal, time.time_ns(), endpoint.send_to_all)
    return next(iter(options.members.values()))
