"""What the nodes and messages of a run are called, where they have names, as members of live groups do.

Sentences of the audit say E1, E2, … and E5#468. Only where one is shown are these replaced: `shipping`,
`orders[4]@468`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ordercast.model.nodes import name_of
from ordercast.trace.schema import CONFIG, NODES

NAMES = "names"
"""Of a run's row: the names of its nodes, as far as any of its records has them."""
MARK = "#"
_NODE_OR_MESSAGE = re.compile(r"\bE([1-9]\d*)\b(?:#(?=\d))?")  # as `name_of` and `message_name` print them


class Names(NamedTuple):
    """The names of a run's nodes."""

    nodes: tuple[str, ...]
    mark: str = MARK
    """What stands between a source and a number in the name of a message."""

    def put_into(self, sentence: str) -> str:
        """The sentence with names; what has none stays."""

        def named(found: re.Match[str]) -> str:
            node = int(found[1]) - 1
            name = self.nodes[node] if node < len(self.nodes) else name_of(node)
            return name + (self.mark if found[0].endswith(MARK) else "")

        return _NODE_OR_MESSAGE.sub(named, sentence)


def names_of_run(row: Mapping[str, Any]) -> Names | None:
    """The names that a run's row has; None if its nodes have none."""
    nodes = row[NAMES] if NAMES in row else member_names(row)
    if not nodes:
        return None
    mark = log_of(row).get("mark", MARK)
    return Names(tuple(nodes), _shown(mark) if isinstance(mark, str) and mark else MARK)


def member_names(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of a run's nodes, as its configuration has them; empty if it has none, as in a simulation.

    A record has the names of the nodes that it knows of: those that left before it began stay E4, E5, ….
    """
    names = live_of(row).get("members", log_of(row).get(NAMES))
    if not isinstance(names, list) or not 2 <= len(names) <= row[NODES]:
        return ()
    return (*map(_shown, names), *map(name_of, range(len(names), row[NODES])))


def merged_names(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The names that any of two records has: those of members that joined later are in their own, and in later ones."""
    pairs = enumerate(zip_longest(some, others))
    return tuple(str(other if one in {None, name_of(node)} and other else one) for node, (one, other) in pairs)


def log_of(row: Mapping[str, Any]) -> dict[str, object]:
    """What the configuration says of a log of another system: `names`, `mark`, `one_clock`, `profile`."""
    return _part_of(row, "log")


def live_of(row: Mapping[str, Any]) -> dict[str, object]:
    """What the configuration says of the members of a live group."""
    return _part_of(row, "live")


def _part_of(row: Mapping[str, Any], part: str) -> dict[str, object]:
    try:
        found = json.loads(row.get(CONFIG) or "{}")[part]
    except (KeyError, TypeError, ValueError):  # a simulation, or a trace from elsewhere
        return {}
    return found if isinstance(found, dict) else {}


def _shown(name: object) -> str:
    """A name that can be printed: whatever would move the cursor of a terminal is written as its code."""
    text = str(name)
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
