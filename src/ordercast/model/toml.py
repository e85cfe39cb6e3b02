"""Values from TOML documents and back; default values are left out. Files are read by `trace.small_files`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec

from ordercast.model.errors import ConfigError

_Kind = TypeVar("_Kind", bound=msgspec.Struct)

# --- reading ---


def converted(document: Mapping[str, Any], kind: type[_Kind], shown_in: str, where: str = "") -> _Kind:
    """Converts a document, or its part at `where`, to a value; `shown_in`: the page that documents its keys."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        sentence = str(error).replace("`$", f"`{where}").replace("`.", "`")
        raise ConfigError(f"{sentence}; see {shown_in} for the keys and their values") from error


def flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """The items of a table, with dotted keys for nested tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{key}.")
        else:
            yield before + key, value


# --- writing ---


def table_lines(name: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    """A table of the values that differ from the defaults; nothing if none does."""
    lines = [
        f"{key} = {value_text(value)}"
        for key, value in values.items()
        if key not in defaults or _plain(defaults[key]) != _plain(value)
    ]
    return ["", f"[{name}]", *lines] if lines else []


def list_lines(name: str, texts: Iterable[str]) -> list[str]:
    """A list with a line for each text."""
    return [f"{name} = [", *(f"    {value_text(text)}," for text in texts), "]"]


def value_text(value: Any) -> str:
    """A value as TOML; its strings, numbers, booleans and lists are written as in JSON."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else list(value) if isinstance(value, tuple) else value
