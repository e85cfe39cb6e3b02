"""Tiles: the events of a span of time, as themselves if they are few, and as counts if they are many.

A tile is named by an exponent and an index: it begins `index * 2**exponent` nanoseconds after the run does, and is
`2**exponent` long. A tile that has its events needs no smaller ones.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ordercast.trace.schema import EventKind
from ordercast.viewer.event_arrays import CODES, KINDS, Events, joined, message_keys
from ordercast.viewer.row_groups import RunEvents

MOST_EVENTS = 2_000
"""Events of a tile that are sent as themselves."""
BINS = 128
MOST_READ = 8_000_000
"""Rows that are read for one tile; beyond that, counts are estimated from the sizes and times of row groups."""
CLASSES = ("send", "transmit", "arrive", "lose", "level", "deliver", "recovery", "other")
"""What counts and filters tell apart."""
_CLASS_OF = {
    EventKind.SEND: "send",
    EventKind.TRANSMIT: "transmit",
    EventKind.RETRANSMIT: "transmit",
    EventKind.RECEIVE: "arrive",
    EventKind.HEAR: "arrive",
    EventKind.LOSE: "lose",
    EventKind.DISCARD: "other",
    EventKind.ACCEPT: "level",
    EventKind.PREACK: "level",
    EventKind.ACK: "level",
    EventKind.DURABLE: "level",
    EventKind.DELIVER: "deliver",
    EventKind.REQUEST: "transmit",
    EventKind.TIMEOUT: "other",
}
CLASS_OF_KIND = tuple(
    CLASSES.index("other" if name == "unknown" else _CLASS_OF.get(EventKind(name), "recovery")) for name in KINDS
)
"""The class of each kind, by their codes: views, crashes and stops are `recovery`."""
FLIGHT_KINDS = tuple(
    CODES[kind.value] for kind in (EventKind.TRANSMIT, EventKind.RECEIVE, EventKind.HEAR, EventKind.LOSE)
)
_FIRST_RECORDED = 16
"""Row groups of members' records from which it is told how long units fly; each is of one member."""
_CLASS_ARRAY = np.array(CLASS_OF_KIND, dtype=np.int64)


@dataclass(frozen=True)
class Counts:
    """How many events of each class each node has in each bin of a tile."""

    counts: npt.NDArray[np.uint32]
    """By node, class and bin."""
    total: int
    estimated: bool
    """They are from the statistics of row groups: kinds are not told apart, all are counted as `other`."""


@dataclass(frozen=True)
class Tile:
    """A span of a run: its events, with what flies into it and out of it, or counts."""

    begin: int
    end: int
    total: int
    events: Events | None
    counts: Counts | None


def tile_of(run: RunEvents, nodes: int, exponent: int, index: int, margin: int) -> Tile:
    """Computes a tile; `margin`: how long units fly, to find those that cross its edges."""
    begin = run.origin + (index << exponent)
    end = begin + (1 << exponent)
    places = run.places(begin, end)
    if run.rows_at(places) > MOST_READ:
        counts = _estimated(run, places, nodes, begin, end)
        return Tile(begin, end, counts.total, None, counts)
    total = 0
    for place in places:
        times = run.narrow(place)[0]
        total += int(np.count_nonzero((times >= begin) & (times < end)))
    if total > MOST_EVENTS:
        return Tile(begin, end, total, None, _counted(run, places, nodes, begin, end))
    wide = run.between(begin - margin, end + margin) if total else run.between(begin, end)
    inside = (wide.time >= begin) & (wide.time < end)
    near = np.isin(wide.kind, FLIGHT_KINDS) & (wide.transmission >= 0)
    if np.count_nonzero(near & ~inside) > 4 * MOST_EVENTS:
        near = inside
    return Tile(begin, end, total, wide.take(inside | near), None)


def flight_margin(run: RunEvents, *, recorded: bool = False) -> int:
    """How long most units fly, from the first row groups of the run: twice the 99th percentile.

    `recorded`: by its members, which number transmissions each for itself; messages say what belongs together.
    """
    first = (run.full(place) for place in range(min(_FIRST_RECORDED if recorded else 3, len(run.groups))))
    for events in [joined([*first])] if recorded else first:  # what one member sends is in the record of another
        lasting = flight_times(events, recorded=recorded)
        if len(lasting):
            return 2 * int(np.percentile(lasting, 99)) + 1
    return 0


def flight_times(events: Events, *, recorded: bool = False) -> npt.NDArray[np.int64]:
    """From transmissions to their arrivals and losses."""
    flies = (events.transmission >= 0) & ((events.seq >= 0) if recorded else True)
    transmits = events.take(flies & (events.kind == CODES["transmit"]))
    arrivals = events.take(flies & np.isin(events.kind, FLIGHT_KINDS[1:]))
    if not len(transmits) or not len(arrivals):
        return np.zeros(0, dtype=np.int64)
    left, arrived = (message_keys(each) if recorded else each.transmission for each in (transmits, arrivals))
    order = np.argsort(left, kind="stable")
    numbers = left[order]
    place = np.minimum(np.searchsorted(numbers, arrived), len(numbers) - 1)
    known = numbers[place] == arrived
    found: npt.NDArray[np.int64] = (arrivals.time - transmits.time[order][place])[known]
    return found[found >= 0]


def _counted(run: RunEvents, places: list[int], nodes: int, begin: int, end: int) -> Counts:
    counts = np.zeros(nodes * len(CLASSES) * BINS, dtype=np.int64)
    span = end - begin
    for place in places:
        times, node, kind = run.narrow(place)
        chosen = (times >= begin) & (times < end) & (node >= 0) & (node < nodes)
        bins = _bins(times[chosen] - begin, span)
        cells = (node[chosen].astype(np.int64) * len(CLASSES) + _CLASS_ARRAY[kind[chosen]]) * BINS + bins
        counts += np.bincount(cells, minlength=len(counts))
    shaped = counts.astype(np.uint32).reshape(nodes, len(CLASSES), BINS)
    return Counts(shaped, int(counts.sum()), estimated=False)


def _bins(offsets: npt.NDArray[np.int64], span: int) -> npt.NDArray[np.int64]:
    if span >= BINS:
        found: npt.NDArray[np.int64] = offsets // (span // BINS)  # both are powers of two
        return found
    return offsets * (BINS // span)


def _estimated(run: RunEvents, places: list[int], nodes: int, begin: int, end: int) -> Counts:
    """Each row group's rows are spread evenly over its time and its nodes."""
    counts = np.zeros((nodes, len(CLASSES), BINS))
    edges = np.linspace(begin, end, BINS + 1)
    for place in places:
        group = run.groups[place]
        first, last = group.times[0], group.times[1] + 1
        shares = np.clip(np.minimum(edges[1:], last) - np.maximum(edges[:-1], first), 0, None) / (last - first)
        low, high = group.nodes or (0, nodes - 1)
        lanes = range(max(low, 0), min(high, nodes - 1) + 1)
        for node in lanes:
            counts[node, -1] += shares * group.rows / len(lanes)
    return Counts(np.rint(counts).astype(np.uint32), round(counts.sum()), estimated=True)
