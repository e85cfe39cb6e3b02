"""TOML as people keep it in files: read with a sentence for what is wrong, written without what is as usual."""

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ordercast.model.errors import ConfigError

_Kind = TypeVar("_Kind", bound=msgspec.Struct)

# --- reading ---


def read_toml(path: Path, what: str = "") -> dict[str, Any]:
    """A file as it stands; `what` it is, for errors."""
    name = f"{what} {path}".strip()
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name} is no text in UTF-8: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is no TOML: {error}; mend it there") from error


def converted(document: Mapping[str, Any], kind: type[_Kind], shown_in: str, where: str = "") -> _Kind:
    """A document, or its part at `where`, as a value; `shown_in` is the page that tells what may be in it."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        sentence = str(error).replace("`$", f"`{where}").replace("`.", "`")
        raise ConfigError(f"{sentence}; the keys and their values are in {shown_in}") from error


def flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """With dotted keys instead of tables within tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{key}.")
        else:
            yield before + key, value


# --- writing ---


def table_lines(name: str, values: Mapping[str, Any], usual: Mapping[str, Any]) -> list[str]:
    """A table of what is not as usual; no table if everything is."""
    said = [
        f"{key} = {value_text(value)}"
        for key, value in values.items()
        if key not in usual or _plain(usual[key]) != _plain(value)
    ]
    return ["", f"[{name}]", *said] if said else []


def list_lines(name: str, texts: Iterable[str]) -> list[str]:
    """A list with a line for each text."""
    return [f"{name} = [", *(f"    {value_text(text)}," for text in texts), "]"]


def value_text(value: Any) -> str:
    """As TOML writes it; its strings, numbers, truths and lists are those of JSON."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else list(value) if isinstance(value, tuple) else value
