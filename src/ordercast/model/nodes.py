"""Sets of nodes as bit masks: node k is bit k.

Destination sets are made, compared, hashed and sent for every message. An int does all of that at once, has one
form for each set, and never iterates in an order that depends on how it was made.
"""

from collections.abc import Iterable
from functools import lru_cache


def mask_of(nodes: Iterable[int]) -> int:
    """The set that holds these nodes."""
    mask = 0
    for node in nodes:
        mask |= 1 << node
    return mask


@lru_cache(maxsize=1 << 12)
def members(mask: int) -> tuple[int, ...]:
    """The nodes of a set, ascending."""
    return tuple(node for node in range(mask.bit_length()) if mask >> node & 1)


def everybody(nodes: int) -> int:
    """The set of all nodes of a group of this size."""
    return (1 << nodes) - 1


def name_of(node: int) -> str:
    """How people are shown a node: the papers' E1 is node 0."""
    return f"E{node + 1}"


def names_of(mask: int) -> str:
    """How people are shown a set: {E1,E3}."""
    return "{" + ",".join(name_of(node) for node in members(mask)) + "}"
