"""Payloads as values: text, or JSON or MessagePack by a schema. What does not decode is named, and never skipped."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from ordercast.model.errors import LogError
from ordercast.pipeline.log_stream.options import Undecodable, Value

_decode_json = msgspec.json.Decoder().decode
_decode_msgpack = msgspec.msgpack.Decoder().decode
_SHOWN = 60


class Decoder(msgspec.Struct, frozen=True):
    """How payloads are read."""

    value: Value
    type: Any
    """That of the column."""
    undecodable: Undecodable

    def column(self, payloads: pa.Array, first: int) -> pa.Array:
        """A value for each payload; `first`: the position of the first one. Raises `LogError` with the message."""
        try:
            return self._all(payloads)
        except _PROBLEMS as error:
            values = payloads.to_pylist()
            bad = [place for place, each in enumerate(values) if self._problem(each) is not None]
            if self.undecodable == "null" and bad:
                return self._without(values, set(bad))
            place = bad[0] if bad else 0
            why = self._problem(values[place]) or error
            raise LogError(
                f"the message at position {first + place} is no {self.value} of the type {self.type}: {why}; its "
                f'payload begins with {values[place][:_SHOWN]!r}; correct valueSchema, or say undecodable="null" for a '
                "value that is null"
            ) from None

    def _all(self, payloads: pa.Array) -> pa.Array:
        if self.value == "utf8":
            return payloads.cast(pa.string())
        decode = self._decode()
        return pa.array([_checked(decode(each)) for each in payloads.to_pylist()], self.type)

    def _without(self, values: Sequence[bytes], bad: set[int]) -> pa.Array:
        kept = [None if place in bad else each for place, each in enumerate(values)]
        if self.value == "utf8":
            return pa.array(kept, pa.binary()).cast(pa.string())
        decode = self._decode()
        return pa.array([None if each is None else decode(each) for each in kept], self.type)

    def _decode(self) -> Callable[[bytes], Any]:
        return _decode_json if self.value == "json" else _decode_msgpack

    def _problem(self, payload: bytes) -> Exception | None:
        try:
            self._all(pa.array([payload], pa.binary()))
        except _PROBLEMS as error:
            return error
        return None


_PROBLEMS = (msgspec.DecodeError, pa.ArrowException, ValueError, TypeError, OverflowError)


def _checked(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError(f"it is {type(found).__name__}, and no object with fields")
    return found
