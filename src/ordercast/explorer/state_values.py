"""What a machine's state holds, as text by variable: for people who go through a schedule step by step."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, ClassVar, Final, get_origin

import msgspec

from ordercast.model.declared_state import DeclaredState, hints_of
from ordercast.model.units import Packet, Unit

_MOST = 160  # characters of a value
_EMPTY = "empty"
_NO_LIMIT = 1 << 62  # machines compare numbers with this where nothing bounds them
_Named = Callable[[Packet | Unit], str]


def state_values(machine: DeclaredState, named: _Named) -> dict[str, str]:
    """The variables that a machine declares, those of its parts with the part's name in front.

    `named`: what a packet or a unit is called. What never changes, and what follows from the rest, is left out.
    """
    return {name: _shortened(_text(value, named)) for name, value in _variables(machine, "")}


def parts_of(machine: DeclaredState, prefix: str = "") -> Iterator[tuple[DeclaredState, str]]:
    """A machine and its parts with states of their own, each with what stands before the names of its variables."""
    yield machine, prefix
    for name, _ in declared(type(machine)):
        value = getattr(machine, name)
        if isinstance(value, DeclaredState):
            yield from parts_of(value, f"{prefix}{name.lstrip('_')}.")


def declared(kind: type[DeclaredState]) -> Iterator[tuple[str, Any]]:
    """What changes and does not follow from the rest: variables, with their types."""
    for name, hint in hints_of(kind):
        if get_origin(hint) not in {Final, ClassVar} and "derived" not in getattr(hint, "__metadata__", ()):
            yield name, hint


def _variables(part: DeclaredState, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, _ in declared(type(part)):
        value, label = getattr(part, name), name.lstrip("_")
        if isinstance(value, DeclaredState):
            yield from _variables(value, f"{prefix}{label}.")
        else:
            yield f"{prefix}{label}", value


def _text(value: Any, named: _Named) -> str:  # noqa: PLR0911 (one for each kind of value)
    match value:
        case Packet() | Unit():
            return named(value)
        case DeclaredState():
            parts = (f"{name} {_text(each, named)}" for name, each in _variables(value, ""))
            return f"({', '.join(parts)})"
        case bool():
            return "yes" if value else "no"
        case None:
            return "–"
        case bytes():
            return value.decode(errors="replace")
        case Enum():
            return value.name.lower()
        case msgspec.Struct():
            fields = (f"{name} {_text(getattr(value, name), named)}" for name in value.__struct_fields__)
            return f"{type(value).__name__} ({', '.join(fields)})"
        case Mapping():
            return _listed([f"{_text(key, named)}: {_text(each, named)}" for key, each in sorted(value.items())])
        case set() | frozenset():
            return _listed([_inner(each, named) for each in sorted(value)])
        case str() | int() | float():
            return "no limit" if isinstance(value, int) and value >= _NO_LIMIT else str(value)
    try:
        return _listed([_inner(each, named) for each in value])
    except TypeError:
        return str(value)


def _inner(value: Any, named: _Named) -> str:
    """Of one of several values: where each is several itself, it shows where one ends."""
    text = _text(value, named)
    several = isinstance(value, Iterable) and not isinstance(value, str | bytes | msgspec.Struct | DeclaredState)
    return f"[{text}]" if several and text != _EMPTY else text


def _listed(texts: list[str]) -> str:
    return ", ".join(texts) or _EMPTY


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"
