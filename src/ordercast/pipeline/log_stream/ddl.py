"""A schema as people write it, "id long, tags array<string>", as Arrow's type: Spark's own parser needs its Java."""

import re

import pyarrow as pa

from ordercast.model.errors import ConfigError

_SIMPLE = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
}
_TOKEN = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_]*)|`([^`]+)`|([<>,:]))")


def struct_of(text: str) -> pa.DataType:
    """Raises `ConfigError` that says where it does not go on, and what there is."""
    parser = _Parser(text)
    found = parser.fields(None)
    parser.require_end()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def fields(self, closing: str | None) -> pa.DataType:
        found = []
        while True:
            name = self._take()
            if name in {"", "<", ">", ",", ":"}:
                raise self._error("the name of a column")
            if self._peek() == ":":
                self._take()
            found.append(pa.field(name, self._type()))
            if self._peek() != ",":
                break
            self._take()
        if closing is not None:
            self._expect(closing)
        return pa.struct(found)

    def require_end(self) -> None:
        if self._text[self._at :].strip():
            raise self._error("a comma, or the end")

    def _type(self) -> pa.DataType:
        name = self._take().lower()
        match name:
            case "array":
                self._expect("<")
                inner = self._type()
                self._expect(">")
                return pa.list_(inner)
            case "struct":
                self._expect("<")
                return self.fields(">")
        if name not in _SIMPLE:
            raise self._error(f"a type: {', '.join(_SIMPLE)}, array<…>, struct<…>")
        return _SIMPLE[name]

    def _expect(self, sign: str) -> None:
        if self._take() != sign:
            raise self._error(f"{sign!r}")

    def _peek(self) -> str:
        at = self._at
        found = self._take()
        self._at = at
        return found

    def _take(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return next(each for each in found.groups() if each is not None)

    def _error(self, expected: str) -> ConfigError:
        return ConfigError(
            f"valueSchema {self._text!r}: {self._text[: self._at].strip()!r} is to be followed or replaced by "
            f'{expected}; write it as "id long, tags array<string>, at struct<x: double, y: double>"'
        )
