"""Parses the values of options, grids and files: 50us, 10Mbit, "miss node=E3 source=E1 nth=2"; formats some of them."""

import re
from enum import Enum
from typing import Any, TypeVar

import msgspec

from ordercast.model.config import ConfigValue, PaperRules
from ordercast.model.errors import ConfigError
from ordercast.model.faults import (
    Bursts,
    Crash,
    DiskFailure,
    Duplicates,
    Fault,
    Join,
    Leave,
    Loss,
    Miss,
    Pause,
    Quit,
    Restart,
    Return,
    Split,
    Suspicion,
    Twice,
)
from ordercast.model.nodes import name_of
from ordercast.model.runs import ScriptedSend

_TIMES = {"": 1, "ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SPEEDS = {"": 1, "bit": 1, "kbit": 1_000, "mbit": 1_000_000, "gbit": 1_000_000_000}
_FAULTS: dict[str, type[Fault]] = {
    "loss": Loss,
    "bursts": Bursts,
    "duplicates": Duplicates,
    "miss": Miss,
    "twice": Twice,
    "pause": Pause,
    "split": Split,
    "crash": Crash,
    "join": Join,
    "leave": Leave,
    "quit": Quit,
    "return": Return,
    "suspect": Suspicion,
    "restart": Restart,
    "disk": DiskFailure,
}
_TIME_FIELDS = {"until", "well", "bad", "at", "lasting", "after"}
_NODE_FIELDS = {"node", "source", "by"}
_NODES_FIELDS = {"side", "to"}


def parse_duration(text: str) -> int:
    """Nanoseconds from 200ns, 50us, 1.5ms or 2s; only 0 may be written without a unit."""
    found = _scaled(text, _TIMES, "a duration such as 50us, 1.5ms or 2s")
    number = text.strip()
    if found and number[-1].isdigit():
        raise ConfigError(f"{number!r} has no unit; write {number}us, {number}ms or {number}s")
    return found


def parse_speed(text: str) -> int:
    """Bits per second from 9600, 10Mbit or 1Gbit; 0: unlimited."""
    return _scaled(text, _SPEEDS, "a speed such as 10Mbit or 1Gbit")


def parse_node(text: str) -> int:
    """A node from 0, 1, … or from E1, E2, …, the papers' names."""
    match = re.fullmatch(r"(E?)(\d{1,9})", text.strip())
    if match is None or (match[1] and not int(match[2])):
        raise ConfigError(f"{text!r} is not a node; write 0, 1, … or E1, E2, …")
    return int(match[2]) - (1 if match[1] else 0)


def parse_nodes(text: str) -> tuple[int, ...]:
    """Several nodes from E1,E3; none from an empty text."""
    return tuple(parse_node(node) for node in text.split(",")) if text.strip() else ()


def parse_readings(texts: list[str]) -> PaperRules:
    """Readings of the printed rules from their names and values: first_id=1, condition_2=others."""
    groups = {name: getattr(PaperRules(), name) for name in PaperRules.__struct_fields__}
    nested = {name: group for name, group in groups.items() if isinstance(group, ConfigValue)}
    chosen: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        homes = [home for home, group in nested.items() if name in group.__struct_fields__]
        if not equals or name in nested or not (homes or name in groups):
            known = [field for field in groups if field not in nested]
            known += [field for group in nested.values() for field in group.__struct_fields__]
            raise ConfigError(f"{text!r} is not a reading; write NAME=VALUE with one of: {', '.join(known)}")
        home: dict[str, Any] = chosen if name in groups else chosen.setdefault(homes[0], {})
        default = groups[name] if name in groups else getattr(nested[homes[0]], name)
        try:
            home[name] = msgspec.convert(value, type(default), strict=False)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{text!r} is not a reading; {name} must be {_format_kind(default)}") from error
    try:
        return msgspec.convert(chosen, PaperRules)
    except msgspec.ValidationError as error:
        raise ConfigError(f"invalid readings {' '.join(texts)!r}: {error}") from error


def _format_kind(default: object) -> str:
    """The values that an option with this default takes."""
    if isinstance(default, Enum):
        return f"one of {', '.join(value.value for value in type(default))}"
    return "true or false" if isinstance(default, bool) else "a whole number"


def parse_fault(text: str) -> Fault:
    """A fault from its name and its fields: "miss node=E3 source=E1 nth=2", "split side=E1,E2 at=1ms lasting=5ms"."""
    words = text.split()
    if not words or words[0] not in _FAULTS:
        raise ConfigError(f"unknown fault {text!r}; choose one of: {', '.join(_FAULTS)}")
    fields = _with_duration(words[1:]) if words[0] in {"pause", "split"} else words[1:]
    return _from_fields(fields, _FAULTS[words[0]], "the fault", words[0])


def _with_duration(words: list[str]) -> list[str]:
    """`nodes=… from=… until=…` of a split or a pause, as the fields that it has: side, at and lasting."""
    names = {"nodes": "side", "from": "at"}
    words = ["=".join([names.get(field, field), *value]) for field, *value in (word.split("=", 1) for word in words)]
    begin = next((word.removeprefix("at=") for word in words if word.startswith("at=")), None)
    for place, word in enumerate(words):
        if word.startswith("until=") and begin is not None:
            lasting = parse_duration(word.removeprefix("until=")) - parse_duration(begin)
            if lasting <= 0:
                raise ConfigError(f"{word!r} must be later than the beginning, {begin}")
            words[place] = f"lasting={lasting}ns"
    return words


def parse_scripted_send(text: str) -> ScriptedSend:
    """A submission of a script from its fields: "node=E1 to=E2,E3 at=200us"."""
    return _from_fields(text.split(), ScriptedSend, "a scripted send", "")


def format_option(value: Fault | ScriptedSend) -> str:
    """The text from which `parse_fault` or `parse_scripted_send` makes an equal value."""
    name = value.__struct_config__.tag
    words = [str(name)] if name else []
    for field in msgspec.structs.fields(value):
        given = getattr(value, field.name)
        if given != field.default:
            words.append(f"{field.name}={_format_field(field.name, given)}")
    return " ".join(words)


_Fields = TypeVar("_Fields", bound=ConfigValue)


def _from_fields(words: list[str], kind: type[_Fields], what: str, name: str) -> _Fields:
    fields: dict[str, object] = {}
    for word in words:
        field, equals, value = word.partition("=")
        if not equals or field not in kind.__struct_fields__:
            known = " ".join(f"{field}=…" for field in kind.__struct_fields__)
            about = f"{what} {name!r}" if name else what
            raise ConfigError(f"{field or word!r} is not a field of {about}; write: {f'{name} {known}'.strip()}")
        fields[field] = _field(field, value)
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        text = " ".join([name, *words]).strip()
        raise ConfigError(f"{what} {text!r} is invalid: {error}") from error


def _field(name: str, value: str) -> object:
    if name in _TIME_FIELDS:
        return parse_duration(value)
    if name in _NODE_FIELDS:
        return parse_node(value)
    if name in _NODES_FIELDS:
        return tuple(parse_node(node) for node in value.split(","))
    return value


def _format_field(name: str, value: Any) -> str:
    if name in _TIME_FIELDS:
        return f"{value}ns"
    if name in _NODE_FIELDS:
        return name_of(value)
    if name in _NODES_FIELDS:
        return ",".join(map(name_of, value))
    return str(value.value if isinstance(value, Enum) else value).lower()


def _scaled(text: str, units: dict[str, int], wanted: str) -> int:
    match = re.fullmatch(r"(\d{1,18})(?:\.(\d{1,18}))?\s*([a-zµ]*)", text.strip().lower())
    if match is None or match[3] not in units:
        raise ConfigError(f"{text!r} is not {wanted}")
    whole, fraction, unit = match[1], match[2] or "", units[match[3]]
    return int(whole + fraction) * unit // int("1" + "0" * len(fraction))
