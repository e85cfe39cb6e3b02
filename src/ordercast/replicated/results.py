"""What became of a command: its value or exception for the caller; text and bytes that others can hand on."""

from types import UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from ordercast.model.errors import CommandFailed
from ordercast.replicated.frames import encode, with_room
from ordercast.replicated.sessions import Stream

_PLAIN = frozenset({bool, int, float, str, bytes})
_TEXT = 2000  # characters of an exception's text that are kept


class Result(NamedTuple):
    """What became of a command."""

    error: Exception | None
    value: Any


NOTHING = Result(None, None)


class ResultType:
    """What a command returns, as it is annotated."""

    def __init__(self, annotation: Any) -> None:
        parts = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
        self.plain = frozenset(parts) & _PLAIN
        """Values of these types share nothing with the state, and need not be looked at."""
        if Any in parts or any(isinstance(each, TypeVar) for each in parts):
            self.plain = _PLAIN
        elif int in self.plain:  # a bool is an int for everybody but the decoder
            self.plain |= {bool}
            annotation = annotation | bool
        self._annotation = annotation

    def decode(self, encoded: bytes) -> Any:
        """The value, which shares nothing with the one that was encoded."""
        return with_room(decode, encoded, self._annotation)


def decode(encoded: bytes, kind: Any) -> Any:
    """From the bytes of a message."""
    return msgspec.msgpack.decode(encoded, type=kind)


def failed(error: BaseException) -> Result:
    """The exception that the caller gets: that which the command raised, if it can be raised by a call."""
    if isinstance(error, StopIteration) or not isinstance(error, Exception):
        error = CommandFailed(text_of(error))
    return Result(error, None)


def text_of(error: BaseException) -> str:
    """The name and the text of an exception: short, and such that it can be encoded."""
    try:
        text = str(error)
    except Exception as raised:
        text = f"(its text is not known: __str__ raised {type(raised).__name__})"
    name = type(error).__name__
    return (f"{name}: {text}" if text else name)[:_TEXT].encode(errors="backslashreplace").decode()


def kept(kind: ResultType, stream: Stream, sequence: int, value: Any) -> Result:
    """The value for the caller, which shares nothing with the state; and remembered, until the caller has it."""
    try:
        encoded = with_room(encode, value)
        if type(value) not in kind.plain:
            value = kind.decode(encoded)
    except MemoryError:
        raise  # of this member alone
    except Exception as error:  # the same at all members
        problem = TypeError(f"the command was applied, but its result cannot be handed on: {error}")
        return kept_error(stream, sequence, problem)
    stream.keep(sequence, "", encoded)
    return Result(None, value)


def kept_error(stream: Stream, sequence: int, error: BaseException) -> Result:
    """The exception for the caller; its text is remembered, until the caller has it."""
    stream.keep(sequence, text_of(error), b"")
    return failed(error)


def told(error: str, encoded: bytes, kind: ResultType) -> Result:
    """What became of a command as other members tell it."""
    if error:
        return Result(CommandFailed(error), None)
    return Result(None, kind.decode(encoded)) if encoded else NOTHING
