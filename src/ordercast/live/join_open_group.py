"""How a process joins a group that is running: it asks at some addresses, applies, and is welcomed into a view.

The group's order and settings come with the first answer. A group that needs a relay process of its own takes only
those in whose addresses that process was given.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter, deque
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from ordercast.live.group import Group
from ordercast.live.host.group_terms import GroupTerms, read_terms, require_equal
from ordercast.live.host.joiner_host import JoinerHost
from ordercast.live.host.member import Member
from ordercast.live.host.parameters import Parameters, parameters_for
from ordercast.live.host.returning import WITHDRAWN
from ordercast.live.host.running_group import joined_session
from ordercast.live.join_options import MIN_TIMEOUT, JoinOptions
from ordercast.live.local_groups import contacts_of
from ordercast.live.member_parts import group_of, note_address, recorder_for, relay_for, state_of
from ordercast.live.session.events import SessionConfig
from ordercast.live.transport.addresses import LOOPBACK, Address, address_of, seen_from
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.sockets import enable_multicast_sending, open_multicast, open_socket
from ordercast.live.transport.transport import Transport
from ordercast.live.transport.unit_addresses import has_addresses, is_address
from ordercast.live.why_not_open import describe_rejections, notify_if_slow
from ordercast.model.config import SECOND
from ordercast.model.errors import ConfigError, JoinError
from ordercast.protocols.membership.joiner import Joiner
from ordercast.protocols.membership.units import CONTROL_UNITS, Found, OutsideUnit, Welcome
from ordercast.protocols.membership.view import Incarnation, MembershipConfig
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import CONTROL
from ordercast.wire.datagram import (
    FLAGS_AT,
    HANDSHAKE,
    HEADER,
    UNKNOWN,
    Rejection,
    pack_records,
    unpack_records,
)
from ordercast.wire.inspection import INSPECTION
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal, seal_for
from ordercast.wire.unit_validation import is_valid_outside

if TYPE_CHECKING:
    from ordercast.live.host.durable.member_log import MemberLog

_log = logging.getLogger("ordercast.join")


class NotTakenInError(JoinError):
    """Nobody has answered in time, or the group has not taken this process in: another attempt may do better."""


_LOOK_AGAIN = 0.1  # seconds
_MAX_EARLY = 256  # datagrams: what is lost is sent again


async def join_open_group(options: JoinOptions, log: "MemberLog | None" = None) -> Group:
    """Returns when this process is a member; raises `JoinError` if it does not become one."""
    begun = time.monotonic()
    if not options.contacts:
        options = await _found_here(options)
    seal = seal_for(options.group, options.keys)
    search = _Search(options, seal)
    fields = {"group": options.group, "member": str(options.name)}
    _log.info("%s joins %s, which is running", options.name, options.group, extra=fields)
    try:
        with notify_if_slow(options.on_waiting, search.awaited):
            welcome = await search.joined()
        member = _member(options, search, welcome, seal, log)
    except BaseException as error:
        if isinstance(error, JoinError | asyncio.CancelledError):
            await _withdraw(options, search, seal)
        search.close()
        if isinstance(error, JoinError):
            _log.warning("%s could not join %s: %s", options.name, options.group, error, extra=fields)
        raise
    try:
        await member.state.wait()
    except JoinError as error:
        _log.warning("%s could not join %s: %s", options.name, options.group, error, extra=fields)
        raise
    note_address(options.group, member)
    seconds = time.monotonic() - begun
    _log.info("%s is in %s after %.3f s", options.name, options.group, seconds, extra={**fields, "seconds": seconds})
    return group_of(options.group, member)


async def _withdraw(options: JoinOptions, search: "_Search", seal: Seal) -> None:
    """If the group takes this process in all the same, it leaves: else the others would miss it for a failure timeout.

    Its address is in use until then.
    """
    try:
        welcome = await search.withdrawn(WITHDRAWN)
        if welcome is None:
            return
        _log.info("%s was taken into %s too late, and leaves", options.name, options.group)
        alone = replace(options, state=None, rejoin=False, on_view=None)
        member = _member(alone, search, welcome, seal, None)
        try:
            member.ending.leave(None, drain=False)
            await asyncio.wait((member.left,), timeout=2 * member.parameters.failure_timeout / SECOND)
        finally:
            member.ending.disconnect()
    except BaseException:
        search.close()
        raise


async def _found_here(options: JoinOptions) -> JoinOptions:
    """With the addresses of members that run on this machine; waits for the first one."""
    clock = asyncio.get_running_loop().time
    until = clock() + options.timeout
    with notify_if_slow(options.on_waiting, lambda: f"a member of {options.group} on this machine"):
        while not (contacts := contacts_of(options.group)):
            if clock() >= until:
                raise JoinError(
                    f"no member of the group {options.group} runs on this machine: start the group first, or give "
                    "addresses of its members (contacts=, or --join HOST:PORT)"
                )
            await asyncio.sleep(_LOOK_AGAIN)
    bind = options.bind or Address("::1" if ":" in contacts[0].host else LOOPBACK, 0)
    return replace(options, contacts=tuple(contacts), bind=bind, timeout=max(until - clock(), MIN_TIMEOUT))


class _Search:
    """Looks for a group and applies. Used inside one event loop."""

    def __init__(self, options: JoinOptions, seal: Seal) -> None:
        assert options.bind is not None
        assert options.contacts
        self._contacts = ", ".join(map(str, options.contacts))
        self._options, self._seal, self._codec = options, seal, Codec("spo", (Outside,))
        own = open_socket(options.bind)
        self.own = options.own_address(own.getsockname()[1])
        self.me = Incarnation(str(options.name), secrets.randbits(64) or 1, str(self.own))
        self.terms: GroupTerms | None = None
        try:
            if any(map(_is_multicast, options.contacts)):
                enable_multicast_sending(own, options.bind.host)
            self.endpoint = Endpoint(own, [], segment=None)
        except BaseException:
            own.close()
            raise
        joiner = Joiner(
            *(self.me, options.group, tuple(map(str, options.contacts)), secrets.randbits(62), MembershipConfig()),
            terms=None,
        )
        self.host = JoinerHost(joiner, self._send, self)
        self._tag, self._counter = secrets.randbits(64), 0
        self.early: deque[bytes] = deque(maxlen=_MAX_EARLY)
        """Datagrams that members sent to this one as a member, before it knows that it is one."""
        self._welcome: asyncio.Future[Welcome] = asyncio.get_running_loop().create_future()
        self._dropped: Counter[str] = Counter()

    async def joined(self) -> Welcome:
        """The welcome; raises `JoinError`."""
        self.endpoint.start(self._receive, lambda: None, lambda: None)
        self.host.begin()
        try:
            async with asyncio.timeout(self._options.timeout):
                return await asyncio.shield(self._welcome)
        except TimeoutError:
            raise NotTakenInError(self._why_not()) from None

    async def withdrawn(self, seconds: float) -> Welcome | None:
        """It does not want to join any more; the welcome, if one comes within so many seconds."""
        if not self._welcome.done() and self.host.withdraw():
            await asyncio.wait((self._welcome,), timeout=seconds)
        if self._welcome.done() and not self._welcome.cancelled() and self._welcome.exception() is None:
            return self._welcome.result()
        return None

    def awaited(self) -> str:
        """What it waits for, in words."""
        if self.host.waits_for:
            return f"the group {self._options.group}: {self.host.waits_for}"
        hint = describe_rejections(self._dropped)
        return f"a member of {self._options.group} at {self._contacts}" + (f"; {hint}" if hint else "")

    def close(self) -> None:
        """It does not join."""
        self.host.stop()
        self.endpoint.close()

    def _why_not(self) -> str:
        options, limit = self._options, f"within {round(self._options.timeout, 1):g} s"
        if self.host.waits_for:
            return f"{options.name} could not join the group {options.group} {limit}: {self.host.waits_for}"
        hint = describe_rejections(self._dropped) or (
            "check that it is running, the addresses, the name of the group, and that the key is the group's"
        )
        return f"no member of the group {options.group} answered at {self._contacts} {limit}; {hint}"

    # --- the network ---

    def _send(self, unit: OutsideUnit, address: str) -> None:
        counter, self._counter = self._counter, self._counter + 1
        body = pack_records([self._codec.encode(Outside(str(self.own), unit))])
        datagram = self._seal.seal(HANDSHAKE, UNKNOWN, self._tag, counter, body)
        self.endpoint.send(datagram, seen_from(self.own, address_of(address)))

    def _receive(self, data: bytes | memoryview) -> None:
        if self.host.has_applied and len(data) >= HEADER.size and not data[FLAGS_AT] & HANDSHAKE:
            self.early.append(bytes(data))  # it is opened once, in the view
            return
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self._dropped[datagram] += 1
        elif datagram.sender == UNKNOWN and datagram.flags & HANDSHAKE:
            records = unpack_records(datagram.body)
            for record in records if not isinstance(records, Rejection) else ():
                self._receive_record(record)

    def _receive_record(self, record: memoryview) -> None:
        try:
            message = self._codec.decode(record)
        except Malformed:
            return
        if (
            isinstance(message, Outside)
            and is_valid_outside(message.unit)
            and is_address(message.address)
            and has_addresses(message.unit)
        ):
            self.host.receive(message.unit, message.address)
            if self._options.log is not None and isinstance(message.unit, Found) and self.host.is_cut_off:
                self._fail(JoinError(f"{message.unit.member.name} does not reach enough others to take anybody in"))

    # --- what becomes of it (joiner_host.JoinerOwner) ---

    def found_group(self, found: Found) -> None:
        """Takes the group's parameters, if they are what this process was given, or it was given none."""
        options = self._options
        try:
            terms = read_terms(found.terms)
            _require_same_services(options, terms.parameters)
            if options.settings is not None:
                nodes = terms.parameters.config.nodes
                loopback = self.own.is_loopback() and options.named is None
                has_state = options.state is not None
                own = parameters_for(
                    *(options.settings, nodes),
                    loopback=loopback,
                    has_state=has_state,
                    has_log=options.log is not None,
                )
                require_equal(own, str(options.name), terms.parameters)
            if self.terms is None:
                self._adapt(terms)
            self.terms = terms
        except (JoinError, ConfigError) as error:
            self.host.stop()
            self._fail(error)

    def _adapt(self, terms: GroupTerms) -> None:
        parameters, multicast, heard = terms.parameters, None, None
        if parameters.multicast:
            multicast = seen_from(self.own, address_of(parameters.multicast))
            assert self._options.bind is not None
            heard = open_multicast(multicast, self._options.bind.host)
        self.endpoint.adapt(parameters.mtu, multicast, heard)

    def joined_group(self, welcome: Welcome) -> None:
        """It is a member now."""
        if not self._welcome.done():
            self._welcome.set_result(welcome)

    def refused_by_group(self, why: str) -> None:
        """It never will be."""
        advice = "; choose another name, or end that member first" if why.endswith("in use") else ""
        self._fail(JoinError(f"the group {self._options.group} does not take {self._options.name}: {why}{advice}"))

    def _fail(self, error: Exception) -> None:
        if not self._welcome.done():
            self._welcome.set_exception(error)


def _require_same_services(options: JoinOptions, group: Parameters) -> None:
    """Who joins has what all members of the group have, and nothing that they have not."""
    joiner, members = options.name, f"the members of the group {options.group}"
    for is_given, members_have, if_missing, if_superfluous in (
        (
            options.state is not None,
            group.has_state,
            (
                f"the group {options.group} gives its state to those that join, and {joiner} cannot take it: join with "
                "state=, as all its members have (a group of `ordercast store` is joined by `ordercast store`)"
            ),
            (
                f"{members} have no state to give, and {joiner} expects one: join without state=, or open the group "
                "with state= at all members"
            ),
        ),
        (
            options.log is not None,
            group.has_log,
            f"{members} have durable logs, and {joiner} has none: join with log= (--log DIR) and a folder of its own",
            f"{members} have no durable logs: join without log= (--log), or open the group with it at all members",
        ),
    ):
        if members_have and not is_given:
            raise JoinError(if_missing)
        if is_given and not members_have:
            raise JoinError(if_superfluous)


def _member(options: JoinOptions, search: _Search, welcome: Welcome, seal: Seal, log: "MemberLog | None") -> Member:
    """The member, in its first view."""
    terms = search.terms
    assert terms is not None, "nobody is welcomed before it has found the group"
    parameters, own = terms.parameters, search.own
    options = replace(options, parameters=parameters)
    codec = Codec(parameters.protocol, (*CONTROL, *INSPECTION, Outside, *CONTROL_UNITS))
    datagram = parameters.datagram_sizes(search.endpoint.receive_buffer).first
    transport = Transport(search.endpoint, [], 0, seal, codec, max_datagram_size=datagram, own=own)
    place = welcome.view.place_of(search.me)
    assert place is not None, "the joiner has checked it"
    session = joined_session(
        *(search.me.name, welcome.view.nodes[place], welcome.view),
        SessionConfig.for_failure_timeout(parameters.failure_timeout, handshake_timeout=int(options.timeout * SECOND)),
    )
    own_relay = seen_from(own, address_of(parameters.relay)) if parameters.relay else None
    member = Member(
        *((search.me.name, own), parameters, transport, session),
        relay_for(parameters, own_relay, seal, search.endpoint),
        recorder_for(options),
        group=options.group,
        busy_poll=options.busy_poll,
        rejoin=options.rejoin,
        state=state_of(options, log),
        log=log,
    )
    if options.on_view is not None:
        member.membership.on_view = options.on_view
    member.begin(secrets.randbits(64) or 1)
    member.start.enter(search.me, welcome, terms, search.host.round_trip)
    transport.receive_early(search.early)
    return member


def _is_multicast(address: Address) -> bool:
    return ip_address(address.host.partition("%")[0]).is_multicast
