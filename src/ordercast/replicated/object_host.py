"""The objects of one member in its group: follows the group, and tells the parts what it brings."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from functools import partial
from time import time

from ordercast.live.events import Excluded, Message, View
from ordercast.live.group import Group
from ordercast.model.errors import ConfigError, Diverged, GroupClosed, GroupError, LocalProtocolError, Undelivered
from ordercast.replicated.calls import Answering, Calls
from ordercast.replicated.command_sender import CommandSender
from ordercast.replicated.delivery import Delivery
from ordercast.replicated.frame_sender import FrameSender
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
from ordercast.replicated.objects import CommandId, Replicated
from ordercast.replicated.reads import Reads
from ordercast.replicated.replica import Later, Replica
from ordercast.replicated.shards import Shards
from ordercast.replicated.state_checks import StateChecks
from ordercast.replicated.upkeep import Upkeep

_log = logging.getLogger("ordercast.replicated")
_UNORDERED = {"spo", "po"}
_REPLAYED = (Hello, Tick, Together)
_NEVER = 1 << 62


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
        self._has_log = has_log
        self._replica = Replica(objects, on, self)
        self._session = secrets.randbits(62) + 1
        self._sender = FrameSender(has_log=has_log)
        self._commands = CommandSender(self._sender, self._replica, self._session)
        self.submit, self.together = self._commands.submit, self._commands.together
        self.next_id = self._commands.next_id
        self.calls = Calls(self._sender, answering)
        self._reads = Reads(self._sender)
        self.fresh = self._reads.fresh
        self._upkeep = Upkeep(self._replica, check_interval)
        self._state_checks = StateChecks(self._sender, self._upkeep)
        self.check = self._state_checks.check
        self._shards = Shards(self._replica)
        self._delivery = Delivery(self._replica, self._sender, self._commands, self._shards, self._control)
        self._views: dict[int, tuple[str, ...]] = {}
        self._must_say_hello, self._begun, self._loaded = True, False, False
        self._following: asyncio.Task[None] | None = None

    @property
    def me(self) -> str:
        """The name of this member."""
        return self._sender.me

    @property
    def error(self) -> Exception | None:
        """Why nothing can be sent any more."""
        return self._sender.error

    @property
    def group(self) -> Group:
        """The group that was joined."""
        return self._sender.group

    @property
    def members(self) -> tuple[str, ...]:
        """As of what was applied here, the oldest first."""
        return self._sender.members

    def require_open(self) -> None:
        """Raises the reason why nothing can be sent, if there is one."""
        self._sender.require_open()

    async def applied(self, command: CommandId) -> bool | None:
        """See `Member.applied`."""
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

    async def durable(self) -> None:
        """See `Member.durable`."""
        while True:
            self.require_open()
            receipt = self.group.send_nowait(encode(Mark(0)))  # a place behind all that was applied here
            try:
                await receipt.durable()
            except Undelivered:
                continue
            return

    def let_time_pass(self, now: float) -> None:
        """Tells all members the time, which is past a deadline of an object."""
        self._sender.send_frame(encode(Tick(now)), None, 0)

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
        protocol = group.stats().protocol
        self._sender.use(group, protocol)
        if protocol in _UNORDERED:
            await group.leave()
            raise ConfigError("replicated objects need one order: 'sequenced', 'total' or 'priority', not 'partial'")
        self._delivery.begin(group.view.number)
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

    async def _follow(self) -> None:
        upkeep = asyncio.create_task(self._upkeep.run(self))
        try:
            async for event in self.group.event_batches():
                if isinstance(event, list):
                    if event[0].view > self._replica.view:
                        self._enter_view(event[0])
                    self._delivery.messages(event)
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
        self._sender.stop(error)
        self._commands.end(error)
        self.calls.end(error)
        self.calls.stop()
        self._reads.end(error)
        self._state_checks.end(error)
        if not self._ready.done():
            self._ready.set_exception(error)
        for hosted in self._replica.hosted.values():
            hosted.binding.end(error)

    # --- messages that are no commands ---

    def _control(self, message: Message, sent: Control) -> None:  # noqa: C901, PLR0912 (one case for each frame)
        sender = message.sender
        if message.view < self._delivery.live_from and not isinstance(sent, _REPLAYED):
            return  # it was answered, if it had to be, when this member was another process
        match sent:
            case Mark(number) if sender == self.me:
                self._reads.delivered(number, lambda on: self._delivery.reaches(on, message))
            case Hello(session, interface):
                self._hello(sender, session, interface)
            case Together(parts):
                self._delivery.together(message, parts)
            case Tick(passed):
                for hosted in self._replica.hosted.values():
                    if hosted.held:
                        hosted.tick(passed)
                    else:
                        self._shards.hold_back(hosted.name, partial(hosted.tick, passed))
            case Check(number):
                self._state_checks.requested(sender, number, message.priority)
            case Digests():
                self._state_checks.compared(sender, sent)
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
            self._delivery.is_mine = is_mine
        if is_mine:
            if self._begun:
                self._returned()
            self._begun = True
            if not self._ready.done():
                self._ready.set_result(None)

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
        self._state_checks.view_changed()
        self.calls.members_left(view.left)
        for to, state in self._shards.view_changed(view):
            self._sender.try_to_send(encode(state), frozenset({to}), 0)
        if view.members[0] == self.me:  # objects enter the view with a message: here is one
            self._sender.try_to_send(encode(Tick(time())), None, 0)
        if self.me in view.joined:
            self._delivery.live_from = view.number
        if self.me in view.joined and self._must_say_hello:
            self._has_shards()
        else:  # other members hold it now: what was sent to those of before may not have been applied
            self._commands.holders_changed()
            self._reads.holders_changed()

    def _has_shards(self) -> None:
        """If this member, which joined or returned, has all that it is to hold, its commands go on."""
        if self._must_say_hello and not self._shards.lacking:
            self._must_say_hello = False
            hello = Hello(self._session, self._replica.interface)
            try:
                self._sender.send_frame(encode(hello), None, self._sender.first_priority)
            except GroupClosed as error:
                _log.debug("%s has got the state, and leaves: %s", self.me, error)

    def _excluded(self) -> None:
        self.calls.end(Undelivered("the group continued without this member: the answers are not known"))
        self._shards.begin(self.me, joined=True)
        self._must_say_hello = True
        self._delivery.live_from = _NEVER

    def _returned(self) -> None:
        self._commands.returned()
        self._reads.returned()
