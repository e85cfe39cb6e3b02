"""The messages of members with replicated objects. Commands have frames of their own, made for each; see `replica`."""

import sys
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")
_ROOM = 3000  # levels; a thread's stack of 8 MiB has room for more than twice as many
_raised = RLock()  # the limit is that of all threads, and each may have members of its own

FIRST_COMMAND = 16
"""Tags below it are of the frames here."""
COMMANDS_OF_AN_OBJECT = 256


class Hello(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """A process begins, or has returned: its commands from here on are numbered in this session."""

    session: int
    interface: str
    """Of its objects and their commands: all must have the same."""


class Mark(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """A place in the order, for the reads of its sender."""

    number: int


class Tick(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """Time has passed."""

    time: float


class Check(msgspec.Struct, array_like=True, tag=3, frozen=True):
    """All are to compare their states as they are here."""

    number: int


class Digests(msgspec.Struct, array_like=True, tag=4, frozen=True):
    """The sender's states as they were at a check, by object."""

    checker: str
    number: int
    digests: dict[str, bytes]


class Request(msgspec.Struct, array_like=True, tag=5, frozen=True):
    """An application asks others."""

    number: int
    payload: bytes


class Answer(msgspec.Struct, array_like=True, tag=6, frozen=True):
    """The answer to a request, or why there is none."""

    caller: str
    number: int
    payload: bytes
    error: str = ""


class Together(msgspec.Struct, array_like=True, tag=7, frozen=True):
    """Commands to several objects at one place of the order."""

    parts: list[bytes]


class Outcome(msgspec.Struct, array_like=True, tag=8, frozen=True):
    """To a caller that does not hold the object: what became of its command."""

    object_name: str
    priority: int
    sequence: int
    error: str
    value: bytes


class ShardState(msgspec.Struct, array_like=True, tag=9, frozen=True):
    """The state of an object that only some members hold, for one that has joined with the view of this number."""

    object_name: str
    view: int
    state: bytes


Control = Hello | Mark | Tick | Check | Digests | Request | Answer | Together | Outcome | ShardState

encode = msgspec.msgpack.Encoder().encode
"""To the bytes of a message."""


def with_room(function: Callable[..., _T], *arguments: Any) -> _T:
    """Calls it, with more room for values in values if there was too little.

    How deep Python may go depends on how deep it is already: what one member could encode, all must be able to decode.
    """
    try:
        return function(*arguments)
    except RecursionError:
        with _raised:
            limit = sys.getrecursionlimit()
            sys.setrecursionlimit(limit + _ROOM)
            try:
                return function(*arguments)
            finally:
                sys.setrecursionlimit(limit)


def failed_part(payload: bytes) -> tuple[int, int] | None:
    """Tag and sequence of a command whose arguments are of other types; None: no command at all."""
    try:
        found: Any = with_room(msgspec.msgpack.decode, payload)
    except msgspec.DecodeError:
        return None
    if not isinstance(found, list) or len(found) < 4 or not all(type(each) is int for each in found[:3]):
        return None
    return found[0], found[1]
