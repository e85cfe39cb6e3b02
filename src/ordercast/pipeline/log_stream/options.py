"""The options of the format `ordercast-log`, with the names that Kafka's source has where it has them."""

import json
from collections.abc import Mapping
from typing import Literal, cast, get_args

import msgspec

from ordercast.model.errors import ConfigError

FORMAT = "ordercast-log"
Value = Literal["json", "msgpack", "utf8"]
Undecodable = Literal["fail", "null"]
Boundary = Literal["earliest", "latest"] | int
_NAMES = (
    *("path", "members", "group", "startingOffsets", "endingOffsets", "maxOffsetsPerTrigger", "minPartitions"),
    *("failOnDataLoss", "memberTimeout", "value", "valueSchema", "undecodable", "tokenFile", "caFile"),
)
_KNOWN = {name.lower(): name for name in _NAMES}


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a user has asked for, checked."""

    members: tuple[str, ...]
    """Where logs are: `PLACE` or `NAME=PLACE`."""
    group: str | None = None
    """Its name, if it must be this one."""
    start: Boundary | None = None
    """None: the oldest position of a table, and only what is new of a stream."""
    end: Boundary = "latest"
    """Of a table alone."""
    max_offsets: int | None = None
    """Rows of a micro-batch."""
    min_partitions: int = 1
    fail_on_data_loss: bool = True
    member_timeout: float = 120.0
    """Seconds to wait for so many members that they are a majority, or for one that has what a query must read."""
    value: Value | None = None
    value_schema: str | None = None
    undecodable: Undecodable = "fail"
    token_file: str | None = None
    ca_file: str | None = None


def options_of(given: Mapping[str, str]) -> LogOptions:
    """Raises `ConfigError` that names the option."""
    found = {_name(key): value for key, value in given.items()}
    value = cast("Value | None", _word(found, "value", get_args(Value)))
    schema = found.get("valueSchema")
    if value in {"json", "msgpack"} and not schema:
        raise ConfigError(
            f'value={value!r} needs the columns of the messages: .option("valueSchema", "id long, amount double")'
        )
    if schema and value not in {"json", "msgpack"}:
        raise ConfigError('valueSchema has an effect with .option("value", "json") or "msgpack" alone; omit it')
    return LogOptions(
        members=_members(found),
        group=found.get("group"),
        start=_boundary("startingOffsets", found["startingOffsets"]) if "startingOffsets" in found else None,
        end=_boundary("endingOffsets", found.get("endingOffsets", "latest")),
        max_offsets=_whole(found, "maxOffsetsPerTrigger") if "maxOffsetsPerTrigger" in found else None,
        min_partitions=_whole(found, "minPartitions") if "minPartitions" in found else 1,
        fail_on_data_loss=_truth(found, "failOnDataLoss"),
        member_timeout=_seconds(found, "memberTimeout") if "memberTimeout" in found else 120.0,
        value=value,
        value_schema=schema,
        undecodable=cast("Undecodable", _word(found, "undecodable", get_args(Undecodable)) or "fail"),
        token_file=found.get("tokenFile"),
        ca_file=found.get("caFile"),
    )


def _name(key: str) -> str:
    if key.lower() not in _KNOWN:
        raise ConfigError(f"the format {FORMAT} has no option {key!r}; it has: {', '.join(_NAMES)}")
    return _KNOWN[key.lower()]


def _members(found: Mapping[str, str]) -> tuple[str, ...]:
    path, listed = found.get("path"), found.get("members")
    if path and listed:
        raise ConfigError('load("…") and the option members exclude each other; give one of them')
    places = tuple(each.strip() for each in (path or listed or "").split(",") if each.strip())
    if not places:
        raise ConfigError('no log was given: .load("DIR"), or .option("members", "DIR,http://HOST:7600,…").load()')
    if len(set(places)) < len(places):
        raise ConfigError("members names the same log twice: it would count as two of a majority")
    return places


def _boundary(name: str, text: str) -> Boundary:
    text = text.strip()
    if text in {"earliest", "latest"}:
        return cast("Boundary", text)
    number = _number_in(text)
    if number is None or number < 0:
        raise ConfigError(
            f'{name} must be "earliest", "latest", a position such as 100, or {{"next": 100}}, not {text!r}'
        )
    return number


def _number_in(text: str) -> int | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    number = found.get("next") if isinstance(found, dict) else found
    return number if type(number) is int else None


def _whole(found: Mapping[str, str], name: str) -> int:
    text = found[name]
    if not text.strip().isdecimal() or int(text) < 1:
        raise ConfigError(f"{name} must be a whole number above 0, not {text!r}")
    return int(text)


def _seconds(found: Mapping[str, str], name: str) -> float:
    try:
        seconds = float(found[name])
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e9:
        raise ConfigError(f"{name} must be a number of seconds above 0, not {found[name]!r}")
    return seconds


def _truth(found: Mapping[str, str], name: str) -> bool:
    text = found.get(name, "true").lower()
    if text not in {"true", "false"}:
        raise ConfigError(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _word(found: Mapping[str, str], name: str, words: tuple[str, ...]) -> str | None:
    text = found.get(name)
    if text is not None and text.lower() not in words:
        raise ConfigError(f"{name} must be one of {', '.join(words)}, not {text!r}")
    return text.lower() if text is not None else None
