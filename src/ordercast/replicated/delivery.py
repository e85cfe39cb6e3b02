"""The messages of a group, in their order: each command is applied to its object; other frames are passed on."""

import logging
from collections.abc import Callable, Iterator

import msgspec

from ordercast.live.events import Message
from ordercast.model.errors import ConfigError
from ordercast.replicated.command_sender import CommandSender
from ordercast.replicated.frame_sender import FrameSender
from ordercast.replicated.frames import Control, Outcome, encode, with_room
from ordercast.replicated.replica import Hosted, Replica
from ordercast.replicated.shards import Shards

_log = logging.getLogger("ordercast.replicated")
_HEAD = 4096  # bytes of an outcome besides the result


class Delivery:
    """At one member. Used inside one event loop."""

    def __init__(
        self,
        replica: Replica,
        sender: FrameSender,
        commands: CommandSender,
        shards: Shards,
        control: Callable[[Message, Control], None],
    ) -> None:
        """`control`: is given the frames that are no commands."""
        self._replica, self._sender, self._commands, self._shards = replica, sender, commands, shards
        self._control = control
        self._me, self._prioritised = "", False
        self._foreigners: set[str] = set()
        self.live_from = 0
        """The view that was entered by this process: messages of views before it come from a log."""
        self.is_mine = False
        """What comes from this member now was sent by this process, not by one that it was before."""

    def begin(self, view: int) -> None:
        """The group was joined with this view."""
        self._me, self._prioritised, self.live_from = self._sender.me, self._sender.prioritised, view

    def messages(self, messages: list[Message]) -> None:
        """Some messages, in their order."""
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
            if sender == self._me:
                if result is not None and self.is_mine:
                    self._commands.settle(hosted, priority, stream.last, result)
            elif hosted.on is not None:
                self._tell_outcome(hosted, sender, priority, sent.sequence)

    def together(self, message: Message, parts: list[bytes]) -> None:
        """Commands to several objects, at the place of one message: all of them are applied, or none."""
        if all(self.reaches(each.on, message) for each in self._objects_of(parts) if each.on is not None):
            sender, to, view = message.sender, message.destinations, message.view
            self.messages([Message.make(sender, part, destinations=to, view=view) for part in parts])

    def reaches(self, on: frozenset[str], message: Message) -> bool:
        """Whether a message goes to all members that hold an object.

        One of them may have joined after it was sent. Then none applies it, and its sender sends it again.
        """
        return all(name in message.destinations for name in self._sender.members if name in on)

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
        if not self.reaches(hosted.on, message):
            return False
        if not hosted.held:
            self._shards.hold_back(hosted.name, lambda: self.messages([message]))
        return hosted.held

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
        if message.sender == self._me:
            if result is not None and self.is_mine:
                self._commands.settle(hosted, priority, sequence, result)
        elif hosted.on is not None:
            self._tell_outcome(hosted, message.sender, priority, sequence)

    def _priority_of(self, message: Message) -> int:
        """By which commands are numbered: each priority has its own numbers, where messages have priorities."""
        return message.priority if self._prioritised else 0

    def _foreign(self, message: Message) -> None:
        """Somebody used the group itself, whose messages are ours: all pass over them. In a log it is another group."""
        problem = f"{message.sender} sent a message that is none of replicated objects; use another group"
        if message.view < self.live_from:
            raise ConfigError(f"{problem}: the log was written by another program")
        if message.sender not in self._foreigners:
            self._foreigners.add(message.sender)
            _log.error("%s; it is passed over, and so are further ones", problem)

    def _tell_outcome(self, hosted: Hosted, caller: str, priority: int, sequence: int) -> None:
        """The oldest holder tells a caller that is none what became of its command, also if it comes again."""
        assert hosted.on is not None, "all hold it"
        members = self._sender.members
        if caller in hosted.on or caller not in members:
            return
        if next((name for name in members if name in hosted.on), None) != self._me:
            return
        stream = self._replica.stream(hosted, caller, priority)
        assert stream is not None, "it has been applied"
        if sequence <= stream.last:
            error, value = stream.results.get(sequence, ("", b""))
            if len(value) > self._sender.group.max_message_size - _HEAD:
                error, value = f"TypeError: its result has {len(value)} bytes: too many for a message", b""
            outcome = Outcome(hosted.name, priority, sequence, error, value)
            self._sender.try_to_send(encode(outcome), frozenset({caller}), 0)
