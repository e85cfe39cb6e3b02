"""Grids of runs in TOML: each block stands for all combinations of its lists, and blocks are added up.

    seeds = 10                      # before the blocks: for all of them

    [[grid]]
    protocol = ["spo", "st"]
    nodes = [4, 8]
    loss = [0.0, 0.05]

A key is the path of a field of `RunConfig` (`group.timing.poll`); `group.`, `network.` and `workload.` may be omitted.
Also `loss`, `fault` and `bandwidth`, as on the command line, and `seeds`, the number of seeds. Default: a channel and
timers that suit the protocol. A value that is a list itself, such as several faults at once, is a list in the list.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import Enum
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from ordercast.model.config import ConfigValue, GroupConfig, Timing
from ordercast.model.errors import ConfigError
from ordercast.model.faults import Fault, Loss
from ordercast.model.option_parsing import parse_duration, parse_fault, parse_node, parse_nodes, parse_speed
from ordercast.model.runs import RunConfig, TraceDetail, wants_logs, wants_views, with_later_nodes
from ordercast.model.services import PRIORITISED
from ordercast.model.toml import flat
from ordercast.protocols.registry import PROTOCOLS, machine_class
from ordercast.trace.small_files import read_toml

MOST_RUNS = 1_000_000

_BLOCKS = "grid"
_PROTOCOL, _NODES, _RULES, _CHANNEL = "protocol", "group.nodes", "group.rules", "network.channel"
_PRIORITIES, _TIMING, _STALL_TIMEOUT = "workload.priorities", "group.timing.", "patience"
_LOSS, _FAULT, _SEED, _SEEDS, _VIEWS, _LOGS = "loss", "fault", "seed", "seeds", "group.views", "logs"

Alternatives = dict[str, list[Any]]
"""By path: its values."""


def read_grid(path: Path, record: TraceDetail | None = None) -> list[RunConfig]:
    """All runs of a grid file, each once; `record` replaces what the file says.

    Raises `ConfigError`, with the block and the key, if something in it is wrong.
    """
    return grid_of(read_toml(path, "the grid"), str(path), record)


def grid_of(document: Mapping[str, Any], name: str, record: TraceDetail | None = None) -> list[RunConfig]:
    """All runs of a grid, each once, in the order written; `name`: of the grid in error messages."""
    blocks = document.get(_BLOCKS, [{}])
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise ConfigError(f"{name}: write [[{_BLOCKS}]], in double brackets, before each block")
    has_blocks = _BLOCKS in document
    above = {key: value for key, value in document.items() if key != _BLOCKS}
    common = _alternatives(above, f"{name}, above the blocks" if has_blocks else name)
    override: Alternatives = {} if record is None else {"record": [record]}
    runs: dict[str, RunConfig] = {}
    for number, block in enumerate(blocks, start=1):
        where = f"{name}, block {number}" if has_blocks else name
        given = {**common, **_alternatives(block, where), **override}
        for config in _multiplied(given, where):
            runs.setdefault(config.name(), config)
            if len(runs) > MOST_RUNS:
                raise ConfigError(f"{name} has more than {MOST_RUNS:,} runs; use fewer values, or several grids")
    return list(runs.values())


# --- from keys to the values of fields ---


def _fields(kind: type[ConfigValue], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, ConfigValue):
            yield from _fields(field.type, f"{prefix}{field.encode_name}.")
        elif field.encode_name != "faults":  # written by the key `fault`
            yield prefix + field.encode_name, field.type


_TYPES: dict[str, Any] = dict(_fields(RunConfig))
_PATHS = {path.split(".", 1)[1]: path for path in _TYPES if path.startswith(("group.", "network.", "workload."))}
_PATHS |= {path: path for path in (*_TYPES, _LOSS, _FAULT)}
_PATHS |= {"bandwidth": "network.bits_per_second", _SEEDS: _SEED}
_READERS = {
    "network.bits_per_second": parse_speed,
    "workload.senders": parse_nodes,
    "group.sequencer.node": parse_node,
    **dict.fromkeys(("network.propagation", "network.jitter", "network.send_time"), parse_duration),
    **dict.fromkeys(("network.receive_time", "workload.gap", _STALL_TIMEOUT), parse_duration),
    **dict.fromkeys(("group.sequencer.heartbeat", *(p for p in _TYPES if p.startswith(_TIMING))), parse_duration),
}
"""Parsers of values that are written as text."""


def _alternatives(block: Mapping[str, Any], where: str) -> Alternatives:
    found: Alternatives = {}
    for key, value in flat(block):
        path = _PATHS.get(key)
        if path is None:
            raise ConfigError(f"{where}: unknown key {key!r}{_guess(key)}")
        if path in found:
            raise ConfigError(f"{where}, key {key}: given twice; {path} is the same")
        try:
            found[path] = _all_seeds(value) if key == _SEEDS else _read_all(path, value)
        except ConfigError as error:
            raise ConfigError(f"{where}, key {key}: {error}") from error
    return found


def _guess(key: str) -> str:
    inner = [path for path in _PATHS if path.endswith(f".{key}")]
    if inner:
        return f"; did you mean {min(inner, key=len)!r}?"
    written = key.lower().replace("-", "_")
    near = get_close_matches(written, _PATHS, n=3, cutoff=0.75)
    if near:
        swapped = (each for each in near if sorted(each) == sorted(written))  # `sedes` is closer to `senders` by ratio
        return f"; did you mean {next(swapped, near[0])!r}?"
    names = sorted(known for known in _PATHS if "." not in known)
    return f"; known: {', '.join(names)}, and the paths of all fields of RunConfig, such as group.timing.poll"


def _all_seeds(value: object) -> list[int]:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_RUNS:
        raise ConfigError(
            f"the number of seeds, counted from 0, must be at least 1, not {value!r}; or use seed = [3, 5]"
        )
    return list(range(value))


def _read_all(path: str, value: object) -> list[Any]:
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ConfigError("an empty list leaves no run; give at least one value, or remove the key")
    return [_read(path, item) for item in items]


def _read(path: str, item: object) -> Any:
    if path == _FAULT:
        return tuple(_fault(text) for text in (item if isinstance(item, list) else [item]))
    if path == _LOSS:
        rate = _converted(item, float)
        return (Loss(rate=rate),) if rate else ()
    if isinstance(item, str) and path in _READERS:
        return _READERS[path](item)
    return _converted(item, _TYPES[path])


def _fault(text: object) -> Fault:
    if not isinstance(text, str):
        raise ConfigError(f"a fault is written as on the command line, such as 'crash node=E2 at=3ms', not {text!r}")
    return parse_fault(text)


def _converted(item: object, kind: Any) -> Any:
    try:
        return msgspec.convert(item, kind)
    except msgspec.ValidationError as error:
        if isinstance(kind, type) and issubclass(kind, Enum):
            raise ConfigError(
                f"invalid value {item!r}; choose one of: {', '.join(each.value for each in kind)}"
            ) from error
        hint = "; a list in the list, such as [[0, 1]], is one value" if "array" in str(error) else ""
        raise ConfigError(f"invalid value {item!r}: {error}{hint}") from error


# --- from values to runs ---


def _multiplied(given: Alternatives, where: str) -> Iterator[RunConfig]:
    if _PROTOCOL not in given:
        raise ConfigError(f"{where}: the key protocol is missing; set it to one of: {', '.join(PROTOCOLS)}")
    if prod(len(items) for items in given.values()) > MOST_RUNS:
        raise ConfigError(f"{where}: more than {MOST_RUNS:,} runs; use fewer values, or several grids")
    for combination in product(*given.values()):
        chosen = dict(zip(given, combination, strict=True))
        try:
            yield _run(chosen)
        except ConfigError as error:
            raise ConfigError(f"{where}, {_blamed(chosen, str(error), given)}: {error}") from error


def _run(chosen: Mapping[str, Any]) -> RunConfig:
    """The run that `ordercast simulate` would make of these values."""
    nodes = with_later_nodes(chosen.get(_NODES, 4), _faults(chosen))
    config: RunConfig = _made(RunConfig, "", {**_defaults(chosen), **chosen, _NODES: nodes})
    kind = machine_class(config.protocol, config.group.rules, config.group.recovery)
    if not config.network.channel.serves(kind.needs):
        raise ConfigError(f"{config.protocol} needs the channel {kind.needs.value!r}; use it, or omit the channel")
    config = msgspec.structs.replace(config, faults=_faults(chosen))
    base = config.with_default_timeouts()
    given = {field.name: chosen.get(_TIMING + field.encode_name) for field in msgspec.structs.fields(Timing)}
    timing: Timing = msgspec.structs.replace(
        base.group.timing, **{name: value for name, value in given.items() if value is not None}
    )
    return msgspec.structs.replace(
        base,
        group=msgspec.structs.replace(base.group, timing=timing),
        stall_timeout=chosen.get(_STALL_TIMEOUT, base.stall_timeout),
    )


def _defaults(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults that depend on the protocol, as on the command line."""
    protocol = chosen[_PROTOCOL]
    rules = chosen.get(_RULES, GroupConfig(nodes=2).rules)
    return {
        _CHANNEL: machine_class(protocol, rules).needs,
        _PRIORITIES: 3 if protocol in PRIORITISED else 1,
        _VIEWS: wants_views(protocol, rules, _faults(chosen)) or bool(chosen.get(_LOGS)),
        _LOGS: wants_logs(_faults(chosen)),
    }


def _faults(chosen: Mapping[str, Any]) -> tuple[Fault, ...]:
    return (*chosen.get(_LOSS, ()), *chosen.get(_FAULT, ()))


def _made(kind: type[Any], prefix: str, chosen: Mapping[str, Any]) -> Any:
    """Builds a struct from the values of its fields and of nested fields; timers are set later."""
    arguments: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        path = prefix + field.encode_name
        if path in chosen:
            arguments[field.name] = chosen[path]
        elif path + "." != _TIMING and any(other.startswith(path + ".") for other in chosen):
            arguments[field.name] = _made(field.type, path + ".", chosen)
    return kind(**arguments)


def _blamed(chosen: Mapping[str, Any], sentence: str, given: Alternatives) -> str:
    """The key that is wrong by itself, or the combination of keys."""
    base = {path: chosen[path] for path in (_PROTOCOL,) if path in chosen}
    for path in sorted(chosen, key=lambda path: path != _PROTOCOL):  # a wrong one is wrong with any other key
        try:
            _run({**base, path: chosen[path]})
        except ConfigError as error:
            if str(error) == sentence:
                return f"key {_short(path)}"
    varied = [path for path in chosen if len(given[path]) > 1] or list(chosen)
    return "with " + ", ".join(f"{_short(path)} = {_shown(chosen[path])}" for path in varied)


def _short(path: str) -> str:
    return path.split(".", 1)[1] if path.startswith(("group.", "network.", "workload.")) else path


def _shown(value: Any) -> str:
    return repr(value.value if isinstance(value, Enum) else value)
