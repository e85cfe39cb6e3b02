"""Programs of documents and examples, in groups of their own: on one machine a group is found by its name.

So they can run beside others that try the same documents, on this machine or in containers that share its network.
"""

import re
from collections.abc import Callable

from tests.live.ports import free_group

_NAMES = re.compile(r'(?<=\bjoin\(")[\w ]+(?=")|(?<=: str = ")[\w ]+(?=")')
"""Where a program names its group: in a call of `join`, or as the default of a parameter."""


def new_names() -> Callable[[str], str]:
    """A function that renames the groups of a program; those of one name come into one group."""
    drawn: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        return drawn.setdefault(found[0], free_group(found[0]))

    def rename(program: str) -> str:
        changed = _NAMES.sub(renamed, program)
        assert changed != program, "the program names no group"
        return changed

    return rename
