"""Payloads as values, without Spark: what does not decode is named, or null if that was asked for."""

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from ordercast.model.errors import LogError
from ordercast.pipeline.log_stream.ddl import struct_of
from ordercast.pipeline.log_stream.decode import Decoder
from ordercast.pipeline.log_stream.options import Undecodable, Value

TYPES: dict[Value, Any] = {"utf8": pa.string(), "json": struct_of("id long"), "msgpack": struct_of("id long")}
GOOD: dict[Value, tuple[list[bytes], list[Any]]] = {
    "utf8": ([b"one", "zwölf".encode(), b""], ["one", "zwölf", ""]),
    "json": ([json.dumps({"id": 1}).encode(), b"{}"], [{"id": 1}, {"id": None}]),
    "msgpack": ([msgspec.msgpack.encode({"id": 1, "more": 2})], [{"id": 1}]),
}
BAD: dict[Value, list[bytes]] = {
    "utf8": [b"\xff"],
    "json": [b"", b"{", b"[1]", b"7", b'{"id": "one"}', b'{"id": 1.5}', b'{"id": 9223372036854775808}'],
    "msgpack": [b"", b"\xc1", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"id": "one"})],
}


def decoded(value: Value, payloads: list[bytes], undecodable: Undecodable = "fail", first: int = 0) -> list[Any]:
    column = Decoder(value, TYPES[value], undecodable).column(pa.array(payloads, pa.binary()), first)
    assert column.type == TYPES[value]
    found: list[Any] = column.to_pylist()
    return found


@pytest.mark.parametrize("value", GOOD)
def test_what_decodes_is_a_value(value: Value) -> None:
    payloads, expected = GOOD[value]
    assert decoded(value, payloads) == expected
    assert decoded(value, []) == []


@pytest.mark.parametrize(("value", "payload"), [(value, each) for value, some in BAD.items() for each in some])
def test_what_does_not_decode_is_named_or_null(value: Value, payload: bytes) -> None:
    payloads, expected = GOOD[value]
    many = [*payloads, payload, *payloads]
    with pytest.raises(LogError, match=f"the message at position {100 + len(payloads)} is no {value} of the type"):
        decoded(value, many, first=100)
    assert decoded(value, many, "null") == [*expected, None, *expected]
