"""Payloads as values: text, or JSON or MessagePack by a schema. What does not decode is named, and never skipped.

Decoding is strict: pyarrow alone would make 1 of 1.5, and 1 of true.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

import msgspec
import pyarrow as pa

from ordercast.model.errors import LogError
from ordercast.pipeline.log_stream.options import Undecodable, Value

_SHOWN = 60
_PROBLEMS = (msgspec.MsgspecError, pa.ArrowException, ValueError, TypeError, OverflowError)


class Decoder(msgspec.Struct, frozen=True):
    """How payloads are read."""

    value: Value
    type: Any
    """That of the column."""
    undecodable: Undecodable

    def column(self, payloads: pa.Array, first: int) -> pa.Array:
        """A value for each payload; `first`: the position of the first one. Raises `LogError` with the message."""
        if self.value == "utf8":
            try:
                return payloads.cast(pa.string())
            except pa.ArrowException:
                pass  # which of them it is tells the slower way
        return self._one_by_one(payloads.to_pylist(), first)

    def _one_by_one(self, payloads: Sequence[bytes], first: int) -> pa.Array:
        decode, values = self._decode(), []
        for place, payload in enumerate(payloads):
            try:
                values.append(decode(payload))
            except _PROBLEMS as error:
                if self.undecodable == "fail":
                    raise self._error(first + place, payload, error) from None
                values.append(None)
        return pa.array(values, self.type)

    def _error(self, position: int, payload: bytes, why: Exception) -> LogError:
        return LogError(
            f"the message at position {position} is no {self.value} of the type {self.type}: {why}; its payload begins "
            f'with {payload[:_SHOWN]!r}; correct valueSchema, or say undecodable="null" for a value that is null'
        )

    def _decode(self) -> Callable[[bytes], Any]:
        if self.value == "utf8":
            return bytes.decode
        kind = _python_type(self.type)
        return (msgspec.json.Decoder(kind) if self.value == "json" else msgspec.msgpack.Decoder(kind)).decode


def _python_type(kind: pa.DataType) -> Any:
    """What msgspec checks; null, and a field that is missing, are allowed but at the top."""
    if pa.types.is_struct(kind):
        fields = {field.name: _python_type(field.type) | None for field in kind}
        return TypedDict("Fields", fields, total=False)  # type: ignore[operator] # made when it runs
    if pa.types.is_list(kind):
        return list[_python_type(kind.value_type) | None]  # type: ignore[misc]
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-most, le=most - 1)]
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_floating(kind):
        return float
    return bytes if pa.types.is_binary(kind) else str
