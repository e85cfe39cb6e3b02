"""Views without numbers, of a sequencer by itself: members only go, and whoever is in no view any more is excused.

A row of a view excuses others, so it is asked whether it can be so: of any two views one has all members of the other,
each has a majority of the one before, and those that go on have installed the last one. Views are known by their
members here: two nodes that passed through different views still agree on one chain of them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from ordercast.model.nodes import everybody, members, name_of, names_of

Installed = Mapping[int, Sequence[int]]
"""By node that installed views: their members, one bit each, in its order."""
Found = Iterator[tuple[str, tuple[int, ...]]]
"""Sentences, and the nodes that they are about."""


def disagreements(views: Installed, stopped: Collection[int], *, ended: bool) -> Found:
    """Two views of which neither has all members of the other; members of the last one that never installed it.

    `ended`: the run is complete, so that whoever goes on has installed the last view.
    """
    by_mask = _first_by_mask(views)
    chain = _chain(by_mask)
    for before, after in pairwise(chain):
        if after & ~before:
            one, other = by_mask[before], by_mask[after]
            sentence = (
                f"{name_of(one)} installed a view of {names_of(before)}, {name_of(other)} one of {names_of(after)}: "
                "neither has all members of the other"
            )
            yield sentence, (one, other)
    if chain and ended:
        last = chain[-1]
        for node in members(last):
            if node not in stopped and last not in views.get(node, ()):
                by = by_mask[last]
                yield f"{name_of(by)} installed a view of {names_of(last)}, and {name_of(node)} did not", (by, node)


def minorities(nodes: int, views: Installed) -> Found:
    """Views that have no more than half of the members of the view before; the first is of all nodes."""
    by_mask = _first_by_mask(views)
    before = everybody(nodes)
    for mask in _chain(by_mask):
        if 2 * (mask & before).bit_count() <= before.bit_count():
            node = by_mask[mask]
            named = names_of(mask) if mask else "nobody"
            yield f"{name_of(node)} installed a view of {named}, no majority of {names_of(before)}", (node,)
        before = mask


def _first_by_mask(views: Installed) -> dict[int, int]:
    """By the members of a view: the first node that installed it."""
    found: dict[int, int] = {}
    for node, masks in sorted(views.items()):
        for mask in masks:
            found.setdefault(mask, node)
    return found


def _chain(masks: Collection[int]) -> list[int]:
    return sorted(masks, key=lambda mask: (-mask.bit_count(), mask))
