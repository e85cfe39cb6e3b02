"""Who need not have everything in a run, and why. A verdict says so: one row of a trace can excuse a whole group."""

from collections.abc import Iterable

from ordercast.model.nodes import mask_of, members, name_of

_STOPPED = "what any node lacks is no violation: the group was aborted, and the record does not say by whom"


def excused(nodes: int, crashed: Iterable[int], aborted: Iterable[int], views: Iterable[tuple[int, int]]) -> str:
    """A sentence for a run; empty if nobody is excused.

    `views`: nodes, each with the members of a view that it installed, one bit each, where views have no numbers; those
    with numbers are audited themselves.
    """
    known = 0
    parts: list[str] = []
    for mask, why in (
        (mask_of(crashed), "crashed"),
        (mask_of(aborted), "aborted the group"),
        *((~remaining & ((1 << nodes) - 1), f"not in a view of {name_of(by)}") for by, remaining in views),
    ):
        if mask & ~known:
            parts.append(f"{', '.join(map(name_of, members(mask & ~known)))} ({why})")
            known |= mask
    return f"what these lack is no violation: {', '.join(parts)}" if parts else ""


def excused_by_abort() -> str:
    """The sentence for a run of which only is known that it was aborted."""
    return _STOPPED
