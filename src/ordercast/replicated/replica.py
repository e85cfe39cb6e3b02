"""The objects of one member, and how commands change them: without clock, socket or event loop."""

import logging
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial, reduce
from hashlib import blake2b
from operator import or_
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from ordercast.model.errors import ConfigError
from ordercast.replicated.declarations import require_sound, shape, state_shape, types_of
from ordercast.replicated.frames import COMMANDS_OF_AN_OBJECT, FIRST_COMMAND, Control, encode, failed_part, with_room
from ordercast.replicated.objects import Binding, CommandHost, CommandSpec, Context, Replicated, commands_of
from ordercast.replicated.results import NOTHING, Result, ResultType, decode, kept, kept_error, told
from ordercast.replicated.sessions import Sessions, Stream

_log = logging.getLogger("ordercast.replicated")
_HEAD = 3  # fields of a command before its arguments


class HostedState(msgspec.Struct, array_like=True):
    """An object with what belongs to it, for a member that joins."""

    value: msgspec.Raw
    time: float
    number: int
    streams: dict[int, dict[int, Stream]]


class Snapshot(msgspec.Struct, array_like=True):
    """All that a member that joins is given, or that a log keeps."""

    objects: dict[str, HostedState]
    sessions: dict[str, list[int]]
    interface: str
    view: int
    members: tuple[str, ...]
    present: list[str]


class Later(NamedTuple):
    """A change of an object whose state is not here yet: it follows that."""

    object_name: str
    change: Callable[[], None]


class Frame(NamedTuple):
    """How a command travels."""

    spec: CommandSpec
    kind: type[msgspec.Struct]
    """Its fields: sequence, what the caller has, time, arguments."""
    tag: int
    result: ResultType
    shapes: list[tuple[str, Any]]
    """Of its parameters and its result: all members must have the same."""


class Hosted:
    """An object at this member."""

    def __init__(self, name: str, target: Replicated, index: int, on: frozenset[str] | None) -> None:
        """`on`: the members that hold it; None: all."""
        self.name, self.target, self.on = name, target, on
        self.held = True
        """This member holds it."""
        self.frames: dict[str, Frame] = {}
        self.kinds: dict[type[msgspec.Struct], Frame] = {}
        require_sound(type(target))
        for place, (each, spec) in enumerate(commands_of(type(target)).items()):
            tag = FIRST_COMMAND + index * COMMANDS_OF_AN_OBJECT + place
            frame = _frame(name, spec, tag)
            self.frames[each] = self.kinds[frame.kind] = frame
        self.streams: dict[int, dict[int, Stream]] = {}
        self.current: dict[tuple[str, int], Stream] = {}
        """Of the current sessions, by member and priority."""
        self.context = Context()

    def bind(self, host: CommandHost) -> None:
        """The object lives here from now on."""
        binding = Binding(host, self)
        binding.context = self.context
        self.target.__dict__["binding"] = binding
        self.target.__dict__["context"] = self.context  # asked for by most commands
        self.binding = binding

    def state(self) -> HostedState:
        """As it is now."""
        return HostedState(
            msgspec.Raw(with_room(encode, self.target)), self.context.time, self.context.number, self.streams
        )

    def digest(self) -> bytes:
        """Of the state, and of which commands it contains."""
        applied = {
            session: {priority: stream.last for priority, stream in streams.items()}
            for session, streams in self.streams.items()
        }
        place = self.context.time, self.context.number, applied
        try:
            digested = with_room(_digested, self.target, place)
        except MemoryError:
            raise  # of this member alone
        except Exception as error:  # see `unloadable`
            digested = type(error).__name__.encode()
        return blake2b(digested, digest_size=16).digest()

    def unloadable(self) -> str | None:
        """Why a member that joins could not be given the state, if so: a command has put something into it."""
        try:
            with_room(decode, with_room(encode, self.target), type(self.target))
        except MemoryError:
            raise
        except Exception as error:
            return str(error)
        return None

    def no_fields(self) -> list[str]:
        """Attributes that were set and are no fields, so that members that join do not get them."""
        return [name for name in vars(self.target) if name not in {"binding", "context"} and not name.startswith("_")]

    def load(self, state: HostedState) -> None:
        """Replaces the state."""
        new = with_room(decode, state.value, type(self.target))
        old = copy(self.target)
        for field in self.target.__struct_fields__:
            setattr(self.target, field, getattr(new, field))
        self.context.time, self.context.number = state.time, state.number
        self.streams, self.current, self.held = state.streams, {}, True
        self._guarded(lambda: self.target.loaded(old), of_all=False)

    def member_left(self, member: str) -> None:
        """At its place in the order."""
        self._guarded(lambda: self.target.left(member))

    def tick(self, time: float) -> None:
        """At its place in the order."""
        self.context.time = max(self.context.time, time)
        self._guarded(self.target.tick)

    def _guarded(self, hook: Callable[[], None], *, of_all: bool = True) -> None:
        """An exception in a hook is the same at all members, and has no caller that it could be told.

        `of_all`: all members call it here, so it counts as a command, with random numbers of its own.
        """
        self.context.caller = ""
        self.context.number += of_all
        self.binding.applies = True
        try:
            hook()
        except (KeyboardInterrupt, MemoryError):
            raise  # of this member alone
        except BaseException:
            _log.exception("a hook of %s raised an exception; the state is as it left it", self.name)
        finally:
            self.binding.applies = False
        self.binding.changed()

    def apply(self, frame: Frame, sent: msgspec.Struct, sender: str, stream: Stream) -> Result | None:
        """Applies a command, if it is the next one of its stream; else it comes again, or another is missing."""
        sequence, acknowledged, time, *values = astuple(sent)
        if sequence != stream.last + 1:
            return None
        context, binding, spec = self.context, self.binding, frame.spec
        context.number += 1
        context.caller = sender
        if time > context.time:
            context.time = time
        binding.applies = True
        try:
            value = spec.apply(self.target, values) if spec.keywords else spec.method(self.target, *values)
            error = None
        except (KeyboardInterrupt, MemoryError):
            raise  # of this member alone
        except BaseException as raised:  # of the command, also if it is one of asyncio or sys: nothing is awaited here
            value, error = None, raised
        finally:
            binding.applies = False
        stream.last = sequence
        if acknowledged >= stream.kept_from:
            stream.acknowledge(acknowledged)
        result = NOTHING
        if error is not None:
            result = kept_error(stream, sequence, error)
        elif value is not None:
            result = kept(frame.result, stream, sequence, value)
        if binding.waiting:
            binding.changed()
        return result

    def refuse(self, sequence: int, stream: Stream, error: Exception) -> Result | None:
        """A command whose arguments have other types: it counts as applied, with this error."""
        if sequence != stream.last + 1:
            return None
        stream.last = sequence
        return kept_error(stream, sequence, error)

    def result_of(self, stream: Stream, sequence: int, frame: Frame) -> Result:
        """What became of a command that was applied before, here or at another member."""
        error, encoded = stream.results.get(sequence, ("", b""))
        return told(error, encoded, frame.result)


class Replica:
    """All objects of one member."""

    def __init__(self, objects: Mapping[str, Replicated], on: Mapping[str, frozenset[str]], host: CommandHost) -> None:
        self.hosted = {
            name: Hosted(name, objects[name], index, on.get(name)) for index, name in enumerate(sorted(objects))
        }
        self.sessions = Sessions()
        self.view = -1
        """The number of the view that the last message was delivered in."""
        self.members: tuple[str, ...] = ()
        """Of that view."""
        self._present: set[str] = set()  # members that have said hello, and have not left since
        self.frames: dict[type[msgspec.Struct], tuple[Hosted, Frame]] = {}
        for each in self.hosted.values():
            each.bind(host)
            self.frames |= {kind: (each, frame) for kind, frame in each.kinds.items()}
        self.decode = msgspec.msgpack.Decoder(reduce(or_, self.frames, Control)).decode
        self._by_tag = {_tag(kind): found for kind, found in self.frames.items()}
        states = [
            (name, state_shape(type(each.target)), None if each.on is None else sorted(each.on))
            for name, each in sorted(self.hosted.items())
        ]
        commands = sorted((frame.tag, frame.spec.name, frame.shapes) for _, frame in self.frames.values())
        self.interface = blake2b(encode((states, commands)), digest_size=8).hexdigest()

    def command(self, payload: bytes) -> tuple[Hosted, Frame, int, Exception] | None:
        """The command, and its sequence number, of a message that could not be decoded, if it is one."""
        found = failed_part(payload)
        if found is None or found[0] not in self._by_tag:
            return None
        hosted, frame = self._by_tag[found[0]]
        error = TypeError(f"the arguments of {frame.spec.name} have other types than its parameters")
        return hosted, frame, found[1], error

    def stream(self, hosted: Hosted, sender: str, priority: int) -> Stream | None:
        """Of the current session of a member; None: it has not said hello yet."""
        stream = hosted.current.get((sender, priority))
        if stream is None:
            session = self.sessions.current(sender)
            if session is None:
                return None
            stream = hosted.streams.setdefault(session, {}).setdefault(priority, Stream())
            hosted.current[sender, priority] = stream
        return stream

    def hello(self, sender: str, session: int) -> list[Later]:
        """A session begins, or goes on.

        One that was not seen to leave has left nevertheless: no message came between its end and its return. Returns
        what is still to be done to objects whose state is not here yet.
        """
        later = self._leaves([sender] if sender in self._present else [])
        self._present.add(sender)
        forgotten = self.sessions.begin(sender, session)
        for hosted in self.hosted.values():
            hosted.current = {key: stream for key, stream in hosted.current.items() if key[0] != sender}
            if forgotten is not None:
                hosted.streams.pop(forgotten, None)
        return later

    def enter_view(self, number: int, members: tuple[str, ...]) -> list[Later]:
        """Before the first message that was delivered in another view; returns the same.

        Views without messages are passed over: a log has messages, and what is applied from it must be the same.
        """
        gone = [name for name in self.members if name not in members]
        self.view, self.members = number, members
        for hosted in self.hosted.values():
            hosted.context.members = members
        self._present.difference_update(gone)
        return self._leaves(gone)

    def _leaves(self, gone: list[str]) -> list[Later]:
        changes = [(hosted, partial(hosted.member_left, name)) for name in gone for hosted in self.hosted.values()]
        for hosted, change in changes:
            if hosted.held:
                change()
        return [Later(hosted.name, change) for hosted, change in changes if not hosted.held]

    def save(self) -> bytes:
        """All that is held here."""
        objects = {name: hosted.state() for name, hosted in self.hosted.items() if hosted.held and hosted.on is None}
        present = sorted(self._present)
        return with_room(
            encode, Snapshot(objects, self.sessions.numbers, self.interface, self.view, self.members, present)
        )

    def load(self, saved: bytes) -> None:
        """Replaces everything that all members hold."""
        snapshot: Snapshot = with_room(decode, saved, Snapshot)
        if snapshot.interface != self.interface:
            raise ConfigError("the group has other objects, or other commands: all members need the same classes")
        self.view, self.members, self._present = snapshot.view, snapshot.members, set(snapshot.present)
        for name, state in snapshot.objects.items():
            self.hosted[name].context.members = self.members
            self.hosted[name].load(state)
        self.sessions.numbers = snapshot.sessions


def _digested(target: Replicated, place: tuple[Any, ...]) -> bytes:
    # The encoder itself sorts sets only if no dictionary has other keys than strings.
    try:
        whole = msgspec.to_builtins((target, *place), order="deterministic")
    except TypeError:  # what has values of several types cannot be sorted
        whole = _comparable(target), *place
    return encode(whole)


def _comparable(value: Any) -> Any:
    """The same for equal states: sets are sorted by how their values are encoded, dictionaries came in one order."""
    if isinstance(value, msgspec.Struct):
        return [_comparable(getattr(value, field)) for field in value.__struct_fields__]
    if isinstance(value, set | frozenset):
        return sorted(encode(_comparable(each)) for each in value)
    if isinstance(value, dict):
        return [(_comparable(key), _comparable(each)) for key, each in value.items()]
    return [_comparable(each) for each in value] if isinstance(value, list | tuple) else value


def _tag(kind: type[msgspec.Struct]) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int)
    return tag


def _frame(owner: str, spec: CommandSpec, tag: int) -> Frame:
    types = types_of(owner, spec)
    fields = [("sequence", int), ("acknowledged", int), ("time", float)]
    fields += [(f"argument_{place}", types[name]) for place, name in enumerate(spec.names)]
    kind = msgspec.defstruct(f"{owner}.{spec.name}", fields, array_like=True, tag=tag, frozen=True, gc=False)
    return Frame(spec, kind, tag, ResultType(types["return"]), [(name, shape(each)) for name, each in types.items()])
