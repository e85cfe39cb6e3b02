"""The state of one node, and its views."""

from typing import NamedTuple

import msgspec

from ordercast.explorer.node_disk import NodeDisk
from ordercast.model.declared_state import Snapshot

JOINS = -1
"""Submissions of a node that has yet to join the group: joining is its first one."""


class NodeState(msgspec.Struct, frozen=True, cache_hash=True):
    """A node between two inputs: its machine, its timers, its application, and what it has claimed so far.

    Claims are sets of items (bit masks), which the promises are checked with; the machine does not know them.
    """

    node: int
    snapshot: Snapshot
    timers: tuple[str, ...] = ()
    submitted: int = 0
    numbered: int = 0
    reached: tuple[int, int, int, int] = (0, 0, 0, 0)
    """By level: the items that reached it; level 0 is not used."""
    delivered: int = 0
    log: tuple[int, ...] = ()
    """The order of delivery; recorded only if the service promises one order."""
    view: tuple[int, int] = (0, -1)
    """The number of its latest view, and its members; -1 is all nodes."""
    crashed: bool = False
    left: bool = False
    """It aborted, was excluded from the view, or has left the group."""
    views: tuple["OwnView", ...] = ()
    """In a group with membership: all its views. Empty: it has not joined yet."""
    leaves: bool = False
    """Its application has left the group."""
    gave_up: bool = False
    """Its host gave the group up."""
    departed: bool = False
    """It has left the group, and finished its last view with the others."""
    may_end_run: bool = False
    """With priorities: it received a marker, and has delivered nothing before something more urgent since."""
    disk: NodeDisk | None = None
    """With logs: that of its log."""
    logged: "Logged | None" = None
    """With logs: what its machine has written, kept after a crash."""


class OwnView(NamedTuple):
    """A view of a group with membership, as a node entered it."""

    number: int
    members: tuple[int, ...]
    """In their places."""
    delivered: int
    """What the node had delivered before."""
    acknowledged: int
    """What the node knew as acknowledged before."""
    durable: int = 0
    """With logs: how many packets of its log were told to be on its disk before."""
    anew: int = 0
    """With logs: the group began anew with it, from the logs of these nodes' processes."""


class Logged(NamedTuple):
    """The log of a node, as its machine knows it."""

    items: tuple[int, ...] = ()
    durable: int = 0
    """How many of them it was told to be on its disk, or has found there."""
    begins: tuple[tuple[int, int], ...] = ()
    """Views, each with how many items of the log are before it."""
