"""What all members must have alike, as one text, and what to tell people when it is not."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ordercast.model.config import require
from ordercast.wire.control import MAX_PARAMETERS_LENGTH

_SHOWN = 3
_LONGEST_VALUE = 40
_DEEPEST = 6
# Settings whose defaults are derived from others.
_CAUSES = {"window": {"max_datagram_size", "mtu"}, "failure_timeout": {"round_trip"}}


def encode_parameters(group: str, names: Sequence[str], parameters: Mapping[str, Any]) -> str:
    """One text for equal values: JSON with sorted names."""
    whole = {**msgspec.to_builtins(parameters), "group": group, "members": list(names)}
    text = msgspec.json.encode(whole, order="sorted").decode()
    require(
        len(text) <= MAX_PARAMETERS_LENGTH,
        f"names and parameters of a group are at most {MAX_PARAMETERS_LENGTH} letters in all",
    )
    return text


def difference(ours: str, us: str, theirs: str, them: str) -> str:
    """A sentence that names the first few values that differ: "B has window=64, A has window=32".

    What is within others, or suits another that differs too, follows from that: it is told if nothing else differs.
    """
    mine, other = _flat(ours), _flat(theirs)
    if other is None or mine is None:
        return f"{them} and {us} have different parameters, and those of {them} cannot be read"
    names = _causes([name for name in sorted(mine.keys() | other.keys()) if mine.get(name) != other.get(name)])
    shown = [f"{them} has {_pair(name, other)}, {us} has {_pair(name, mine)}" for name in names[:_SHOWN]]
    more = [f"and {len(names) - _SHOWN} more values differ"] if len(names) > _SHOWN else []
    return "; ".join(shown + more) or f"{them} and {us} write the same parameters in different ways"


def _causes(names: list[str]) -> list[str]:
    return [name for name in names if "." not in name and _CAUSES.get(name, set()).isdisjoint(names)] or names


def _pair(name: str, values: dict[str, str]) -> str:
    shown = name if len(name) <= _LONGEST_VALUE else name[:_LONGEST_VALUE] + "…"
    if name not in values:
        return f"no {shown}"
    value = values[name]
    return f"{shown}={value if len(value) <= _LONGEST_VALUE else value[:_LONGEST_VALUE] + '…'}"


def _flat(text: str) -> dict[str, str] | None:
    """Each value with the path of names that leads to it; None if the text is not what a member writes."""
    flat: dict[str, str] = {}
    try:
        _flatten(msgspec.json.decode(text), "", _DEEPEST, flat)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return flat


def _flatten(value: Any, path: str, deeper: int, flat: dict[str, str]) -> None:
    if isinstance(value, dict) and value and deeper:
        for name, inner in value.items():
            _flatten(inner, f"{path}.{name}" if path else name, deeper - 1, flat)
    else:
        flat[path or "value"] = msgspec.json.encode(value).decode()
