"""A class whose commands are applied by all members of a group in one order: what its author writes.

The annotated fields of the class are its state: msgspec encodes them for members that join, and compares them between
members. A command changes the fields; it must be deterministic, so time, chance and the caller are in `context`.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import wraps
from random import Random
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from ordercast.model.errors import ConfigError, GroupError, LocalProtocolError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)
_S = TypeVar("_S", bound="Replicated")
_T = TypeVar("_T")


class CommandId(NamedTuple):
    """Which command: kept by a caller, it finds out later whether the command was applied; see `Member.applied`."""

    object_name: str
    member: str
    session: int
    """Drawn by each process when it joins."""
    priority: int
    sequence: int
    """Of this member's commands to this object with this priority, from 1."""


class CallStream(Protocol):
    """The commands of one member to one object with one priority."""

    def command_id(self, sequence: int) -> CommandId:
        """Which command has this number."""


class Call(asyncio.Future[_R]):
    """A command that was sent. Await it for its result, or for the exception that it raised.

    A call that is cancelled, or not awaited, is applied nevertheless.
    """

    # One object for each command that waits: hundreds of thousands of them are made each second.
    __slots__ = ("_sequence", "_stream")
    _sequence: int
    _stream: CallStream

    @property
    def id(self) -> CommandId:
        """Which command it is."""
        return self._stream.command_id(self._sequence)


class Context(msgspec.Struct):
    """What a command may know besides its arguments and the state: the same at all members that apply it."""

    caller: str = ""
    """The member that sent the command; in `left` and `tick`, nobody."""
    time: float = 0.0
    """Seconds since the epoch: the latest that the callers of this object had. It never goes back."""
    members: tuple[str, ...] = ()
    """The members of the view in which the command is applied, the oldest first."""
    number: int = 0
    """The number of this command among all of this object, from 1."""
    _generator: tuple[int, Random] | None = None

    @property
    def random(self) -> Random:
        """Random numbers, the same ones at all members. Not for secrets."""
        if self._generator is None or self._generator[0] != self.number:
            self._generator = self.number, Random(f"{self.number} {self.caller} {self.time}")
        return self._generator[1]


class CommandHost(Protocol):
    """Where an object lives: a member of a group."""

    def submit(self, hosted: Any, name: str, values: tuple[Any, ...]) -> Call[Any]:
        """Sends a command."""

    def next_id(self, hosted: Any, name: str) -> CommandId:
        """Which command the next one with this name would be."""

    async def fresh(self, hosted: Any) -> None:
        """Returns when everything is applied here that was completed anywhere before the call."""


class Binding:
    """What an object has while it lives at a member, besides its state."""

    def __init__(self, host: CommandHost, hosted: Any) -> None:
        self.host, self.hosted = host, hosted
        self.context = Context()
        self.applies = False
        """A command is being applied."""
        self.waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self.watching: list[tuple[Callable[[Any], bool], asyncio.Queue[Any]]] = []
        self.ended: BaseException | None = None

    def changed(self) -> None:
        """The state may have changed: whoever waits for it looks again."""
        for condition, future in self.waiting:
            if future.done():
                continue
            try:
                value = condition()
            except Exception as error:  # of who waits: the object goes on
                future.set_exception(_raisable(error))
            else:
                if value:
                    future.set_result(value)
        self.waiting = [each for each in self.waiting if not each[1].done()]

    def end(self, why: BaseException) -> None:
        """Nothing changes any more."""
        for _, future in self.waiting:
            if not future.done():
                future.set_exception(why)
        self.waiting = []
        self.ended = why
        for _, queue in self.watching:
            queue.put_nowait(why)

    def tell(self, change: object) -> None:
        """Hands a change to those who want it. One that cannot say whether it does is told so, and nothing more."""
        for entry in tuple(self.watching):
            accept, queue = entry
            try:
                wanted = accept(change)
            except Exception as error:  # of who iterates: the command goes on
                queue.put_nowait(_raisable(error))
                with suppress(ValueError):
                    self.watching.remove(entry)
                continue
            if wanted:
                queue.put_nowait(change)


def _raisable(error: Exception) -> Exception:
    """A future does not take `StopIteration`."""
    return RuntimeError(f"StopIteration was raised: {error}") if isinstance(error, StopIteration) else error


class Changes:
    """Changes of an object, to iterate over with `async for`. Raises the reason when the group ends."""

    def __init__(self, binding: Binding, accept: Callable[[Any], bool]) -> None:
        self._binding, self._entry = binding, (accept, asyncio.Queue[Any]())
        binding.watching.append(self._entry)
        if binding.ended is not None:
            self._entry[1].put_nowait(binding.ended)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        change = await self._entry[1].get()
        if isinstance(change, BaseException):
            self._entry[1].put_nowait(change)
            raise change.with_traceback(None)
        return change

    def __del__(self) -> None:
        """Nobody iterates any more."""
        with suppress(ValueError):
            self._binding.watching.remove(self._entry)


class Replicated(msgspec.Struct, dict=True, eq=False):
    """The base class of replicated objects. The annotated fields of a subclass are its state.

        class Store(Replicated):
            values: dict[str, str] = {}

            @command
            def put(self, key: str, value: str) -> None:
                self.values[key] = value

            @query
            def get(self, key: str) -> str | None:
                return self.values.get(key)

    `join` makes it live at a member of a group. Fields, arguments and results are of types that msgspec encodes. Only
    commands, `left` and `tick` may change the fields, and only by what is the same at all members.
    """

    @property
    def context(self) -> Context:
        """Time, caller and members, for a command that is being applied."""
        found = self.__dict__.get("context")
        return found if isinstance(found, Context) else self._binding.context

    def left(self, member: str) -> None:
        """A member left the group, or failed: called at the same place of the order at all members."""

    def tick(self) -> None:
        """Time has passed: called at the same place of the order at all members, some time after `deadline`."""

    def deadline(self) -> float | None:
        """The group's time at which `tick` is to be called; None: not at all."""
        return None

    def loaded(self, old: Any) -> None:
        """The state was replaced by that of another member; `old`: an object with the fields from before."""

    async def until(self, condition: Callable[[], _T | None]) -> _T:
        """Waits until a condition on the state is true here; its value. It is asked after each command."""
        found = condition()
        if found:
            return found
        if self._binding.ended is not None:
            raise self._binding.ended.with_traceback(None)
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._binding.waiting.append((condition, future))
        return await future

    def tell(self, change: object) -> None:
        """Hands a change to everybody who iterates over `changes` here."""
        self.__dict__["binding"].tell(change)

    @property
    def is_watched(self) -> bool:
        """Whether anybody here iterates over `changes`: else there is no need to `tell`."""
        return bool(self.__dict__["binding"].watching)

    def changes(self, accept: Callable[[Any], bool]) -> AsyncIterator[Any]:
        """What commands `tell` from now on, here, if it is accepted."""
        return Changes(self._binding, accept)

    @property
    def _binding(self) -> Binding:
        binding = self.__dict__.get("binding")
        if binding is None:
            raise LocalProtocolError(
                f"this {type(self).__name__} lives in no group; ordercast.replicated.join(GROUP, it, ...) joins one"
            )
        assert isinstance(binding, Binding)
        return binding


class CommandSpec:
    """A command of a class: its parameters, and how it is applied."""

    def __init__(self, method: Callable[..., Any], priority: int) -> None:
        self.method, self.priority, self.name = method, priority, method.__name__
        if not runs_when_called(method):
            raise ConfigError(f"the command {self.name} must be a plain method: it is applied in one go")
        self.signature = inspect.signature(method)
        parameters = list(self.signature.parameters.values())[1:]
        for each in parameters:
            if each.kind in {each.VAR_POSITIONAL, each.VAR_KEYWORD}:
                raise ConfigError(f"the command {self.name} has a parameter *{each.name}: name each parameter")
        self.names = tuple(each.name for each in parameters)
        self.keywords = tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
        self.positional = len(self.names) - len(self.keywords)
        defaults = tuple(each.default for each in parameters if each.default is not each.empty)
        self._missing = (
            {}
            if self.keywords
            else {len(self.names) - n: defaults[len(defaults) - n :] for n in range(len(defaults) + 1)}
        )
        """By the number of arguments that are given: the defaults of the others."""

    def values(self, target: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call, one for each parameter."""
        if not kwargs:  # much faster than by the signature
            missing = self._missing.get(len(args))
            if missing is not None:
                return args + missing
        bound = self.signature.bind(target, *args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments[name] for name in self.names)

    def apply(self, target: object, values: list[Any]) -> Any:
        """Calls the method, which has parameters that are given by name."""
        named = dict(zip(self.keywords, values[self.positional :], strict=True))
        return self.method(target, *values[: self.positional], **named)


def runs_when_called(method: Callable[..., Any]) -> bool:
    """It is no coroutine function and no generator, which only begin when they are called."""
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return not any(is_kind(method) for is_kind in kinds)


@overload
def command(method: Callable[Concatenate[_S, _P], _R], /) -> Callable[Concatenate[_S, _P], Call[_R]]: ...
@overload
def command(
    *, priority: int
) -> Callable[[Callable[Concatenate[_S, _P], _R]], Callable[Concatenate[_S, _P], Call[_R]]]: ...
def command(method: Any = None, /, *, priority: int = 0) -> Any:
    """Makes a method a command: calling it sends it, and all members apply it in one order.

    The call returns at once; `await` it for the result. An exception that the method raises is the same at all members,
    and is raised by the caller's `await` only. `priority`: 0 to 255, used in groups of the order "priority".
    """
    if method is None:
        return lambda found: _command(found, priority)
    return _command(method, priority)


def _command(method: Callable[..., Any], priority: int) -> Callable[..., Call[Any]]:
    if not 0 <= priority <= 255:
        raise ConfigError(f"a priority is 0 to 255, not {priority}")
    spec = CommandSpec(method, priority)
    name = spec.name

    @wraps(method)
    def send(self: Replicated, *args: Any, **kwargs: Any) -> Call[Any]:
        binding = self.__dict__.get("binding")
        if binding is None:
            binding = self._binding
        if binding.applies:
            raise LocalProtocolError(f"{name} is a command: one command cannot send another; call a plain method")
        return binding.host.submit(binding.hosted, name, spec.values(self, args, kwargs))

    send.spec = spec  # type: ignore[attr-defined]
    return send


class Query(Protocol[_P, _R_co]):
    """A method that reads: here at once, or, with `fresh=True`, after its own place in the order."""

    @overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    @overload
    def __call__(self, *args: Any, fresh: Literal[True], **kwargs: Any) -> Awaitable[_R_co]: ...


def query(method: Callable[Concatenate[_S, _P], _R]) -> Query[_P, _R]:
    """Makes a method a query, which must not change the state.

    `store.get(key)` returns what this member has now, which may be old. `await store.get(key, fresh=True)` is
    linearizable: it sees every command that was completed anywhere before the call.
    """

    @wraps(method)
    def read(self: Any, *args: Any, fresh: bool = False, **kwargs: Any) -> Any:
        if fresh:
            return _read_fresh(self, method, args, kwargs)
        return method(self, *args, **kwargs)

    return read  # type: ignore[return-value] # a function binds its object itself


async def _read_fresh(target: Any, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    binding = target._binding  # noqa: SLF001 (part of the class)
    await binding.host.fresh(binding.hosted)
    return method(target, *args, **kwargs)


def undo_later(asked: "asyncio.Future[_T]", undo: Callable[[_T], object]) -> None:
    """Takes back what a call asked for that was cancelled, as soon as it is known what that is."""

    def known(_: object) -> None:
        try:
            undo(asked.result())
        except (GroupError, asyncio.CancelledError):
            return  # over for this member: it has nothing any more

    asked.add_done_callback(known)


def next_id(method: object) -> CommandId:
    """Which command the next call of this one would be."""
    spec, target = getattr(method, "spec", None), getattr(method, "__self__", None)
    if not isinstance(spec, CommandSpec) or not isinstance(target, Replicated):
        raise LocalProtocolError(f"{getattr(method, '__name__', method)} is no command of an object, such as store.put")
    binding = target._binding  # noqa: SLF001 (part of the class)
    return binding.host.next_id(binding.hosted, spec.name)


def commands_of(kind: type[Replicated]) -> dict[str, CommandSpec]:
    """The commands of a class, by name."""
    found = {name: getattr(getattr(kind, name, None), "spec", None) for name in sorted(dir(kind))}
    return {name: spec for name, spec in found.items() if isinstance(spec, CommandSpec)}
