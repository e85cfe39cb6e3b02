"""Collects the rows about views of a run, and builds the epochs of its nodes."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ordercast.audit.view_epochs import End, Epoch, Epochs, StateRow, ViewRow
from ordercast.audit.violations import Message
from ordercast.trace.schema import EventKind

Deliveries = Sequence[tuple[int, Message]]
"""Of one node: steps and messages, in the order of the steps."""
Rows = Sequence[tuple[int, str, Message | None]]
"""Of one node: steps, events and messages."""


class EpochRows:
    """The rows of a run about views that have numbers. Lists are by node."""

    def __init__(self, nodes: int) -> None:
        self.views: list[list[ViewRow]] = [[] for _ in range(nodes)]
        self.ends: list[list[End]] = [[] for _ in range(nodes)]
        self.states: list[tuple[int, int, int | None, int | None]] = []  # node, step, donor, number
        self.by_view: set[tuple[str, int, Message]] = set()

    def has_views(self) -> bool:
        """True if there is a view."""
        return any(self.views)

    def count(self) -> int:
        """How many rows of views there are."""
        return sum(len(rows) for rows in self.views)

    def epochs(self, deliveries: Sequence[Deliveries], others: Sequence[Rows]) -> Epochs:
        """The epochs, given by node what was delivered, and the other rows that only a member may have."""
        known: dict[int, ViewRow] = {}
        for rows in self.views:
            rows.sort(key=lambda row: row.step)
            for row in rows:
                known.setdefault(row.number, row)
        states = [
            StateRow(node, step, donor, number)
            for node, step, donor, number in self.states
            if donor is not None and number is not None
        ]
        nodes = range(len(self.views))
        return Epochs(
            by_node=tuple(tuple(self._of_node(node, deliveries[node])) for node in nodes),
            deliveries=tuple(map(tuple, deliveries)),
            outside=tuple(row for node in nodes for row in self._outside(node, deliveries[node], others[node])),
            states=tuple(states),
            by_view=frozenset(self.by_view),
            views=dict(sorted(known.items())),
        )

    def _of_node(self, node: int, deliveries: Deliveries) -> Iterator[Epoch]:
        rows, ends = self.views[node], sorted(self.ends[node], key=lambda end: end.step)
        steps = [step for step, _ in deliveries]
        for place, row in enumerate(rows):
            after = rows[place + 1] if place + 1 < len(rows) else None
            end = next((end for end in ends if end.step > row.step and (after is None or end.step < after.step)), None)
            until = end or after
            below = bisect_left(steps, until.step) if until else len(steps)
            log = tuple(message for _, message in deliveries[bisect_left(steps, row.step) : below])
            yield Epoch(node, row, log, after.number if after else None, end)

    def _outside(
        self, node: int, deliveries: Deliveries, others: Rows
    ) -> Iterator[tuple[int, int, str, Message | None]]:
        """What a node did while it was no member. Whoever has left still receives, discards and answers."""
        begin = self.views[node][0].step if self.views[node] else None
        end = min((end.step for end in self.ends[node]), default=None)
        rows: list[tuple[int, str, Message | None]] = [*others]
        rows += [(step, EventKind.DELIVER.value, message) for step, message in deliveries]
        rows += [(row.step, EventKind.VIEW.value, None) for row in self.views[node]]
        rows += [(step, EventKind.STATE.value, None) for at, step, *_ in self.states if at == node]
        outside = [row for row in rows if begin is None or row[0] < begin or (end is not None and row[0] > end)]
        for step, kind, message in sorted(outside, key=lambda row: row[0]):
            yield node, step, kind, message
