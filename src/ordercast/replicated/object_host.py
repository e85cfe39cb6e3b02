"""The objects of one member in its group: sends commands, applies those of all, and answers calls."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from time import time
from typing import Any

import msgspec

from ordercast.live.events import Excluded, Message, View
from ordercast.live.group import Group
from ordercast.model.errors import ConfigError, Diverged, GroupClosed, GroupError, LocalProtocolError, Undelivered
from ordercast.replicated.calls import Answering, Calls
from ordercast.replicated.checks import Checks
from ordercast.replicated.frames import (
    Answer,
    Check,
    Control,
    Digests,
    Hello,
    Mark,
    Outcome,
    Request,
    ShardState,
    Tick,
    Together,
    encode,
)
from ordercast.replicated.objects import Call, CommandId, Replicated
from ordercast.replicated.pending_commands import Outgoing, Sent, in_order
from ordercast.replicated.reads import Marks
from ordercast.replicated.replica import Hosted, Replica, Result, decoded_result
from ordercast.replicated.shards import Shards
from ordercast.replicated.upkeep import Upkeep

_log = logging.getLogger("ordercast.replicated")
_MAX_PRIORITY = 255
_PRIORITISED = {"prito", "prio"}
_UNORDERED = {"spo", "po"}


class ObjectHost:
    """The objects of one member of one group."""

    def __init__(
        self,
        objects: Mapping[str, Replicated],
        on: Mapping[str, frozenset[str]],
        answering: Answering | None,
        check_interval: float,
    ) -> None:
        self._replica = Replica(objects, on, self)
        self._session = secrets.randbits(62) + 1
        self._outgoing: dict[tuple[str, int], Outgoing] = {}
        self.calls = Calls(self, answering)
        self._checks = Checks()
        self._marks: dict[frozenset[str] | None, Marks] = {}
        self._last_mark = 0
        self._together: list[tuple[Outgoing, Sent]] | None = None
        self._last_sent = 0
        self._check_waiting: dict[int, asyncio.Future[Diverged | None]] = {}
        self._last_check = 0
        self._upkeep = Upkeep(self._replica, check_interval)
        self._shards = Shards(self._replica)
        self._loaded = self._begun = False
        self.error: Exception | None = None
        self._group: Group | None = None
        self._loop = asyncio.get_running_loop()
        self._decode, self._frames = self._replica.decode, self._replica.frames
        self._following: asyncio.Task[None] | None = None
        self.me = ""
        """The name of this member."""

    @property
    def group(self) -> Group:
        """The group that was joined."""
        assert self._group is not None, "it has joined"
        return self._group

    @property
    def members(self) -> tuple[str, ...]:
        """As of what was applied here, the oldest first."""
        return self.group.members

    @contextmanager
    def together(self) -> Iterator[None]:
        """See `Members.together`."""
        if self._together is not None:
            raise LocalProtocolError("together() is used within together(): one block is one message")
        parts: list[tuple[Outgoing, Sent]] = []
        self._together = parts
        try:
            yield
            self._together = None
            self._send_together(parts)
        except BaseException:
            for outgoing, sent in reversed(parts):
                outgoing.take_back(sent)
            raise
        finally:
            self._together = None

    def _send_together(self, parts: "list[tuple[Outgoing, Sent]]") -> None:
        if not parts:
            return
        payload, on = encode(Together([sent.payload for _, sent in parts])), _union(sent.on for _, sent in parts)
        self._send(payload, on, 0)
        for _, sent in parts:
            sent.payload, sent.on, sent.order = payload, on, parts[0][1].order

    async def applied(self, command: CommandId) -> bool | None:
        """See `Members.applied`."""
        hosted = self._replica.hosted.get(command.object_name)
        if hosted is None or not hosted.held:
            raise LocalProtocolError(f"{self.me} holds no object {command.object_name!r}")
        await self.fresh(hosted)
        if command.session not in self._replica.sessions.numbers.get(command.member, []):
            return None
        stream = hosted.streams.get(command.session, {}).get(command.priority)
        if stream is not None and stream.last >= command.sequence:
            return True
        return None if self._replica.sessions.current(command.member) == command.session else False

    async def check(self) -> None:
        """See `Members.check`."""
        while True:
            self.require_open()
            self._last_check += 1
            number = self._last_check
            future = self._check_waiting[number] = asyncio.get_running_loop().create_future()
            self._send(encode(Check(number)), None, 0)
            try:
                diverged = await future
            except asyncio.InvalidStateError:
                continue
            finally:
                self._check_waiting.pop(number, None)
            if diverged is not None:
                raise diverged
            return

    # --- what objects call (objects.CommandHost) ---

    def submit(self, hosted: Hosted, name: str, values: tuple[Any, ...]) -> Call[Any]:
        """Sends a command."""
        frame = hosted.frames[name]
        together = self._together
        priority = frame.spec.priority if self._prioritised and together is None else 0
        key = hosted.name, priority
        outgoing = self._outgoing.get(key)
        if outgoing is None:
            self.require_open()
            outgoing = self._outgoing[key] = Outgoing(hosted, priority)
        sequence = outgoing.next
        payload = encode(frame.kind(sequence, outgoing.first - 1, time(), *values))
        if together is None:
            if hosted.on is None and self.error is None:  # as `_send` does, for most commands
                self.group.send_nowait(payload, priority=priority)
            else:
                self._send(payload, hosted.on, priority)
        self._last_sent += 1
        call: Call[Any] = Call(loop=self._loop)
        call._id = hosted.name, self.me, self._session, priority, sequence  # noqa: SLF001 (made here only)
        sent = Sent(frame, payload, hosted.on, self._last_sent, call)
        outgoing.add(sent)
        if together is not None:
            together.append((outgoing, sent))
        return call

    async def fresh(self, hosted: Hosted) -> None:
        """Returns when everything is applied here that was completed anywhere before the call."""
        self.require_open()
        if not hosted.held:
            raise LocalProtocolError(f"{self.me} does not hold {hosted.name!r}: ask one of {_listed(hosted.on)}")
        marks = self._marks.get(hosted.on)
        if marks is None:
            marks = self._marks[hosted.on] = Marks(lambda mark: self._send_mark(mark, hosted.on), self._new_mark)
        await marks.wait()

    def _send_mark(self, mark: Mark, on: frozenset[str] | None) -> None:
        self._send(encode(mark), on, _MAX_PRIORITY if self._prioritised else 0)

    def _new_mark(self) -> int:
        self._last_mark += 1
        return self._last_mark

    # --- the state, for members that join (ordercast.State) ---

    def save(self) -> bytes:
        """What all members hold."""
        return self._replica.save()

    async def load(self, parts: AsyncIterator[bytes]) -> None:
        """What another member saved."""
        saved = b"".join([part async for part in parts])
        self._replica.load(saved)
        self._loaded = True

    # --- the group ---

    async def begin(self, group: Group) -> None:
        """Follows a group that was joined with this as its state; returns when commands can be sent."""
        self._group, self.me = group, group.me
        protocol = group.stats().protocol
        if protocol in _UNORDERED:
            await group.leave()
            raise ConfigError("replicated objects need one order: 'sequenced', 'total' or 'priority', not 'partial'")
        self._prioritised = protocol in _PRIORITISED
        self._replica.view(group.members, {})
        self._shards.begin(self.me, joined=self._loaded)
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._following = asyncio.create_task(self._follow())
        if not self._loaded:
            self._say_hello()
        try:
            await self._ready
        except asyncio.CancelledError:
            self._following.cancel()
            raise

    async def ended(self) -> None:
        """Returns when nothing is followed any more: the group was left, or not joined."""
        if self._following is not None:
            await asyncio.wait([self._following])

    def raise_error(self) -> None:
        """Raises why the group ended, unless that was asked for."""
        if self.error is not None and not isinstance(self.error, GroupClosed):
            raise self.error.with_traceback(None)

    def _say_hello(self) -> None:
        self._send(
            encode(Hello(self._session, self._replica.interface)), None, _MAX_PRIORITY if self._prioritised else 0
        )

    async def _follow(self) -> None:
        upkeep = asyncio.create_task(self._upkeep.run(self))
        try:
            async for event in self.group.event_batches():
                if isinstance(event, list):
                    for message in event:
                        self._message(message)
                elif isinstance(event, View):
                    self._view_changed(event)
                elif isinstance(event, Excluded):
                    self._excluded()
            self._stop(GroupClosed("the group is over for this member: whether the command was applied is not known"))
        except Exception as error:
            self._stop(error)
            if not isinstance(error, GroupError) or isinstance(error, Diverged):
                await self._leave()
        finally:
            upkeep.cancel()

    async def _leave(self) -> None:
        try:
            await self.group.leave(1.0)
        except GroupError:
            return  # it has ended, in another way

    def _stop(self, error: Exception) -> None:
        self.error = error
        for outgoing in self._outgoing.values():
            outgoing.end(error)
        self.calls.end(error)
        self.calls.stop()
        for marks in self._marks.values():
            marks.end(error)
        for future in self._check_waiting.values():
            if not future.done():
                future.set_exception(error)
                future.exception()
        if not self._ready.done():
            self._ready.set_exception(error)
        for hosted in self._replica.hosted.values():
            hosted.binding.end(error)

    def _message(self, message: Message) -> None:
        try:
            sent = self._decode(message.payload)
        except msgspec.DecodeError:
            self._refused(message)
            return
        found = self._frames.get(type(sent))
        if found is None:
            self._control(message, sent)
            return
        hosted, frame = found
        sender = message.sender
        if hosted.on is not None and not self._reaches(hosted.on, message):
            return
        if not hosted.held:
            self._shards.hold_back(hosted.name, lambda: self._message(message))
            return
        priority = message.priority if self._prioritised else 0
        stream = hosted.current.get((sender, priority)) or self._replica.stream(hosted, sender, priority)
        if stream is None:
            return
        result = hosted.apply(frame, sent, sender, stream)
        if sender == self.me:
            if result is not None:
                self._outgoing[hosted.name, priority].settle(result)
        elif hosted.on is not None:
            self._tell_outcome(hosted, sender, priority, sent.sequence)

    def _reaches(self, on: frozenset[str], message: Message) -> bool:
        """Whether a message goes to all members that hold an object.

        One of them may have joined after it was sent. Then none applies it, and its sender sends it again.
        """
        return all(name in message.destinations for name in self.members if name in on)

    def _objects_of(self, parts: list[bytes]) -> Iterator[Hosted]:
        for part in parts:
            try:
                found = self._replica.frames.get(type(self._replica.decode(part)))
            except msgspec.DecodeError:
                refused = self._replica.command(part)
                found = refused and refused[:2]
            if found is not None:
                yield found[0]

    def _refused(self, message: Message) -> None:
        """A message that cannot be decoded: a command with wrong arguments, or of somebody else."""
        found = self._replica.command(message.payload)
        if found is None:
            raise ConfigError(f"{message.sender} sent a message that is none of replicated objects; use another group")
        hosted, _, sequence, error = found
        if hosted.on is not None and not self._reaches(hosted.on, message):
            return
        if not hosted.held:
            self._shards.hold_back(hosted.name, lambda: self._refused(message))
            return
        stream = self._replica.stream(hosted, message.sender, message.priority)
        if stream is None:
            return
        result = hosted.refuse(message.sender, sequence, stream, error)
        if message.sender == self.me and result is not None:
            self._outgoing[hosted.name, message.priority].settle(result)
        elif hosted.on is not None:
            self._tell_outcome(hosted, message.sender, message.priority, sequence)

    def _control(self, message: Message, sent: Control) -> None:  # noqa: C901, PLR0912 (one case for each frame)
        sender = message.sender
        match sent:
            case Mark(number) if sender == self.me:
                for on, marks in self._marks.items():
                    marks.delivered(number, by_all=on is None or self._reaches(on, message))
            case Hello(session, interface):
                self._hello(sender, session, interface)
            case Together(parts):
                if all(self._reaches(each.on, message) for each in self._objects_of(parts) if each.on is not None):
                    for part in parts:
                        self._message(Message.make(sender, part, destinations=message.destinations))
            case Tick(passed):
                for hosted in self._replica.hosted.values():
                    if hosted.held:
                        hosted.tick(passed)
                    else:
                        self._shards.hold_back(hosted.name, partial(hosted.tick, passed))
            case Check(number):
                self._checks.begin(sender, number)
                digests = self._upkeep.digests()
                self._try_to_send(encode(Digests(sender, number, digests)), None, message.priority)
            case Digests():
                self._compared(sender, sent)
            case Request():
                self.calls.requested(sender, sent, self.members)
            case Answer():
                self.calls.answered(sender, sent)
            case Outcome(name, priority, sequence, error, value):
                self._outcome(name, priority, decoded(self._outgoing, name, priority, sequence, error, value))
            case ShardState():
                self._shards.arrived(sent)
                self._has_shards()

    def _hello(self, sender: str, session: int, interface: str) -> None:
        if interface != self._replica.interface and sender != self.me and not self._begun:
            raise ConfigError(
                f"{sender} has other objects, or other commands, than {self.me}: all members need the same classes"
            )
        self._replica.hello(sender, session)
        self._shards.said_hello(sender)
        if sender == self.me:
            if self._begun:
                self._returned()
            self._begun = True
            if not self._ready.done():
                self._ready.set_result(None)

    def _compared(self, sender: str, sent: Digests) -> None:
        verdict = self._checks.add(sender, sent, self.members)
        if verdict is None:
            return
        if verdict.checker == self.me and (future := self._check_waiting.get(verdict.number)) is not None:
            future.set_result(verdict.diverged)
        self._upkeep.compared(verdict.diverged)
        if verdict.diverged is not None and self.me in verdict.diverged.members:
            raise verdict.diverged

    # --- members come and go ---

    def _view_changed(self, view: View) -> None:
        self._replica.view(view.members, view.left)
        self._checks.view_changed()
        for future in self._check_waiting.values():
            if not future.done():
                future.set_exception(asyncio.InvalidStateError())
        self.calls.members_left(view.left)
        for to, state in self._shards.view_changed(view):
            self._try_to_send(encode(state), frozenset({to}), 0)
        if self.me in view.joined and self._loaded:
            self._has_shards()
        else:  # other members hold it now: what was sent to those of before may not have been applied
            self._send_again([each for each in self._outgoing.values() if each.hosted.on is not None])
            for on, marks in self._marks.items():
                if on is not None:
                    marks.returned()

    def _has_shards(self) -> None:
        """If this member, which joined or returned, has all that it is to hold, its commands go on."""
        if self._loaded and not self._shards.lacking:
            self._loaded = False
            try:
                self._say_hello()
            except GroupClosed as error:
                _log.debug("%s has got the state, and leaves: %s", self.me, error)

    def _excluded(self) -> None:
        self.calls.end(Undelivered("the group continued without this member: the answers are not known"))
        self._shards.begin(self.me, joined=True)

    def _returned(self) -> None:
        """The state is that of another member: it tells which of our commands were applied; the rest is sent again."""
        for outgoing in self._outgoing.values():
            hosted = outgoing.hosted
            if hosted.held:
                stream = self._replica.stream(hosted, self.me, outgoing.priority)
                assert stream is not None, "it has said hello"
                while outgoing.waiting and outgoing.first <= stream.last:
                    frame = outgoing.waiting[0].frame
                    outgoing.settle(hosted.result_of(stream, outgoing.first, frame))
        self._send_again(list(self._outgoing.values()))
        for marks in self._marks.values():
            marks.returned()

    def _send_again(self, all_outgoing: list[Outgoing]) -> None:
        for sent, priority in in_order(all_outgoing):
            try:
                self._send(sent.payload, sent.on, priority)
            except Undelivered as error:  # all that held the object are gone
                if not sent.call.done():
                    sent.call.set_exception(error)
            except GroupClosed:
                return  # this member leaves

    # --- callers that do not hold an object ---

    def _tell_outcome(self, hosted: Hosted, caller: str, priority: int, sequence: int) -> None:
        """The oldest holder tells the caller what became of its command, also if it comes again."""
        assert hosted.on is not None, "all hold it"
        if caller in hosted.on or caller not in self.members:
            return
        if next((name for name in self.members if name in hosted.on), None) != self.me:
            return
        stream = self._replica.stream(hosted, caller, priority)
        assert stream is not None, "it has been applied"
        if sequence <= stream.last:
            error, value = stream.results.get(sequence, ("", b""))
            self._try_to_send(encode(Outcome(hosted.name, priority, sequence, error, value)), frozenset({caller}), 0)

    def _outcome(self, name: str, priority: int, result: Result | None) -> None:
        if result is not None:
            self._outgoing[name, priority].settle(result)

    # --- sending ---

    def let_time_pass(self, now: float) -> None:
        """Tells all members the time, which is past a deadline of an object."""
        self._send(encode(Tick(now)), None, 0)

    def send(self, frame: Request | Answer, to: Iterable[str] | None) -> None:
        """For calls: sends a message; an answer goes to all if the order has no destinations."""
        if isinstance(frame, Answer) and not self._selective:
            to = None
        self._send(encode(frame), None if to is None else frozenset(to), 0)

    @property
    def _selective(self) -> bool:
        return self.group.stats().protocol == "st"

    def _present(self, on: frozenset[str]) -> frozenset[str] | None:
        found = on & frozenset(self.members)
        return None if found == frozenset(self.members) else found

    def _send(self, payload: bytes, on: frozenset[str] | None, priority: int) -> None:
        if self.error is not None:
            raise self.error.with_traceback(None)
        to = None if on is None else self._present(on)
        if to is not None and not to:
            raise Undelivered(f"none of {_listed(on)} is a member now")
        self.group.send_nowait(payload, to=to, priority=priority)

    def _try_to_send(self, payload: bytes, on: frozenset[str] | None, priority: int) -> None:
        """What others wait for, as long as this member does not leave."""
        try:
            self._send(payload, on, priority)
        except (GroupError, LocalProtocolError) as error:
            _log.debug("%s has not sent what others asked for: %s", self.me, error)

    def require_open(self) -> None:
        """Raises the reason why nothing can be sent, if there is one."""
        if self._group is None:
            raise LocalProtocolError("it has not joined a group")
        if self.error is not None:
            raise self.error.with_traceback(None)


def decoded(
    outgoing: Mapping[tuple[str, int], Outgoing], name: str, priority: int, sequence: int, error: str, value: bytes
) -> Result | None:
    """The result of a command that others have applied, if it is waited for."""
    found = outgoing.get((name, priority))
    place = sequence - found.first if found is not None else -1
    if found is None or not 0 <= place < len(found.waiting):
        return None
    return decoded_result(sequence, error, value, found.waiting[place].frame)


def _union(all_holders: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Who holds one of several objects; None: all members, also those that join."""
    found: frozenset[str] = frozenset()
    for holders in all_holders:
        if holders is None:
            return None
        found |= holders
    return found


def _listed(names: frozenset[str] | None) -> str:
    return ", ".join(sorted(names or ()))
