"""How the handshake compares the group's parameters: encoded as one text, and a sentence when two texts differ.

`host.parameters` derives the parameters themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ordercast.model.config import require
from ordercast.wire.control import MAX_PARAMETERS_LENGTH

_SHOWN = 3  # differences
_MAX_SHOWN_LENGTH = 40  # of a name or value
_MAX_DEPTH = 6
_MEMBERS, _STATE = "members", "state"
# Settings whose defaults are derived from others.
_CAUSES = {"window": {"max_datagram_size", "mtu"}, "failure_timeout": {"round_trip"}}


def encode_parameters(group: str, names: Sequence[str], parameters: Mapping[str, Any]) -> str:
    """The same text for equal values: JSON with sorted names."""
    whole = {**msgspec.to_builtins(parameters), "group": group, _MEMBERS: list(names)}
    text = msgspec.json.encode(whole, order="sorted").decode()
    require(
        len(text) <= MAX_PARAMETERS_LENGTH,
        f"the names and parameters of a group have at most {MAX_PARAMETERS_LENGTH} characters, not {len(text)}; "
        "use shorter names",
    )
    return text


def difference(ours: str, us: str, theirs: str, them: str) -> str:
    """A sentence with the first few values that differ: "B has window=64, A has window=32".

    Values inside others, or derived from another that differs too, are reported only if nothing else differs.
    """
    mine, other = _flat(ours), _flat(theirs)
    if other is None or mine is None:
        return f"{them} and {us} have different parameters, and those of {them} are invalid"
    names = _differing(mine, other)
    shown = [
        _members(ours, us, theirs, them)
        if name == _MEMBERS
        else f"{them} has {_pair(name, other)}, {us} has {_pair(name, mine)}"
        for name in names[:_SHOWN]
    ]
    more = [f"and {len(names) - _SHOWN} more values differ"] if len(names) > _SHOWN else []
    return "; ".join(shown + more) or f"{them} and {us} encode the same parameters differently"


def advice(ours: str, theirs: str) -> str:
    """What to do about the difference."""
    mine, other = _flat(ours), _flat(theirs)
    names = set() if mine is None or other is None else {*_differing(mine, other)}
    found = ["give all of them the same members"] if _MEMBERS in names else []
    found += ["give all of them a state, or none"] if _STATE in names else []
    if names - {_MEMBERS, _STATE} or not found:
        found.append("make them equal, for example with one settings file for all members (--settings)")
    return ", and ".join(found)


def name_at(parameters: str, place: int, otherwise: str) -> str:
    """Of the member at this place, in the list of the one that sent these: it may differ from ours."""
    names = _names(parameters)
    return _shortened(names[place]) if place < len(names) else otherwise


def _names(parameters: str) -> list[str]:
    try:
        names = msgspec.json.decode(parameters)[_MEMBERS]
        return msgspec.convert(names, list[str])
    except (msgspec.MsgspecError, KeyError, TypeError, IndexError, RecursionError):
        return []


def _members(ours: str, us: str, theirs: str, them: str) -> str:
    """The members that only one of the two has."""
    mine, other = _names(ours), _names(theirs)
    found = [
        f"{one} has the member{'s' if len(names) > 1 else ''} {_shortened(', '.join(names))}, {not_there} has not"
        for one, not_there, names in (
            (them, us, [name for name in other if name not in mine]),
            (us, them, [name for name in mine if name not in other]),
        )
        if names
    ]
    return "; ".join(found) or f"{them} and {us} have different lists of members"


def _differing(mine: dict[str, str], other: dict[str, str]) -> list[str]:
    return _without_derived([n for n in sorted(mine.keys() | other.keys()) if mine.get(n) != other.get(n)])


def _without_derived(names: list[str]) -> list[str]:
    return [name for name in names if "." not in name and _CAUSES.get(name, set()).isdisjoint(names)] or names


def _pair(name: str, values: dict[str, str]) -> str:
    return f"{_shortened(name)}={_shortened(values[name])}" if name in values else f"no {_shortened(name)}"


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN_LENGTH else text[:_MAX_SHOWN_LENGTH] + "…"


def _flat(text: str) -> dict[str, str] | None:
    """Each value by its path of names; None if the text is not what a member sends."""
    flat: dict[str, str] = {}
    try:
        _flatten(msgspec.json.decode(text), "", _MAX_DEPTH, flat)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return flat


def _flatten(value: Any, path: str, deeper: int, flat: dict[str, str]) -> None:
    if isinstance(value, dict) and value and deeper:
        for name, inner in value.items():
            _flatten(inner, f"{path}.{name}" if path else name, deeper - 1, flat)
    else:
        flat[path or "value"] = msgspec.json.encode(value).decode()
