"""Those that begin a group anew, in real time: a process that was started again with its log looks for the others.

It also asks whether the group is running: then it joins that.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec

from ordercast.live.host.durable.exchange import LogExchange
from ordercast.live.host.durable.member_log import MemberLog
from ordercast.live.state_transfer.connection import Request
from ordercast.live.state_transfer.donor import Donor
from ordercast.live.state_transfer.joiner import DonorsGoneError, Source, StateLoader
from ordercast.live.transport.addresses import Address, address_of, seen_from
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.sockets import open_socket
from ordercast.model.errors import ConfigError, JoinError, LogError
from ordercast.protocols.membership.units import Find, Found
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.protocols.restart.assessment import Here
from ordercast.protocols.restart.machine import (
    BeginAnew,
    FetchLog,
    NotePlan,
    Offer,
    RestartMachine,
    RestartOutput,
    Say,
)
from ordercast.protocols.restart.standing import Plan, Standing
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import CONTROL, Restarting
from ordercast.wire.datagram import HANDSHAKE, UNKNOWN, Rejection, pack_records, unpack_records
from ordercast.wire.keys import GroupKeys
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal
from ordercast.wire.unit_validation import is_valid_outside

_log = logging.getLogger("ordercast.join")
_REPEAT = 0.1  # seconds between two ticks of the machine, and two messages to each of the others
_FETCH_TIMEOUT = 5.0  # seconds for the log of a plan
_TIMES_SAID = 3  # that it begins: some may be lost

_here_decoder = msgspec.msgpack.Decoder(Here)


def decode_here(message: Restarting, group: str) -> Here | None:
    """What was said; None if it makes no sense here."""
    try:
        found = _here_decoder.decode(message.data)
        standing, plan = found.standing(), found.plan
        named = [found.me, *standing.view.members]
        if plan is not None:
            named += [plan.holder, *plan.members]
        for one in named:
            address_of(one.address)
    except (msgspec.MsgspecError, ConfigError):
        return None
    fits = _has_next_view(standing) and (plan is None or len(plan.basis) == len(plan.members))
    return found if fits and found.group == group and all(one.is_well_formed() for one in named) else None


def _has_next_view(standing: Standing) -> bool:
    """Whether the view that it has accepted, if any, can be made of its view."""
    view, accepted = standing.view, standing.accepted
    return len(view.nodes) == len(view.members) and (
        accepted is None
        or (0 <= accepted.stay <= view.everybody and accepted.next_node == view.next_node + len(accepted.joined))
    )


def encode_here(here: Here) -> Restarting:
    """As it travels."""
    return Restarting(msgspec.msgpack.encode(here))


class Restarted:
    """What came of it: the group is running, at these addresses, or begins by this plan."""

    def __init__(self, plan: Plan | None, contacts: Sequence[str] = ()) -> None:
        self.plan, self.contacts = plan, contacts


class RestartHost:
    """One attempt. Used inside one event loop."""

    def __init__(  # noqa: PLR0913 (what it connects)
        self,
        log: MemberLog,
        exchange: LogExchange,
        own: Address,
        name: str,
        *,
        bind: Address,
        others: Sequence[str],
        seal: Seal,
        keys: GroupKeys | None,
        least: int,
        failure_timeout: float,
    ) -> None:
        """`own`: our address, as others use it; `bind`: that of our sockets; `others`: where the others may be."""
        assert log.standing is not None, "it was a member"
        self._log, self._exchange, self._seal, self._keys = log, exchange, seal, keys
        self._own, self._failure_timeout = own, failure_timeout
        self.me = Incarnation(name, secrets.randbits(64) or 1, str(own))
        self._machine = RestartMachine(self.me, log.group, log.standing, least=least, force=log.settings.force)
        known = [one.address for one in log.standing.view.members]
        self._addresses = [each for each in dict.fromkeys((*others, *known)) if each != str(own)]
        self._codec = Codec("spo", (*CONTROL, Outside))
        self._endpoint = Endpoint(open_socket(bind), [], segment=None)
        self._tag, self._counter, self._asked = secrets.randbits(64), 0, 0
        self._loop = asyncio.get_running_loop()
        self._agreeing: asyncio.Task[None] | None = None
        self._done: asyncio.Future[Restarted] = self._loop.create_future()
        self._donor = Donor(
            None,
            bind,
            log.group,
            name=name,
            keys=lambda: keys,
            failure_timeout=failure_timeout,
            state_timeout=_FETCH_TIMEOUT,
            is_busy=lambda: False,
            log=exchange,
        )

    @property
    def waits_for(self) -> str:
        """Why it takes so long: a sentence."""
        return self._machine.waits_for

    async def run(self) -> Restarted:
        """Returns when the group is found, or begins; if this is cancelled, it ends."""
        self._endpoint.start(self._receive, lambda: None, lambda: None)
        ticking = self._loop.create_task(self._tick())
        try:
            return await self._done
        finally:
            ticking.cancel()
            if self._agreeing is not None:
                self._agreeing.cancel()
            self._donor.close()
            self._endpoint.close()
            await self._log.settled()

    async def _tick(self) -> None:
        while True:
            self._machine.place(*self._log.on_disk)
            self._carry_out(self._machine.tick())
            self._ask()
            await asyncio.sleep(_REPEAT)

    def _carry_out(self, outputs: list[RestartOutput]) -> None:
        for output in outputs:
            if isinstance(output, Say):
                self._say(output.here)
            elif isinstance(output, Offer):
                self._offer(output.plan)
            elif isinstance(output, FetchLog):
                self._agreeing = self._loop.create_task(self._fetch(output.plan))
            elif isinstance(output, NotePlan):
                self._agreeing = self._loop.create_task(self._note(output.plan))
            elif isinstance(output, BeginAnew):
                self._end(Restarted(output.plan))
            elif self._agreeing is not None:
                self._agreeing.cancel()

    # --- the network ---

    def _say(self, here: Here) -> None:
        message = encode_here(here)
        for _ in range(_TIMES_SAID if here.begins else 1):
            for address in self._addresses:
                self._send(message, address)

    def _ask(self) -> None:
        self._asked += 1
        for address in self._addresses:
            find = Find(self._log.group, self.me.name, self.me.number, self._asked)
            self._send(Outside(str(self._own), find), address)

    def _send(self, message: Restarting | Outside, address: str) -> None:
        counter, self._counter = self._counter, self._counter + 1
        body = pack_records([self._codec.encode(message)])
        datagram = self._seal.seal(HANDSHAKE, UNKNOWN, self._tag, counter, body)
        self._endpoint.send(datagram, seen_from(self._own, address_of(address)))

    def _receive(self, data: bytes | memoryview) -> None:
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection) or not datagram.flags & HANDSHAKE:
            return
        if datagram.sender != UNKNOWN:  # a handshake: another one has begun with the plan
            self._carry_out(self._machine.others_have_begun())
            return
        records = unpack_records(datagram.body)
        for record in records if not isinstance(records, Rejection) else ():
            with suppress(Malformed):
                message = self._codec.decode(record)
                if isinstance(message, Restarting):
                    here = decode_here(message, self._log.group)
                    if here is not None:
                        self._heard(here)
                elif isinstance(message, Outside) and isinstance(message.unit, Found):
                    self._found(message.unit)

    def _found(self, unit: Found) -> None:
        ours = (unit.group, unit.name, unit.incarnation) == (self._log.group, self.me.name, self.me.number)
        if (
            ours
            and is_valid_outside(unit)
            and 0 < unit.nonce <= self._asked
            and not unit.blocked
            and not unit.is_member
        ):
            self._end(Restarted(None, unit.addresses))

    def _end(self, found: Restarted) -> None:
        if not self._done.done():
            self._done.set_result(found)

    # --- the others ---

    def _heard(self, here: Here) -> None:
        for one in (here.me, *here.standing().view.members):
            if one.address not in self._addresses and one.address != str(self._own):
                self._addresses.append(one.address)
        self._machine.place(*self._log.on_disk)
        self._carry_out(self._machine.hear(here))

    def _offer(self, plan: Plan) -> None:
        self._log.keep_position(plan.number, plan.position)
        others = [one for one in plan.members if not one.is_same(self.me)]
        self._donor.offer(GroupView(plan.number, plan.members, (), plan.tag), others)

    # --- the log ---

    async def _note(self, plan: Plan) -> None:
        try:
            await self._log.agree(plan)
            outputs = self._machine.noted(plan.tag)
        except LogError as error:
            outputs = self._failed(error)
        self._carry_out(outputs)

    async def _fetch(self, plan: Plan) -> None:
        """The log becomes that of the plan, or does not."""
        try:
            await self._load(plan)
            outputs = self._machine.log_is(*self._log.on_disk)
        except (JoinError, DonorsGoneError, LogError) as error:
            outputs = self._failed(error)
        self._carry_out(outputs)

    def _failed(self, error: Exception) -> list[RestartOutput]:
        _log.warning(
            "%s cannot take part in the restart of the group: %s", self.me.name, error, extra={"group": self._log.group}
        )
        if self._log.failed is not None and not self._done.done():
            self._done.set_exception(JoinError(self._log.failed))
        return self._machine.log_failed(apart=isinstance(error, JoinError))

    async def _load(self, plan: Plan) -> None:
        await self._log.reaches(self._log.next)
        if self._log.on_disk == (plan.position, plan.hash):
            return
        holder = plan.holder
        address = seen_from(self._own, address_of(holder.address))
        until = self._loop.time() + _FETCH_TIMEOUT
        loader = StateLoader(
            None,
            Request(plan.number, plan.tag, self.me.name, self.me.number),
            [Source(holder.name, 0, address, lambda: self._loop.time() > until)],
            group=self._log.group,
            keys=self._keys,
            failure_timeout=self._failure_timeout,
            state_timeout=2 * _FETCH_TIMEOUT,
            log=self._exchange,
        )
        await loader.load()


class SurvivorHost:
    """A member that was not started again, and does not reach enough others: it gives its log to those that were."""

    def __init__(
        self, log: MemberLog, offer: Callable[[GroupView, Sequence[Incarnation]], None], me: Incarnation
    ) -> None:
        """`offer`: offers the log, as that of a view, to those that join it."""
        self._log, self._offer, self._codec, self._me = log, offer, Codec("spo", CONTROL), me
        self._offered: set[bytes] = set()

    def receive(self, body: bytes, send: Callable[[Restarting, str], None]) -> None:
        """Something from one that is in no view: an answer, if it begins the group anew."""
        records = unpack_records(body)
        for record in records if not isinstance(records, Rejection) else ():
            with suppress(Malformed):
                message = self._codec.decode(record)
                here = decode_here(message, self._log.group) if isinstance(message, Restarting) else None
                if here is not None:
                    self._answer(here, send)

    def _answer(self, here: Here, send: Callable[[Restarting, str], None]) -> None:
        log, plan = self._log, here.plan
        if plan is not None and plan.holder.is_same(self._me) and plan.tag not in self._offered:
            self._offered.add(plan.tag)
            log.keep_position(plan.number, plan.position)
            self._offer(GroupView(plan.number, plan.members, (), plan.tag), plan.members)
        if log.durable >= log.next:
            heard = ((here.me.name, here.me.number),)
            own = Here(*(log.group, self._me, log.note, *log.on_disk), is_member=True, heard=heard)
            send(encode_here(own), here.me.address)
