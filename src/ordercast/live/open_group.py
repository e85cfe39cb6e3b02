"""How a process becomes a member: it binds a socket, finds the others, and opens the group together with them."""

import asyncio
import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from socket import socket
from typing import TYPE_CHECKING

from ordercast.live.group import Group
from ordercast.live.host.discovery_host import DiscoveryHost, new_discovery
from ordercast.live.host.member import Member
from ordercast.live.host.parameters import Parameters
from ordercast.live.host.recording import require_writable
from ordercast.live.host.returning import WITHDRAWN
from ordercast.live.host.running_group import GroupIsOpenError, RunningGroup
from ordercast.live.join_open_group import NotTakenInError, join_open_group
from ordercast.live.join_options import MIN_TIMEOUT, JoinOptions
from ordercast.live.local_groups import contacts_of
from ordercast.live.member_parts import RECORDER, group_of, log_of, note_address, recorder_for, relay_for, state_of
from ordercast.live.resolution import follow, has_names, resolved
from ordercast.live.session.events import SessionConfig
from ordercast.live.session.handshake import Handshake, Identity
from ordercast.live.session.machine import Session
from ordercast.live.session.parameter_comparison import encode_parameters
from ordercast.live.transport.addresses import Address, members_of, seen_from
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.sockets import AddressInUseError, enable_multicast_sending, open_multicast, open_socket
from ordercast.live.transport.transport import Transport
from ordercast.live.why_not_open import describe_missing, describe_rejections, notify_if_slow
from ordercast.model.config import SECOND, Rules
from ordercast.model.errors import ConfigError, JoinError
from ordercast.protocols.membership.units import CONTROL_UNITS
from ordercast.protocols.registry import flush_class, machine_class
from ordercast.wire.codec import Codec
from ordercast.wire.control import CONTROL
from ordercast.wire.inspection import INSPECTION
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal, seal_for

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog
    from ordercast.protocols.restart.standing import Plan

_log = logging.getLogger("ordercast.join")

_FIRST_NUMBERS = 1 << 16
ANSWERED_HERE, ANSWERED_BY_MULTICAST = 1.0, 0.15
"""Seconds that members of a running group have to answer, before those that were given open one."""
_GROWTH = 1.5
"""By which each attempt to go on with a log takes longer: on a busy machine nobody may be taken in within the first."""
_TRIED = 5.0  # seconds for contacts to answer, before their names are looked up again
_IF_BLOCKED = "if the members that it lacks do not come back, end it, and start all members together"


def load(options: JoinOptions) -> None:
    """Imports all that a member with these options needs, and tries its folder. Called in a thread."""
    machine_class(options.parameters.protocol, Rules.SOUND)
    flush_class(options.parameters.protocol)
    seal_for(options.group, options.keys)
    if options.record is not None:
        import_module(RECORDER)
        require_writable(options.record)


async def open_group(options: JoinOptions) -> Group:
    """Returns when this process is a member: with all others that open the group, or of the group if it is running.

    Raises `JoinError` if it does not become one.
    """
    log = await log_of(options)
    try:
        return await _open_or_join(options, log)
    except BaseException:
        if log is not None:
            await log.close()
        raise


async def _open_or_join(options: JoinOptions, log: "MemberLog | None") -> Group:
    if log is not None and log.standing is not None:
        return await _go_on(options, log)
    begun = time.monotonic()
    if options.contacts is not None:
        return await _join_by_contacts(options, log)
    try:
        options = await resolved(options) if has_names(options) else options
        return await open_with_others(options, log)
    except GroupIsOpenError as error:
        _log.info("%s is running: it is joined", options.group, extra={"group": options.group})
        left = max(options.timeout - (time.monotonic() - begun), MIN_TIMEOUT)
        return await join_open_group(running_with(options, error, left), log)


def running_with(options: JoinOptions, error: GroupIsOpenError, left: float) -> JoinOptions:
    """How the group that is open already is joined, in so many seconds, from the same address."""
    own, bind = error.address, options.bind
    return replace(
        options,
        contacts=tuple(error.contacts),
        name=error.name,
        bind=own if bind is None else Address(bind.host, bind.port or own.port),
        advertise=None if bind is None else own,
        timeout=left,
    )


async def _join_by_contacts(options: JoinOptions, log: "MemberLog | None") -> Group:
    """Names of hosts are looked up again if nobody has answered for a while."""
    if not has_names(options):
        return await join_open_group(options, log)
    until = time.monotonic() + options.timeout
    while True:
        found = await resolved(replace(options, timeout=max(until - time.monotonic(), MIN_TIMEOUT)))
        try:
            return await join_open_group(replace(found, timeout=min(found.timeout, _TRIED)), log)
        except NotTakenInError:
            if time.monotonic() >= until:
                raise


async def _go_on(options: JoinOptions, log: "MemberLog") -> Group:
    """Was a member before: joins the group if it is running, else begins it anew together with the others."""
    from ordercast.live.restart import find_or_restart  # noqa: PLC0415 (only those with a log need it)

    begun, why, growth = time.monotonic(), "", 1.0
    while (left := options.timeout - (time.monotonic() - begun)) > 0:
        options = replace(options, timeout=left)
        found = await find_or_restart(await resolved(options) if has_names(options) else options, log, why)
        attempt = replace(found.options, timeout=min(max(left, MIN_TIMEOUT), found.patience * growth))
        growth *= _GROWTH
        try:
            if found.plan is None:
                return await join_open_group(attempt, log)
            return await open_with_others(attempt, log, found.plan)
        except GroupIsOpenError:
            continue
        except JoinError as error:
            why = str(error)
            if "does not take" in why or found.is_final(error):
                raise
    raise JoinError(why or f"{options.name} could not join {options.group} within {options.timeout:g} s")


async def open_with_others(options: JoinOptions, log: "MemberLog | None", plan: "Plan | None" = None) -> Group:
    """Binds, and returns when all members have joined; raises `JoinError` if they do not.

    `plan`: the group begins anew, from the logs of its members.
    """
    begun = time.monotonic()
    seal, codec = (
        seal_for(options.group, options.keys),
        Codec(options.parameters.protocol, (*CONTROL, *INSPECTION, Outside, *CONTROL_UNITS)),
    )
    options, endpoint, discovery = await _located(options, seal, codec)
    try:
        me = list(options.members).index(str(options.name))
        member, transport, handshake = _member(options, me, endpoint, seal, codec, discovery, log=log, plan=plan)
    except BaseException:
        if discovery is not None:
            discovery.stop()
        endpoint.close()
        raise
    if options.named is not None:
        following = asyncio.create_task(follow(options, member.opened.done, member.founding.moved))
        member.left.add_done_callback(lambda _: following.cancel())
    fields = {"group": options.group, "member": member.name}
    _log.info("%s joins %s", member.name, options.group, extra=fields)
    try:
        running = member.running
        with notify_if_slow(
            options.on_waiting,
            lambda: (running and running.blocked) or describe_missing(handshake.silent(), transport.dropped),
        ):
            await asyncio.shield(member.opened)
    except GroupIsOpenError:
        member.ending.disconnect()
        raise
    except JoinError as error:
        told = _explained(error, running, describe_rejections(transport.dropped) if handshake.silent() else "")
        _log.warning("%s could not join %s: %s", member.name, options.group, told, extra=fields)
        await _tell_others(member)
        raise told from error.__cause__
    except BaseException:
        member.opened.cancel()  # nobody will ask for its result
        await _interrupt(member)
        raise
    if plan is not None:
        await member.state.go_on(plan.position)
    note_address(options.group, member)
    seconds = time.monotonic() - begun
    _log.info("%s is in %s after %.3f s", member.name, options.group, seconds, extra={**fields, "seconds": seconds})
    return group_of(options.group, member)


async def _located(
    options: JoinOptions, seal: Seal, codec: Codec
) -> tuple[JoinOptions, Endpoint, DiscoveryHost | None]:
    """Binds, and finds the others if they are not given: with our name, and the addresses of all members."""
    if options.members:
        me, own = _bind(options)
        addresses = list(options.members.values())
        interface = addresses.pop(me).host if options.bind is None else options.bind.host
        return replace(options, name=list(options.members)[me]), _endpoint(options, own, interface, addresses), None
    discovery, endpoint = _discovery(options, seal, codec)
    with notify_if_slow(options.on_waiting, discovery.awaited):
        found = await discovery.find()
    try:
        assert options.bind is not None
        members = {name: seen_from(options.bind, each) for name, each in members_of(options.group, found).items()}
    except BaseException:
        discovery.stop()
        endpoint.close()
        raise
    return replace(options, members=members), endpoint, discovery


def _explained(error: JoinError, running: RunningGroup | None, hint: str) -> JoinError:
    """With what is known besides: that the group is running and takes nobody in, or else the hint."""
    if running is not None and running.blocked:
        hint = f"it waited for {running.blocked}; {_IF_BLOCKED}"
    return JoinError(f"{error}; {hint}") if hint else error


async def _interrupt(member: Member) -> None:
    """The group does not open; if it has just been opened, the others go on without this member."""
    try:
        if member.host is None:
            member.ending.abort(f"{member.name} was interrupted while joining")
        else:
            member.ending.leave(None, drain=False)
            await asyncio.wait((member.left,), timeout=WITHDRAWN)
    finally:
        member.ending.disconnect()


async def _tell_others(member: Member) -> None:
    """Stays until the others know that it could not join, or leaves at once if this is cancelled."""
    try:
        await asyncio.shield(member.left)
    finally:
        member.ending.disconnect()


def _member(  # noqa: PLR0913 (what a member needs)
    options: JoinOptions,
    me: int,
    endpoint: Endpoint,
    seal: Seal,
    codec: Codec,
    discovery: DiscoveryHost | None,
    *,
    log: "MemberLog | None",
    plan: "Plan | None",
) -> tuple[Member, Transport, Handshake]:
    """The member, which begins to look for the others, and the parts that know how far that is."""
    parameters, names = options.parameters, tuple(options.members)
    datagram = parameters.datagram_sizes(endpoint.receive_buffer).first
    transport = Transport(endpoint, list(options.members.values()), me, seal, codec, max_datagram_size=datagram)
    if discovery is not None:
        transport.answer_discovery = discovery.receive
    incarnation = secrets.randbits(64) or 1
    session = Session(
        me,
        names,
        Identity(incarnation=incarnation, first_seq=secrets.randbelow(_FIRST_NUMBERS)),
        encode_parameters(options.group, names, _compared(parameters, plan)),
        config=SessionConfig.for_failure_timeout(
            parameters.failure_timeout, handshake_timeout=int(options.timeout * SECOND)
        ),
    )
    relay = relay_for(parameters, options.relay, seal, endpoint)
    member = Member(
        *((names[me], options.members[names[me]]), parameters, transport, session, relay, recorder_for(options)),
        founders=tuple(options.members.items()),
        group=options.group,
        busy_poll=options.busy_poll,
        rejoin=options.rejoin,
        state=state_of(options, log),
        log=log,
        plan=plan,
    )
    if options.on_view is not None:
        member.membership.on_view = options.on_view
    looked = discovery is not None or plan is not None  # for a group that is running
    here = [] if looked else _contacts_here(options)
    multicast = [] if options.multicast is None or looked else [options.multicast]
    member.begin(incarnation, [*here, *multicast], ANSWERED_HERE if here else ANSWERED_BY_MULTICAST)
    return member, transport, session.handshake


def _contacts_here(options: JoinOptions) -> list[Address]:
    """Where members may be that joined later, and go on: on this machine, if all are."""
    return contacts_of(options.group) if options.one_clock else []


def _compared(parameters: Parameters, plan: "Plan | None") -> dict[str, object]:
    return parameters.compared() if plan is None else {**parameters.compared(), "plan": plan.tag.hex()}


def _bind(options: JoinOptions) -> tuple[int, socket]:
    """Our place among the members, and a socket bound to our address."""
    names = list(options.members)
    if options.name is not None:
        return names.index(options.name), _open(options, options.name)
    taken = []
    for place, name in enumerate(names):
        try:
            return place, _open(options, name)
        except AddressInUseError:
            taken.append(name)
        except ConfigError:  # another machine's
            continue
    if not taken:
        raise ConfigError("no member has an address of this machine; members must have addresses of its interfaces")
    raise ConfigError(
        f"no member's address is free on this machine: {', '.join(taken)} are in use, by members that are running "
        "already or by other programs"
    )


def _open(options: JoinOptions, name: str) -> socket:
    address = options.bind or options.members[name]
    try:
        return open_socket(address)
    except AddressInUseError:
        if address in contacts_of(options.group):
            why = f"{name} is running already on this machine"
        else:
            why = f"{name} is being started already on this machine, or another program uses its port"
        raise AddressInUseError(f"cannot bind {address}: {why}") from None


def _discovery(options: JoinOptions, seal: Seal, codec: Codec) -> tuple[DiscoveryHost, Endpoint]:
    assert options.bind is not None
    assert options.name is not None
    own = open_socket(options.bind)
    bound = options.own_address(own.getsockname()[1])
    endpoint = _endpoint(options, own, options.bind.host, [])
    try:
        discovery = new_discovery(options.group, options.name, bound, options.parameters.config.nodes, options.timeout)
        return DiscoveryHost(endpoint, seal, codec, discovery), endpoint
    except BaseException:
        endpoint.close()
        raise


def _endpoint(options: JoinOptions, own: socket, interface: str, others: Sequence[Address]) -> Endpoint:
    """The sockets of a member; `own` is closed if there is an error."""
    segment, receiver = options.parameters.mtu, None
    try:
        if options.multicast is not None:
            enable_multicast_sending(own, interface)
            receiver = open_multicast(options.multicast, interface)
        return Endpoint(own, others, multicast=options.multicast, heard=receiver, segment=segment)
    except BaseException:
        own.close()
        if receiver is not None:
            receiver.close()
        raise
