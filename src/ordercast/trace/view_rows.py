"""The details of `view` rows: which members' reports decided where the view before ended, and why there is a new one.

A detail is `heard=0,3,4; why`; in the first view of a group nobody was heard: `heard=; founded`.
"""

from collections.abc import Iterable
from re import compile as pattern

BY_VIEW = "view"
"""The detail of a level that follows from a view: the message is among those that all who go on have."""
DRAINED, UNCONFIRMED = "drained", "unconfirmed"
"""The details of `leave` rows."""
_HEARD = pattern(r"heard=((?:\d{1,5}(?:,\d{1,5})*)?)(?:;|$)")


def view_detail(heard: Iterable[int], why: str) -> str:
    """The detail of a view's row, given nodes."""
    return f"heard={','.join(map(str, heard))}; {why}"


def heard_in(detail: str | None) -> tuple[int, ...] | None:
    """The nodes that a detail names as heard; None if it does not tell."""
    found = _HEARD.match(detail or "")
    if found is None:
        return None
    return tuple(int(node) for node in found[1].split(",") if node)
