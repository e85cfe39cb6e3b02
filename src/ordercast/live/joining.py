"""How a process becomes a member: addresses, keys, a socket, and then the others."""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from ordercast.live.addresses import Address, address_of, members_of
from ordercast.live.channel import Relay
from ordercast.live.endpoint import Endpoint
from ordercast.live.group import Group
from ordercast.live.lines import Lines
from ordercast.live.member import Member
from ordercast.live.network import open_multicast, open_socket, sends_multicast
from ordercast.live.opening import Beginning
from ordercast.live.recording import NewRecord, no_record
from ordercast.live.session import Session
from ordercast.live.session_events import SessionConfig
from ordercast.live.settings import Agreement, Wishes, agreement, protocol_of
from ordercast.live.terms import terms_of
from ordercast.model.config import SECOND, Rules
from ordercast.model.errors import ConfigError, JoinError
from ordercast.model.machine import View
from ordercast.model.runs import Channel, Record
from ordercast.model.services import SELECTIVE
from ordercast.protocols import machine_class
from ordercast.wire.codec import Codec
from ordercast.wire.control import CONTROL
from ordercast.wire.keys import GroupKeys, keys_from_environment, keys_from_file
from ordercast.wire.sealing import Seal, seal_for

_FIRST_NUMBERS = 1 << 16


class Joining:
    """A group that is being joined: await it, or enter it."""

    def __init__(self, open_group: Callable[[], "asyncio.Future[Group]"]) -> None:
        self._open = open_group
        self._group: Group | None = None

    def __await__(self) -> Generator[Any, None, Group]:
        return self._open().__await__()

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


def join(  # noqa: PLR0913 (its options are its arguments)
    group: str,
    *,
    members: Mapping[str, str] | Iterable[str],
    name: str | None = None,
    order: str = "total",
    key: GroupKeys | Path | str | None = None,
    insecure: bool = False,
    multicast: str | None = None,
    channel: str | None = None,
    mtu: int | None = None,
    datagram: int | None = None,
    window: int | None = None,
    resilience: int = 0,
    timeout: float = 60.0,
    record: Path | str | None = None,
    recorded: Record | str = Record.ALL,
    on_view: Callable[[View], None] | None = None,
) -> Joining:
    """Joins a group, which is open when all its members have joined.

        async with ordercast.join("orders", members=["A", "B", "C"], order="total") as group:
            await group.send(b"hello", to={"B", "C"})
            async for message in group:
                print(message.sender, message.payload)

    `members`: names of members on this machine, or a mapping from names to addresses such as "10.0.0.1:7000"; all are
    given the same. `name`: which of them we are; without it, the first whose address is free on this machine.
    `order`: partial (each sender's order), total (one order), priority (the urgent first), sequenced (one order, given
    by one member). `key`: a file with the group's keys, or the keys; without it, those in ORDERCAST_KEY. Without any
    key only this machine is allowed, unless `insecure`. `multicast`: an address to send to all at once; without it each
    member is sent to by itself. `channel`: the address of an `ordercast channel`, for orders that need one; without it
    the first member is the channel. `mtu`: bytes that fit into a packet of the network; `datagram`: of a datagram,
    which may take several; `window`: packets that may be under way. `resilience`: how many members besides the
    sequencer hold a message before anybody is given it (sequenced only). `timeout`: seconds that the members may take
    to come together. `record`: a folder to write a trace of this member to, which `ordercast audit` judges together
    with those of the others; `recorded`: all of it, or "deliveries" only, which costs less. `on_view`: is told when a
    sequenced group goes on without a member.
    """
    found = members_of(group, members)
    loopback = all(address.is_loopback() for address in found.values())
    keys = keys_for(found.values(), key, insecure=insecure)
    if name is not None and name not in found:
        raise ConfigError(f"{name!r} is no member; members are: {', '.join(found)}")
    protocol = protocol_of(order)
    wishes = Wishes(mtu=mtu, datagram=datagram, window=window, resilience=resilience)
    options = Options(
        group=group,
        name=name,
        members=found,
        agreed=agreement(protocol, len(found), wishes, loopback=loopback),
        one_clock=loopback,
        keys=keys,
        multicast=address_of(multicast) if multicast else None,
        channel=address_of(channel) if channel else None,
        timeout=timeout,
        record=Path(record) if record is not None else None,
        recorded=_recorded(recorded),
        on_view=on_view,
    )
    return Joining(lambda: asyncio.ensure_future(open_group(options)))


async def open_group(options: Options) -> Group:
    """Binds, and comes back when all members have come together; raises `JoinError` if they do not."""
    names, addresses = tuple(options.members), list(options.members.values())
    me, own = _bind(options)
    seal = seal_for(options.group, options.keys)
    endpoint = _endpoint(options, me, own)
    agreed, protocol = options.agreed, options.agreed.protocol
    lines = Lines(endpoint, addresses, me, seal, Codec(protocol, CONTROL), datagram=agreed.datagram)
    incarnation = secrets.randbits(64) or 1
    machine = machine_class(protocol, Rules.SOUND)
    session = Session(
        me,
        names,
        Beginning(incarnation=incarnation, first_seq=secrets.randbelow(_FIRST_NUMBERS), buffers=agreed.config.quota),
        terms_of(options.group, names, agreed.parameters()),
        has_views=machine.has_views,
        config=SessionConfig(opening=int(options.timeout * SECOND), beat=agreed.beat, silence=agreed.silence),
    )
    relay = _relay(options, me, seal, endpoint) if machine.needs is Channel.ONE else None
    member = Member(names, me, agreed, lines, session, relay, _record(options, me))
    if options.on_view is not None:
        member.on_view = options.on_view
    member.begin(incarnation)
    try:
        await asyncio.shield(member.opened)
    except JoinError:
        await member.left  # the others are told, too
        raise
    except asyncio.CancelledError:
        member.give_up(f"{names[me]} does not want to join any more")
        member.leave()
        raise
    selective = protocol in {service.value for service in SELECTIVE}
    return Group(options.group, member, selective=selective)


def _recorded(recorded: Record | str) -> Record:
    try:
        return Record(recorded)
    except ValueError:
        raise ConfigError(f"recorded is all, deliveries or none, not {recorded!r}") from None


def _record(options: Options, me: int) -> NewRecord:
    """How to record a session here."""
    if options.record is None or options.recorded is Record.NONE:
        return no_record
    from ordercast.live.trace_record import records_in, row_of  # noqa: PLC0415 (a third of the time to start)

    row = row_of(tuple(options.members), me, options.agreed, one_clock=options.one_clock)
    return records_in(options.record, options.group, row, deliveries_only=options.recorded is Record.DELIVERIES)


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


def _bind(options: Options) -> tuple[int, Any]:
    """Our place among the members, and a socket there."""
    names = list(options.members)
    if options.name is not None:
        return names.index(options.name), open_socket(options.members[options.name])
    for place, address in enumerate(options.members.values()):
        try:
            return place, open_socket(address)
        except ConfigError:
            continue
    raise ConfigError("no member's address is free on this machine; say which member this is by its name")


def _endpoint(options: Options, me: int, own: Any) -> Endpoint:
    others = [address for place, address in enumerate(options.members.values()) if place != me]
    if options.multicast is None:
        return Endpoint(own, others, segment=options.agreed.mtu)
    interface = list(options.members.values())[me].host
    sends_multicast(own, interface)
    heard = open_multicast(options.multicast, interface)
    return Endpoint(own, others, multicast=options.multicast, heard=heard, segment=options.agreed.mtu)


def _relay(options: Options, me: int, seal: Seal, endpoint: Endpoint) -> Callable[[], Relay] | Address:
    """The channel: a process of its own, or the first member."""
    if options.channel is not None:
        return options.channel
    if me == 0:
        return lambda: Relay(seal, time.time_ns(), endpoint.send_to_all)
    return next(iter(options.members.values()))
