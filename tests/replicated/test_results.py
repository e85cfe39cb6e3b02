"""Results of commands as their callers get them, and their texts; without a group."""

import asyncio
from typing import Annotated, Any, TypeVar

import msgspec
import pytest

from ordercast import CommandFailed
from ordercast.replicated.results import NOTHING, ResultType, failed, kept, kept_error, text_of, told
from ordercast.replicated.sessions import Stream

V = TypeVar("V")


class TextlessError(Exception):
    """One that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no text")


def test_texts_of_exceptions_are_short_and_can_be_encoded() -> None:
    assert text_of(KeyError("a")) == "KeyError: 'a'"
    assert text_of(ValueError()) == "ValueError"
    assert text_of(TextlessError()) == "TextlessError: (its text is not known: __str__ raised ValueError)"
    assert text_of(ValueError("\ud800")) == "ValueError: \\ud800"
    assert len(text_of(ValueError("x" * 5000))) == 2000


def test_plain_values_are_not_looked_at_if_their_type_allows_it() -> None:
    assert ResultType(Any).plain == {bool, int, float, str, bytes}
    assert ResultType(int).plain == {bool, int}
    assert ResultType(str | None).plain == {str}
    assert ResultType(list[int]).plain == frozenset()
    assert ResultType(int).decode(b"\xc3") is True
    with pytest.raises(Exception, match="Expected `int`, got `bool`"):
        ResultType(list[int]).decode(b"\x91\xc3")


def test_types_of_which_plain_values_need_not_be_looked_at() -> None:
    assert ResultType(V | None).plain == {bool, int, float, str, bytes}
    assert ResultType(int | None).plain == {bool, int}
    assert ResultType(int | None).decode(b"\xc0") is None
    assert ResultType(Annotated[int, msgspec.Meta(ge=0)]).plain == frozenset()
    assert ResultType(float).plain == {float}
    assert ResultType(bool).plain == {bool}


def test_a_result_shares_nothing_with_the_state_and_is_remembered() -> None:
    stream, state = Stream(), [1, 2]
    found = kept(ResultType(list[int]), stream, 3, state)
    assert (found.error, found.value) == (None, [1, 2])
    assert found.value is not state
    assert stream.results == {3: ("", b"\x92\x01\x02")}
    assert told(*stream.results[3], ResultType(list[int])) == found
    assert told("", b"", ResultType(int)) is NOTHING
    text = "text"
    assert kept(ResultType(str), stream, 4, text).value is text
    assert kept(ResultType(float), stream, 5, 3) == (None, 3.0)


def test_a_result_that_cannot_be_handed_on_is_an_exception_of_the_caller_and_remembered_as_such() -> None:
    stream = Stream()
    for sequence, (kind, value) in enumerate([(int, "a"), (Any, object()), (list[int], ["a"]), (int, 1 << 70)]):
        found = kept(ResultType(kind), stream, sequence, value)
        assert isinstance(found.error, TypeError)
        assert str(found.error).startswith("the command was applied, but its result cannot be handed on: ")
        again = told(*stream.results[sequence], ResultType(kind))
        assert isinstance(again.error, CommandFailed)
        assert str(again.error) == f"TypeError: {found.error}"
    with pytest.raises(MemoryError):
        kept(Exhausted(list[int]), stream, 9, [1])


class Exhausted(ResultType):
    """There is no memory at this member."""

    def decode(self, encoded: bytes) -> Any:
        raise MemoryError(len(encoded))


def test_what_a_call_cannot_raise_becomes_what_it_can() -> None:
    own = KeyError("a")
    assert failed(own) == (own, None)
    for error in (StopIteration(3), SystemExit(3), asyncio.CancelledError("3"), KeyboardInterrupt("3")):
        found = failed(error).error
        assert isinstance(found, CommandFailed)
        assert str(found) == f"{type(error).__name__}: 3"
    stream = Stream()
    assert kept_error(stream, 7, own) == (own, None)
    assert stream.results == {7: ("KeyError: 'a'", b"")}
