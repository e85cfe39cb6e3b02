"""Sets of nodes as bit masks: node k is bit k.

Destination sets are created, compared, hashed and sent for every message. An int makes all of that cheap, has one
representation for each set, and iterates in one order.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def mask_of(nodes: Iterable[int]) -> int:
    """The set of these nodes."""
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
    """The printed name of a node: the papers' E1 is node 0."""
    return f"E{node + 1}"


def renamed(text: str, nodes: Sequence[int]) -> str:
    """A text about places as one about the nodes at these places."""
    return re.sub(r"\bE([0-9]+)\b", lambda found: name_of(nodes[int(found[1]) - 1]), text)


def chosen(names: Sequence[str], mask: int) -> tuple[str, ...]:
    """Those names whose places are in a set."""
    return tuple(names[node] for node in members(mask))


def names_of(mask: int) -> str:
    """The printed form of a set: {E1,E3}."""
    return "{" + ",".join(name_of(node) for node in members(mask)) + "}"


_NODE = re.compile(r"\bE([1-9]\d*)\b")  # as `name_of` prints it


def with_names(sentence: str, names: Sequence[str]) -> str:
    """A sentence with the names of members in place of E1, E2, …; what has no name stays.

    Machines and audits know no names, and their sentences are in traces and travel between members: only where one is
    shown are nodes replaced. A sentence of an application must not come here.
    """

    def named(found: re.Match[str]) -> str:
        node = int(found[1]) - 1
        return names[node] if node < len(names) else found[0]

    return _NODE.sub(named, sentence)
