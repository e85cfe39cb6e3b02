"""What an object keeps, found by looking at all that can be reached from it: what it says of itself is not asked."""

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from ordercast.model.declared_state import DeclaredState, declared_names
from ordercast.model.units import Packet

_ONE_NUMBER = 64
"""Bits of what counts as a number alone; a longer one may be a set of many."""


class Kept(NamedTuple):
    """What can be reached."""

    packets: frozenset[tuple[int, int]]
    """With messages in them: by source and first message."""
    values: int
    """Numbers, texts and the like."""
    content: int
    """Bytes of all byte strings and long numbers outside of packets."""


def kept_by(machine: object) -> Kept:
    """All that a machine keeps, wherever it keeps it."""
    packets, values, content = set[tuple[int, int]](), 0, 0
    seen, left = set[int](), [machine]
    while left:
        each = left.pop()
        if each is None or isinstance(each, int | float | str):
            values += 1
            if isinstance(each, int) and each.bit_length() > _ONE_NUMBER:
                content += each.bit_length() // 8
        elif id(each) in seen or isinstance(each, type) or callable(each):
            continue
        else:
            seen.add(id(each))
            if isinstance(each, bytes | bytearray):
                values, content = values + 1, content + len(each)
            elif isinstance(each, Packet):
                if each.payload:
                    packets.add((each.source, each.first))
                values += 1
            else:
                left += _parts_of(each)
    return Kept(frozenset(packets), values, content)


def _parts_of(each: Any) -> Iterable[object]:
    """What is directly in it."""
    if isinstance(each, msgspec.Struct):
        return [getattr(each, name) for name in each.__struct_fields__]
    if isinstance(each, dict):
        return [*each.keys(), *each.values()]
    if isinstance(each, list | tuple | set | frozenset | deque):
        return each
    parts = [*getattr(each, "__dict__", {}).values()]  # those that are not declared, too
    for kind in type(each).__mro__:
        slots = vars(kind).get("__slots__", ())
        parts += [
            getattr(each, name) for name in ((slots,) if isinstance(slots, str) else slots) if hasattr(each, name)
        ]
    if isinstance(each, DeclaredState):  # a compiled one has no dictionary
        parts += [getattr(each, name) for name in declared_names(type(each)) if hasattr(each, name)]
    return parts
