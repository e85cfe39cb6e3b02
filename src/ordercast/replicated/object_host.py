"""The objects of one member in its group: sends commands, applies those of all, and answers calls."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from time import time

import msgspec

from ordercast.live.events import Excluded, Message, View
from ordercast.live.group import Group
from ordercast.model.errors import ConfigError, Diverged, GroupClosed, GroupError, LocalProtocolError, Undelivered
from ordercast.replicated.calls import Answering, Calls
from ordercast.replicated.checks import Checks
from ordercast.replicated.command_sender import CommandSender
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
    with_room,
)
from ordercast.replicated.objects import CommandId, Replicated
from ordercast.replicated.reads import Marks
from ordercast.replicated.replica import Hosted, Later, Replica
from ordercast.replicated.shards import Shards
from ordercast.replicated.upkeep import Upkeep

_log = logging.getLogger("ordercast.replicated")
_MAX_PRIORITY = 255
_PRIORITISED = {"prito", "prio"}
_UNORDERED = {"spo", "po"}
_SELECTIVE = "st"
_REPLAYED = (Hello, Tick, Together)
_NEVER = 1 << 62
_HEAD = 4096  # bytes of an outcome besides the result


class _ViewChanged(Exception):  # noqa: N818 - nothing went wrong
    """A comparison of states is begun anew: other members have to answer now."""


class ObjectHost:
    """The objects of one member of one group."""

    def __init__(
        self,
        objects: Mapping[str, Replicated],
        on: Mapping[str, frozenset[str]],
        answering: Answering | None,
        check_interval: float,
        *,
        has_log: bool,
    ) -> None:
        self._replica = Replica(objects, on, self)
        self._session = secrets.randbits(62) + 1
        self._commands = CommandSender(self, self._replica, self._session)
        self.submit, self.together = self._commands.submit, self._commands.together
        self.next_id = self._commands.next_id
        self.calls = Calls(self, answering)
        self._checks = Checks()
        self._marks: dict[frozenset[str] | None, Marks] = {}
        self._last_mark = 0
        self._check_waiting: dict[int, asyncio.Future[Diverged | None]] = {}
        self._last_check = 0
        self._upkeep = Upkeep(self._replica, check_interval)
        self._shards = Shards(self._replica)
        self._views: dict[int, tuple[str, ...]] = {}
        self._live_from = 0
        """The view that was entered by this process: messages of views before it come from a log."""
        self._foreigners: set[str] = set()
        self._must_say_hello, self._begun, self._loaded = True, False, False
        self._is_mine = False
        """What comes from this member now was sent by this process, not by one that it was before."""
        self.error: Exception | None = None
        self._has_log, self.prioritised = has_log, False
        self._group: Group | None = None
        self._following: asyncio.Task[None] | None = None
        self.send_to_all: Callable[..., object]
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
            self.send_frame(encode(Check(number)), None, 0)
            try:
                diverged = await future
            except _ViewChanged:
                continue
            finally:
                self._check_waiting.pop(number, None)
            if diverged is not None:
                raise diverged
            return

    async def durable(self) -> None:
        """See `Members.durable`."""
        while True:
            self.require_open()
            receipt = self.group.send_nowait(encode(Mark(0)))  # a place behind all that was applied here
            try:
                await receipt.durable()
            except Undelivered:
                continue
            return

    # --- what objects call (objects.CommandHost) ---

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
        self.send_frame(encode(mark), on, _MAX_PRIORITY if self.prioritised else 0)

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
        self.prioritised, self._selective = protocol in _PRIORITISED, protocol == _SELECTIVE and not self._has_log
        self.send_to_all = group.send_nowait
        self._live_from = group.view.number
        self._views[group.view.number] = group.members
        self._shards.begin(self.me, joined=self._loaded)
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._following = asyncio.create_task(self._follow())
        self._has_shards()
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
        self.send_frame(
            encode(Hello(self._session, self._replica.interface)), None, _MAX_PRIORITY if self.prioritised else 0
        )

    async def _follow(self) -> None:
        upkeep = asyncio.create_task(self._upkeep.run(self))
        try:
            async for event in self.group.event_batches():
                if isinstance(event, list):
                    if event[0].view > self._replica.view:
                        self._enter_view(event[0])
                    self._messages(event)
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
        self._commands.end(error)
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

    # --- messages ---

    def _messages(self, messages: list[Message]) -> None:
        """In their order."""
        decode, frames = self._replica.decode, self._replica.frames
        for message in messages:
            try:
                sent = decode(message.payload)
            except msgspec.DecodeError:
                self._refused(message)
                continue
            except RecursionError:
                if (deep := self._decoded_deep(message)) is None:
                    continue
                sent = deep
            found = frames.get(type(sent))
            if found is None:
                self._control(message, sent)
                continue
            hosted, frame = found
            if hosted.on is not None and not self._is_for_holders(hosted, message):
                continue
            sender = message.sender
            priority = self._priority_of(message)
            stream = hosted.current.get((sender, priority)) or self._replica.stream(hosted, sender, priority)
            if stream is None:
                continue
            result = hosted.apply(frame, sent, sender, stream)
            if sender == self.me:
                if result is not None and self._is_mine:
                    self._commands.settle(hosted, priority, stream.last, result)
            elif hosted.on is not None:
                self._tell_outcome(hosted, sender, priority, sent.sequence)

    def _decoded_deep(self, message: Message) -> Control | None:
        """A message with many values in values."""
        try:
            found: Control = with_room(self._replica.decode, message.payload)
        except msgspec.DecodeError:
            self._refused(message)
            return None
        return found

    def _is_for_holders(self, hosted: Hosted, message: Message) -> bool:
        """Whether a command is applied now, to an object that only some members hold."""
        assert hosted.on is not None, "else all hold it"
        if not self._reaches(hosted.on, message):
            return False
        if not hosted.held:
            self._shards.hold_back(hosted.name, lambda: self._messages([message]))
        return hosted.held

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
            self._foreign(message)
            return
        hosted, _, sequence, error = found
        if hosted.on is not None and not self._is_for_holders(hosted, message):
            return
        priority = self._priority_of(message)
        stream = self._replica.stream(hosted, message.sender, priority)
        if stream is None:
            return
        result = hosted.refuse(sequence, stream, error)
        if message.sender == self.me:
            if result is not None and self._is_mine:
                self._commands.settle(hosted, priority, sequence, result)
        elif hosted.on is not None:
            self._tell_outcome(hosted, message.sender, priority, sequence)

    def _priority_of(self, message: Message) -> int:
        """By which commands are numbered: each priority has its own numbers, where messages have priorities."""
        return message.priority if self.prioritised else 0

    def _foreign(self, message: Message) -> None:
        """Somebody used the group itself, whose messages are ours: all pass over them. In a log it is another group."""
        problem = f"{message.sender} sent a message that is none of replicated objects; use another group"
        if message.view < self._live_from:
            raise ConfigError(f"{problem}: the log was written by another program")
        if message.sender not in self._foreigners:
            self._foreigners.add(message.sender)
            _log.error("%s; it is passed over, and so are further ones", problem)

    def _control(self, message: Message, sent: Control) -> None:  # noqa: C901, PLR0912 (one case for each frame)
        sender = message.sender
        if message.view < self._live_from and not isinstance(sent, _REPLAYED):
            return  # it was answered, if it had to be, when this member was another process
        match sent:
            case Mark(number) if sender == self.me:
                for on, marks in self._marks.items():
                    marks.delivered(number, by_all=on is None or self._reaches(on, message))
            case Hello(session, interface):
                self._hello(sender, session, interface)
            case Together(parts):
                if all(self._reaches(each.on, message) for each in self._objects_of(parts) if each.on is not None):
                    to = message.destinations
                    self._messages([Message.make(sender, part, destinations=to, view=message.view) for part in parts])
            case Tick(passed):
                for hosted in self._replica.hosted.values():
                    if hosted.held:
                        hosted.tick(passed)
                    else:
                        self._shards.hold_back(hosted.name, partial(hosted.tick, passed))
            case Check(number):
                self._check(sender, number, message.priority)
            case Digests():
                self._compared(sender, sent)
            case Request():
                self.calls.requested(sender, sent, self.members)
            case Answer():
                self.calls.answered(sender, sent)
            case Outcome():
                self._commands.outcome(sent)
            case ShardState():
                self._shards.arrived(sent)
                self._has_shards()

    def _hello(self, sender: str, session: int, interface: str) -> None:
        is_mine = sender == self.me and session == self._session
        if interface != self._replica.interface and not is_mine and not self._begun:
            raise ConfigError(
                f"{sender} has other objects, or other commands, than {self.me}: all members need the same classes"
                + (", also those that wrote the log" if self._has_log else "")
            )
        self._hold_back(self._replica.hello(sender, session))
        self._shards.said_hello(sender)
        if sender == self.me:
            self._is_mine = is_mine
        if is_mine:
            if self._begun:
                self._returned()
            self._begun = True
            if not self._ready.done():
                self._ready.set_result(None)

    def _check(self, checker: str, number: int, priority: int) -> None:
        self._checks.begin(checker, number)
        future = self._check_waiting.get(number) if checker == self.me else None
        if future is not None and not future.done():
            try:
                self._upkeep.require_loadable()
            except ConfigError as error:
                future.set_exception(error)
        self._try_to_send(encode(Digests(checker, number, self._upkeep.digests())), None, priority)

    def _compared(self, sender: str, sent: Digests) -> None:
        verdict = self._checks.add(sender, sent, self.members)
        if verdict is None:
            return
        future = self._check_waiting.get(verdict.number) if verdict.checker == self.me else None
        if future is not None and not future.done():  # who waited may have been cancelled just now
            future.set_result(verdict.diverged)
        self._upkeep.compared(verdict.diverged)
        if verdict.diverged is not None and self.me in verdict.diverged.members:
            raise verdict.diverged

    # --- members come and go ---

    def _enter_view(self, message: Message) -> None:
        """The first message of a view. What a log had before this process began has views of its own."""
        members = self._views.get(message.view, message.destinations)
        self._views = {number: names for number, names in self._views.items() if number > message.view}
        self._hold_back(self._replica.enter_view(message.view, members))

    def _hold_back(self, changes: list[Later]) -> None:
        for each in changes:
            self._shards.hold_back(each.object_name, each.change)

    def _view_changed(self, view: View) -> None:
        self._views[view.number] = view.members
        self._checks.view_changed()
        for future in self._check_waiting.values():
            if not future.done():
                future.set_exception(_ViewChanged)
        self.calls.members_left(view.left)
        for to, state in self._shards.view_changed(view):
            self._try_to_send(encode(state), frozenset({to}), 0)
        if view.members[0] == self.me:  # objects enter the view with a message: here is one
            self._try_to_send(encode(Tick(time())), None, 0)
        if self.me in view.joined:
            self._live_from = view.number
        if self.me in view.joined and self._must_say_hello:
            self._has_shards()
        else:  # other members hold it now: what was sent to those of before may not have been applied
            self._commands.holders_changed()
            for on, marks in self._marks.items():
                if on is not None:
                    marks.returned()

    def _has_shards(self) -> None:
        """If this member, which joined or returned, has all that it is to hold, its commands go on."""
        if self._must_say_hello and not self._shards.lacking:
            self._must_say_hello = False
            try:
                self._say_hello()
            except GroupClosed as error:
                _log.debug("%s has got the state, and leaves: %s", self.me, error)

    def _excluded(self) -> None:
        self.calls.end(Undelivered("the group continued without this member: the answers are not known"))
        self._shards.begin(self.me, joined=True)
        self._must_say_hello = True
        self._live_from = _NEVER

    def _returned(self) -> None:
        self._commands.returned()
        for marks in self._marks.values():
            marks.returned()

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
            if len(value) > self.group.max_message_size - _HEAD:
                error, value = f"TypeError: its result has {len(value)} bytes: too many for a message", b""
            self._try_to_send(encode(Outcome(hosted.name, priority, sequence, error, value)), frozenset({caller}), 0)

    # --- sending ---

    def let_time_pass(self, now: float) -> None:
        """Tells all members the time, which is past a deadline of an object."""
        self.send_frame(encode(Tick(now)), None, 0)

    def send(self, frame: Request | Answer, to: Iterable[str] | None) -> None:
        """For calls: sends a message; an answer goes to all if messages cannot have destinations."""
        if isinstance(frame, Answer) and not self._selective:
            to = None
        self.send_frame(encode(frame), None if to is None else frozenset(to), 0)

    def _present(self, on: frozenset[str]) -> frozenset[str] | None:
        found = on & frozenset(self.members)
        return None if found == frozenset(self.members) else found

    def send_frame(self, payload: bytes, on: frozenset[str] | None, priority: int) -> None:
        """Sends a message to all, or to those of these that are members now."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        to = None if on is None else self._present(on)
        if to is not None and not to:
            raise Undelivered(f"none of {_listed(on)} is a member now")
        self.group.send_nowait(payload, to=to, priority=priority)

    def _try_to_send(self, payload: bytes, on: frozenset[str] | None, priority: int) -> None:
        """What others wait for, as long as this member does not leave."""
        try:
            self.send_frame(payload, on, priority)
        except (GroupError, LocalProtocolError) as error:
            _log.debug("%s has not sent what others asked for: %s", self.me, error)

    def require_open(self) -> None:
        """Raises the reason why nothing can be sent, if there is one."""
        if self._group is None:
            raise LocalProtocolError("it has not joined a group")
        if self.error is not None:
            raise self.error.with_traceback(None)


def _listed(names: frozenset[str] | None) -> str:
    return ", ".join(sorted(names or ()))
