"""What the page asks of a run besides tiles: a message, members' orders, latencies, the next event of a kind."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ordercast.trace.schema import EventKind
from ordercast.viewer.event_arrays import (
    CODES,
    NO_PRIORITY,
    NONE,
    Events,
    Flags,
    Ints,
    joined,
    keys_of,
    message_keys,
)
from ordercast.viewer.row_groups import RunEvents

MOST_SUMMARISED = 16_000_000
"""Events of a run up to which all of it is read for orders and latencies."""
MOST_MARKS = 5_000
"""Rare events, such as stops and views, that are sent with the summary."""
MOST_ROWS = 20_000
"""Rows of one message that are sent."""
MOST_GAPS = 60
"""Times in which nothing happens that the page may leave out."""
_GAP_SHARE = 50  # a gap is at least this part of a run
OVER_TIME = 120
"""Bins of what is shown over time."""
MOST_CURVES = 64
"""Nodes whose logs are shown over time."""
LEVELS = (EventKind.ACCEPT, EventKind.PREACK, EventKind.ACK, EventKind.DELIVER)
RARE = (
    *(EventKind.STOP, EventKind.RESUME, EventKind.VIEW, EventKind.LEAVE, EventKind.EXCLUDE, EventKind.BLOCK),
    *(EventKind.UNBLOCK, EventKind.STATE, EventKind.CRASH, EventKind.ABORT, EventKind.RESTART),
)
_HELD = (EventKind.ACCEPT, EventKind.DELIVER)
_NOT_OF_A_MESSAGE = tuple(
    CODES[kind.value] for kind in (EventKind.VIEW, EventKind.STATE, EventKind.EXCLUDE, EventKind.RESTART)
)
_EDGES = np.array([0, *(round(10 ** (power / 4)) for power in range(8, 49))], dtype=np.int64)
"""Edges of the histogram in nanoseconds: four bins for each power of ten, from 100 ns to 1000 s."""


@dataclass(frozen=True)
class Order:
    """What one node delivered, in its order."""

    source: npt.NDArray[np.int16]
    seq: Ints
    time: Ints


class Summary:
    """What needs all events of a run: made at the first question, and kept."""

    def __init__(self, run: RunEvents, nodes: int) -> None:
        self._run, self._nodes = run, nodes

    @property
    def possible(self) -> bool:
        """False if the run is too long."""
        return self._run.rows <= MOST_SUMMARISED

    @cached_property
    def _parts(self) -> tuple[Events, Events, Events, Events]:
        """The rare events, the sends, the levels, the losses."""
        rare, sends, levels, losses = [], [], [], []
        for place in range(len(self._run.groups)):
            events = self._run.full(place)
            rare.append(events.take(_of_kinds(events, RARE)))
            sends.append(events.take(_of_kinds(events, (EventKind.SEND,))))
            levels.append(events.take(_of_kinds(events, LEVELS)))
            losses.append(events.take(_of_kinds(events, (EventKind.LOSE,))))
        return joined(rare), joined(sends), joined(levels), joined(losses)

    @cached_property
    def _sent(self) -> tuple[Ints, npt.NDArray[np.intp]]:
        """The numbers of all messages that were sent, sorted, and where their sends are."""
        keys = message_keys(self._parts[1])
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """The longest times in which nothing happens, in order: from an event until the next one."""
        found = [self._run.narrow(place)[0] for place in range(len(self._run.groups))]
        if not found:
            return []
        times = np.sort(np.concatenate(found))
        lengths = np.diff(times)
        first, last = self._run.times
        long = np.nonzero(lengths > (last - first) // _GAP_SHARE)[0]
        long = np.sort(long[np.argsort(-lengths[long], kind="stable")][:MOST_GAPS])
        return [(int(times[at]), int(times[at + 1])) for at in long]

    def over_time(self) -> dict[str, Any]:
        """At the end of each bin, how much each node had accepted and not delivered; in each bin, how much was lost."""
        _, _, levels, losses = self._parts
        first, last = self._run.times
        edges = np.linspace(first, last, OVER_TIME + 1)
        edges[-1] += 1
        held = []
        for node in range(min(self._nodes, MOST_CURVES)):
            own = levels.take(levels.node == node)
            counts = [np.histogram(own.time[own.kind == CODES[kind]], edges)[0] for kind in _HELD]
            held.append(np.maximum(np.cumsum(counts[0] - counts[1]), 0).tolist())
        return {"held": held, "lost": np.histogram(losses.time, edges)[0].tolist()}

    def with_sends(self, events: Events) -> Events:
        """The same events; those that name a message have its destinations and its priority, as its send says.

        Deliveries have whether a run of priorities begins with them.
        """
        _, sends, _, _ = self._parts
        if not len(sends) or not len(events):
            return events
        order = self._sent[1]
        place, sent = self._sends_of(message_keys(events))
        known = sent & (events.source >= 0) & (events.seq >= 0) & ~np.isin(events.kind, _NOT_OF_A_MESSAGE)
        bare = known & (events.destinations == NONE)
        return replace(
            events,
            destinations=np.where(bare, sends.destinations[order][place], events.destinations),
            priority=np.where(known, sends.priority[order][place], events.priority),
            begins_run=self._begin_runs(events),
        )

    def _sends_of(self, keys: Ints) -> tuple[npt.NDArray[np.intp], Flags]:
        """Where the send of each message is among all sends, sorted; False: it has none."""
        known = self._sent[0]
        place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return place, known[place] == keys

    def _begin_runs(self, events: Events) -> npt.NDArray[np.uint8]:
        found = np.zeros(len(events), dtype=np.uint8)
        for node, messages in self._first_of_runs.items():
            own = (events.node == node) & (events.kind == CODES[EventKind.DELIVER])
            found[own] = np.isin(message_keys(events.take(own)), messages)
        return found

    @cached_property
    def _first_of_runs(self) -> dict[int, Ints]:
        """By node: the messages that are more urgent than the one that it delivered before them."""
        sends, order = self._parts[1], self._sent[1]
        found = {}
        for node, delivered in enumerate(self.orders):
            keys = keys_of(delivered.source, delivered.seq)
            place, sent = self._sends_of(keys)
            priority = np.where(sent, sends.priority[order][place], NO_PRIORITY)
            keys, priority = keys[priority != NO_PRIORITY], priority[priority != NO_PRIORITY]
            first = keys[1:][priority[1:] > priority[:-1]]
            if len(first):
                found[node] = first
        return found

    @property
    def marks(self) -> Events:
        """The rare events: stops, views, crashes."""
        return self._parts[0]

    @cached_property
    def orders(self) -> list[Order]:
        """For each node: what it delivered."""
        levels = self._parts[2]
        delivered = levels.take(levels.kind == CODES[EventKind.DELIVER])
        found = []
        for node in range(self._nodes):
            own = delivered.take(delivered.node == node)
            own = own.take(np.argsort(own.step, kind="stable"))
            found.append(Order(own.source, own.seq, own.time))
        return found

    def latencies(self) -> dict[str, dict[str, Any]]:
        """For each level: counts in the bins of `histogram_edges`, and percentiles, from the send to it."""
        _, sends, levels, _ = self._parts
        keys, order = self._sent
        times = sends.time[order]
        found: dict[str, dict[str, Any]] = {}
        for kind in LEVELS:
            reached = levels.take(levels.kind == CODES[kind])
            if not len(reached) or not len(keys):
                continue
            place, known = self._sends_of(message_keys(reached))
            lasting = np.maximum((reached.time - times[place])[known], 0)
            if len(lasting):
                half, most = np.percentile(lasting, [50, 99])
                found[kind.value] = {
                    "bins": np.histogram(lasting, _EDGES)[0].tolist(),
                    "count": len(lasting),
                    "p50": float(half),
                    "p99": float(most),
                    "most": float(lasting.max()),
                }
        return found

    def totals(self) -> dict[str, int]:
        """How many sends, deliveries and losses there are."""
        _, sends, levels, losses = self._parts
        delivered = int(np.count_nonzero(levels.kind == CODES[EventKind.DELIVER]))
        return {"sent": len(sends), "delivered": delivered, "lost": len(losses)}

    def around(self, node: int, source: int, seq: int, reach: int) -> dict[str, Any]:
        """A node's order near a message: where it is, and some messages before and behind it."""
        order = self.orders[node]
        places = np.nonzero((order.source == source) & (order.seq == seq))[0]
        place = int(places[0]) if len(places) else None
        return {"node": node, "length": len(order.seq), "place": place, **self.window(node, place, reach)}

    def window(self, node: int, place: int | None, reach: int) -> dict[str, Any]:
        """A node's order near a place; the end of it, if there is no place."""
        order = self.orders[node]
        length = len(order.seq)
        first = max(0, (length - 1 if place is None else place) - reach)
        last = min(length, first + 2 * reach + 1)
        origin = self._run.origin
        return {
            "first": first,
            "messages": [
                [int(order.source[at]), int(order.seq[at]), int(order.time[at]) - origin] for at in range(first, last)
            ],
        }


def message_rows(run: RunEvents, source: int, seq: int) -> Events:
    """All events that name a message, at most `MOST_ROWS`."""
    found = []
    for place in run.having(seq):
        events = run.full(place)
        chosen = (events.seq == seq) & (events.source == source) & ~np.isin(events.kind, _NOT_OF_A_MESSAGE)
        found.append(events.take(chosen))
    return joined(found).take(slice(0, MOST_ROWS))


@dataclass(frozen=True)
class Wanted:
    """What to find: each that is not None must be so."""

    kind: str | None = None
    node: int | None = None
    source: int | None = None
    seq: int | None = None


def next_event(run: RunEvents, wanted: Wanted, after: int, *, backwards: bool = False) -> Events:
    """The nearest such event behind a time, or before it; none or one."""
    places = sorted(range(len(run.groups)), key=lambda place: run.groups[place].times, reverse=backwards)
    for place in places:
        group = run.groups[place]
        passed = group.times[0] >= after if backwards else group.times[1] <= after
        if passed or (wanted.seq is not None and place not in run.having(wanted.seq)):
            continue
        events = run.full(place)
        chosen = (events.time < after) if backwards else (events.time > after)
        found = np.nonzero(chosen & _matching(events, wanted))[0]
        if len(found):
            at = int(found[-1] if backwards else found[0])
            return events.take(slice(at, at + 1))
    return joined([])


def histogram_edges() -> list[int]:
    """The edges of the bins of latencies, in nanoseconds."""
    edges: list[int] = _EDGES.tolist()
    return edges


def _matching(events: Events, wanted: Wanted) -> Flags:
    chosen: Flags = np.ones(len(events), dtype=np.bool_)
    if wanted.kind is not None:
        chosen &= events.kind == CODES.get(wanted.kind, NONE)
    for column, value in (("node", wanted.node), ("source", wanted.source), ("seq", wanted.seq)):
        if value is not None:
            chosen &= getattr(events, column) == value
    return chosen


def _of_kinds(events: Events, kinds: tuple[EventKind, ...]) -> Flags:
    found: Flags = np.isin(events.kind, [CODES[kind.value] for kind in kinds])
    return found
