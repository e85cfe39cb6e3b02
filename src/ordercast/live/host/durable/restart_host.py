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
from ordercast.live.host.durable.restart import Assessment, Here, assess
from ordercast.live.host.durable.standing import Plan, stamp_of
from ordercast.live.state_transfer.connection import Request
from ordercast.live.state_transfer.donor import Donor
from ordercast.live.state_transfer.joiner import DonorsGoneError, Source, StateLoader
from ordercast.live.transport.addresses import Address, address_of, seen_from
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.sockets import open_socket
from ordercast.model.errors import ConfigError, JoinError, LogError
from ordercast.protocols.membership.units import Find, Found
from ordercast.protocols.membership.view import GroupView, Incarnation
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.control import CONTROL, Restarting
from ordercast.wire.datagram import HANDSHAKE, UNKNOWN, Rejection, pack_records, unpack_records
from ordercast.wire.keys import GroupKeys
from ordercast.wire.outside import Outside
from ordercast.wire.seal import Seal
from ordercast.wire.unit_validation import is_valid_outside

_log = logging.getLogger("ordercast.join")
_REPEAT = 0.1  # seconds between two messages to each of the others
_FORGET = 1.0  # seconds after which one that says nothing is not there
_SILENT = 3.0  # seconds after which a plan with one that says nothing is given up
_GRACE = 1.0  # seconds for those that are missing, when there are enough
_PLAN_TIMEOUT = 10.0  # seconds for a plan to begin
_TIMES_SAID = 3  # that it begins: some may be lost

_here_decoder = msgspec.msgpack.Decoder(Here)


def decode_here(message: Restarting, group: str) -> Here | None:
    """What was said; None if it makes no sense here."""
    try:
        found = _here_decoder.decode(message.data)
        found.standing()
        address_of(found.me.address)
    except (msgspec.MsgspecError, ConfigError):
        return None
    return found if found.group == group and found.me.is_well_formed() else None


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
        others: Sequence[str],
        seal: Seal,
        keys: GroupKeys | None,
        least: int,
        failure_timeout: float,
    ) -> None:
        """`own`: our address; `others`: where the others may be."""
        assert log.standing is not None, "it was a member"
        self._log, self._exchange, self._seal, self._keys = log, exchange, seal, keys
        self._own, self._least, self._failure_timeout = own, least, failure_timeout
        self.me = Incarnation(name, secrets.randbits(64) or 1, str(own))
        known = [one.address for one in log.standing.view.members]
        self._addresses = [each for each in dict.fromkeys((*others, *known)) if each != str(own)]
        self._codec = Codec("spo", (*CONTROL, Outside))
        self._endpoint = Endpoint(open_socket(own), [], segment=None)
        self._tag, self._counter, self._asked = secrets.randbits(64), 0, 0
        self._loop = asyncio.get_running_loop()
        self._peers: dict[str, tuple[Here, float]] = {}  # by name, and when they were heard last
        self._enough_since: float | None = None
        self._plan: Plan | None = None
        self._planned_at = 0.0
        self._ready = self._begins = False
        self._is_apart = log.standing.forgot and not log.settings.force
        self._agreeing: asyncio.Task[None] | None = None
        self._offered: set[bytes] = set()
        self._done: asyncio.Future[Restarted] = self._loop.create_future()
        self._donor = Donor(
            None,
            own,
            log.group,
            name=name,
            keys=lambda: keys,
            failure_timeout=failure_timeout,
            state_timeout=_PLAN_TIMEOUT,
            is_busy=lambda: False,
            log=exchange,
        )
        self.waits_for = "its log was damaged: it joins the others when they have begun" if self._is_apart else ""
        """Why it takes so long: a sentence."""

    async def run(self) -> Restarted:
        """Returns when the group is found, or begins; if this is cancelled, it ends."""
        self._endpoint.start(self._receive, lambda: None, lambda: None)
        saying = self._loop.create_task(self._say_again())
        try:
            return await self._done
        finally:
            saying.cancel()
            if self._agreeing is not None:
                self._agreeing.cancel()
            self._donor.close()
            self._endpoint.close()
            await self._log.settled()

    # --- the network ---

    async def _say_again(self) -> None:
        while True:
            self._say()
            self._ask()
            self._step()
            await asyncio.sleep(_REPEAT)

    def _here(self) -> Here:
        heard = tuple((here.me.name, here.me.number) for here, _ in self._peers.values())
        log = self._log
        return Here(
            *(log.group, self.me, log.note, log.durable, log.durable_hash),
            heard=heard,
            plan=self._plan,
            ready=self._ready,
            begins=self._begins,
        )

    def _say(self) -> None:
        if self._is_apart:
            return
        message = encode_here(self._here())
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
            if self._ready:
                self._end(Restarted(self._plan))
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
        if here.me.name == self.me.name:
            return
        known = self._peers.get(here.me.name)
        if known is None or known[0].me.number == here.me.number or here.hears(self.me):
            self._peers[here.me.name] = (here, self._loop.time())
        if here.me.address not in self._addresses and here.me.address != str(self._own):
            self._addresses.append(here.me.address)
        for one in here.standing().view.members:
            if one.address not in self._addresses and one.address != str(self._own):
                self._addresses.append(one.address)
        if here.plan is not None and here.hears(self.me):
            self._consider(here, here.plan)
        self._step()

    def _consider(self, here: Here, plan: Plan) -> None:
        """A plan of another one: the log may be needed, an agreement, or the beginning."""
        if plan.holder.is_same(self.me):
            self._offer(plan)
        if self._plan is not None and self._plan.tag == plan.tag:
            if here.begins and self._ready:
                self._end(Restarted(plan))
            return
        place = next((at for at, one in enumerate(plan.members) if one.is_same(self.me)), None)
        standing = self._log.standing
        assert standing is not None, "it was a member"
        if (
            self._plan is None
            and place is not None
            and plan.members[0].is_same(here.me)
            and plan.basis[place] == stamp_of(standing)
            and plan.number > standing.highest_number()
        ):
            self._agree(plan)

    def _offer(self, plan: Plan) -> None:
        if plan.tag not in self._offered and self._log.durable >= plan.position:
            self._offered.add(plan.tag)
            self._log.keep_position(plan.number, plan.position)
            others = [one for one in plan.members if not one.is_same(self.me)]
            self._donor.offer(GroupView(plan.number, plan.members, (), plan.tag), others)

    def _present(self) -> list[Here]:
        now = self._loop.time()
        self._peers = {name: found for name, found in self._peers.items() if now - found[1] < _FORGET}
        return [self._here(), *(here for here, _ in self._peers.values() if here.hears(self.me))]

    def _step(self) -> None:
        """Makes a plan, if it is this one's turn, and begins when all are ready."""
        if self._is_apart:
            return
        if self._plan is not None:
            if self._plan.members[0].is_same(self.me) and self._ready and self._all_ready(self._plan):
                self._begins = True
                for _ in range(_TIMES_SAID):
                    self._say()
                self._end(Restarted(self._plan))
            elif self._ready and self._is_void(self._plan) and self._agreeing is not None:
                self._agreeing.cancel()
                self._plan, self._ready, self._enough_since = None, False, None
            return
        found = assess(self._present(), self._least, force=self._log.settings.force)
        self.waits_for = found.missing
        if found.missing:
            self._enough_since = None
            return
        now = self._loop.time()
        self._enough_since = self._enough_since or now
        if found.absent and now - self._enough_since < self._grace(found):
            self.waits_for = f"{', '.join(found.absent)} of view {found.view.number}, for {_GRACE:g} s"
            return
        if found.participants[0].me.is_same(self.me):
            plan = found.plan(secrets.token_bytes(8))
            if plan.holder.is_same(self.me):
                self._offer(plan)
            self._agree(plan)

    def _grace(self, found: Assessment) -> float:
        """Those in the last view that were not started again say so, if they are there."""
        there = {here.me.name for here, _ in self._peers.values() if here.is_member}
        return 0.0 if set(found.absent) <= there else _GRACE

    def _is_void(self, plan: Plan) -> bool:
        """One of its members was started once more, or says nothing: it cannot begin."""
        now = self._loop.time()
        for one in plan.members:
            known = self._peers.get(one.name)
            if known is not None and not known[0].me.is_same(one):
                return True
            heard = self._planned_at if known is None else max(known[1], self._planned_at)
            if not one.is_same(self.me) and now - heard > _SILENT:
                return True
        return False

    def _all_ready(self, plan: Plan) -> bool:
        heres = {here.me.name: here for here, _ in self._peers.values()}
        return all(
            one.is_same(self.me)
            or (
                (here := heres.get(one.name)) is not None
                and here.me.is_same(one)
                and here.ready
                and here.plan is not None
                and here.plan.tag == plan.tag
            )
            for one in plan.members
        )

    # --- agreeing ---

    def _agree(self, plan: Plan) -> None:
        self._plan, self._planned_at = plan, self._loop.time()
        self._agreeing = self._loop.create_task(self._agrees(plan))

    async def _agrees(self, plan: Plan) -> None:
        """Gets the log, notes the plan, and says so; after a while without a beginning it looks anew."""
        try:
            await self._fetch(plan)
            await self._log.agree(plan)
            self._ready = True
            self._say()
            self._step()
            await asyncio.sleep(_PLAN_TIMEOUT)
        except (JoinError, DonorsGoneError, LogError) as error:
            _log.warning("%s cannot take part in a plan: %s", self.me.name, error, extra={"group": self._log.group})
            self._is_apart = isinstance(error, JoinError)  # its log has nothing in common: it joins those that go on
            if self._log.failed is not None:
                self._fail(JoinError(self._log.failed))
        self._plan, self._ready, self._enough_since = None, False, None

    async def _fetch(self, plan: Plan) -> None:
        """Returns when the log is that of the plan; raises `LogError` if it does not become it."""
        await self._log.reaches(self._log.next)
        if (self._log.durable, self._log.durable_hash) == (plan.position, plan.hash):
            return
        self._say()  # the holder has to know the plan
        holder = plan.holder
        address = seen_from(self._own, address_of(holder.address))
        loader = StateLoader(
            None,
            Request(plan.number, plan.tag, self.me.name, self.me.number),
            [Source(holder.name, 0, address, lambda: self._loop.time() > until)],
            group=self._log.group,
            keys=self._keys,
            failure_timeout=self._failure_timeout,
            state_timeout=_PLAN_TIMEOUT,
            log=self._exchange,
        )
        until = self._loop.time() + _PLAN_TIMEOUT / 2
        await loader.load()
        if (self._log.durable, self._log.durable_hash) != (plan.position, plan.hash):
            raise LogError(f"it ends at position {self._log.durable}, and not as the plan says")

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)


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
            own = Here(*(log.group, self._me, log.note, log.durable, log.durable_hash), is_member=True, heard=heard)
            send(encode_here(own), here.me.address)
