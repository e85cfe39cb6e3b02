"""Epochs: what each node did in each of its views, in a run whose members may join, leave and be excluded.

An epoch of a node begins with its `view` row and ends with its next one, with `leave` or `exclude`, or with its record.
A node *closes* a view if it delivered all that the group delivered in it: it has a row of the next view, or has left
afterwards. D(p, k), in the names of the field, is what p delivered in its epoch of view k, and M(k) are k's members.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ordercast.audit.violations import Message
from ordercast.model.nodes import mask_of, members
from ordercast.trace.schema import EventKind


@dataclass(frozen=True, slots=True)
class ViewRow:
    """A view as one node recorded it."""

    step: int
    time: int
    number: int
    places: tuple[int, ...]
    """Its members in their places."""
    heard: tuple[int, ...] | None
    """Those whose reports decided where the view before ended; None: it does not tell."""

    @property
    def members(self) -> int:
        """One bit each."""
        return mask_of(self.places)


@dataclass(frozen=True, slots=True)
class End:
    """A row `leave` or `exclude`: the end of a node's membership."""

    step: int
    time: int
    kind: EventKind
    number: int | None
    """Of the view without it."""
    detail: str | None

    @property
    def drained(self) -> bool:
        """It left when all of its messages were known to be delivered."""
        return self.kind is EventKind.LEAVE and self.detail == "drained"


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state that a node loaded when it joined."""

    node: int
    step: int
    donor: int
    number: int


@dataclass(frozen=True, slots=True)
class Epoch:
    """One node in one view."""

    node: int
    view: ViewRow
    delivered: tuple[Message, ...]
    next_view: int | None
    """The number of the view that its node recorded next."""
    end: End | None
    """How its node's membership ended in it."""

    @property
    def number(self) -> int:
        """Of the view."""
        return self.view.number

    @property
    def closed(self) -> bool:
        """Its node went on to another view, or left."""
        return self.next_view is not None or (self.end is not None and self.end.kind is EventKind.LEAVE)


@dataclass(frozen=True)
class Epochs:
    """All epochs of a run."""

    by_node: tuple[tuple[Epoch, ...], ...]
    """Each node's, in the order of its steps."""
    deliveries: tuple[tuple[tuple[int, Message], ...], ...]
    """By node: steps and messages."""
    outside: tuple[tuple[int, int, str, Message | None], ...]
    """Rows before the first view of a node or after the end of its membership: node, step, event, message."""
    states: tuple[StateRow, ...] = ()
    by_view: frozenset[tuple[str, int, Message]] = frozenset()
    """Levels that are recorded as following from a view: event, node and message."""
    views: Mapping[int, ViewRow] = field(default_factory=dict)
    """By number: the view as the first node that recorded it did."""

    def __iter__(self) -> Iterator[Epoch]:
        """Node by node."""
        return (epoch for mine in self.by_node for epoch in mine)

    @cached_property
    def last(self) -> int:
        """The number of the latest view."""
        return max(self.views)

    def members(self, number: int) -> int:
        """Of a view, one bit each; none if nobody recorded it."""
        view = self.views.get(number)
        return view.members if view else 0

    def at(self, node: int, step: int) -> Epoch | None:
        """The epoch of a node at one of its steps; None before the first."""
        mine = self.by_node[node]
        place = bisect_left(mine, step, key=lambda epoch: epoch.view.step)
        return mine[place - 1] if place else None

    @cached_property
    def of_view(self) -> dict[int, list[Epoch]]:
        """By number of the view, in rising order: all its epochs, by node."""
        found: dict[int, list[Epoch]] = {}
        for epoch in sorted(self, key=lambda epoch: (epoch.number, epoch.node, epoch.view.step)):
            found.setdefault(epoch.number, []).append(epoch)
        return found

    @cached_property
    def view_of(self) -> dict[Message, int]:
        """By message: the first view in which it was delivered anywhere."""
        found: dict[Message, int] = {}
        for number, epochs in self.of_view.items():
            for epoch in epochs:
                for message in epoch.delivered:
                    found.setdefault(message, number)
        return found

    def installed(self, number: int) -> int:
        """The nodes that recorded a view."""
        return mask_of(epoch.node for epoch in self.of_view.get(number, ()))

    def is_always_in(self, node: int, first: int) -> bool:
        """True if a node is a member of all known views from a number on."""
        return all(self.members(number) >> node & 1 for number in self.views if number >= first)

    def closing(self, epoch: Epoch) -> tuple[int, int] | None:
        """When the rows were written that end an epoch, and the number of the view that follows; None: it has none."""
        mine = self.by_node[epoch.node]
        after = next((other.view for other in mine if other.view.step > epoch.view.step), None)
        if after is not None:
            return after.time, after.number
        if epoch.end is not None:
            return epoch.end.time, epoch.end.number or epoch.number + 1
        return None

    def stopped(self) -> set[int]:
        """Nodes that are not in the latest view, or whose membership has ended."""
        latest = set(members(self.members(self.last)))
        ended = {epoch.node for epoch in self if epoch.end is not None}
        return (set(range(len(self.by_node))) - latest) | ended
