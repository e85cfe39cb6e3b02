"""The events of one run as arrays: what the kernel reads, without a Python object for any event.

A message is its place among all sends: source by source, each in sending order. So the places of one source's
messages compare as its sending log does, and a table over messages is an array.
What contradicts itself is not described here: `StrangeError` hands it to the reference audit, which says what is wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import LEVELS
from ordercast.model.nodes import mask_of
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, PRIORITY, SEQ, SOURCE, STEP, TIME, EventKind

Numbers = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]

UNKNOWN = -1
"""The place of a message that nobody sent."""
MOST_NODES = 1_000  # a table over nodes and messages is made; and a node's number takes 16 bits

_TIMED = (EventKind.DELIVER, EventKind.RECEIVE, *LEVELS)
_ENDINGS = (EventKind.CRASH, EventKind.ABORT, EventKind.VIEW)
_KINDS = (EventKind.SEND, *_TIMED, *_ENDINGS)
CODES: dict[str, int] = {kind.value: code for code, kind in enumerate(_KINDS)}
"""A number for each kind of event: first those about messages, sends and deliveries first of all."""
FIRST_ENDING = CODES[_ENDINGS[0]]
"""From here on they are about nodes."""
OTHER = len(_KINDS)
"""From here on an audit does not read them."""
_SEND = CODES[EventKind.SEND]
_NULL = np.iinfo(np.int64).min


class StrangeError(Exception):
    """These events are not what arrays can stand for; the reference audit knows what to say of them."""


@dataclass(frozen=True, slots=True)
class Happenings:
    """The events of one kind, sorted by node and step."""

    node: Nodes
    step: Numbers
    time: Numbers
    message: Numbers
    """Places of the messages; `UNKNOWN` for those that nobody sent."""


@dataclass(frozen=True, slots=True)
class Sends:
    """All messages of a run, by place."""

    source: Nodes
    seq: Numbers
    step: Numbers
    priority: Numbers
    starts: Numbers
    """Place of the first message of each source; one more at the end, which is the number of messages."""
    addressed: Flags
    """By node and message."""


@dataclass(frozen=True, slots=True)
class RunColumns:
    """The events of one run."""

    nodes: int
    sends: Sends
    happened: Mapping[EventKind, Happenings]
    stopped: frozenset[int]
    gave_up: Mapping[int, int]
    """The times at which nodes gave the group up."""
    views: Mapping[int, Sequence[tuple[int, int]]]
    """By node that was told of any: the steps at which it was told, and the members from then on as a mask."""
    levels_recorded: bool
    """Whether the levels of knowledge were recorded."""
    receipts_recorded: bool


def columns_of(nodes: int, batches: Iterable[pa.RecordBatch]) -> RunColumns:
    """The arrays that the events of one run amount to. Rows may come in any order.

    Batches may lack `time`, if no levels were recorded, and `priority`, if no service asks for it.
    """
    if nodes > MOST_NODES:
        raise StrangeError
    parts = [_Part.of(batch) for batch in batches]
    rows = _Part.joined(parts)
    if rows.node.size and not (rows.node.min() >= 0 and rows.node.max() < nodes):
        raise StrangeError
    order = _by_node_and_step(rows)
    kind = rows.kind[order]
    sends = _sends_of(nodes, rows, order[kind == _SEND])
    places = _Places(sends)
    happened = {}
    for name in _TIMED:
        chosen = order[kind == CODES[name]]
        message = places.of(rows.source[chosen], rows.seq[chosen])
        happened[name] = Happenings(rows.node[chosen], rows.step[chosen], rows.time[chosen], message)
    return RunColumns(
        nodes,
        sends,
        happened,
        *endings_of(nodes, rows.endings),
        levels_recorded=any(happened[level].node.size for level in LEVELS),
        receipts_recorded=bool(happened[EventKind.RECEIVE].node.size),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of a batch that an audit reads, in the order of the batch."""

    kind: npt.NDArray[np.int8]
    node: Nodes
    step: Numbers
    time: Numbers
    source: Numbers
    seq: Numbers
    # Of the rows that are sends:
    priority: Numbers
    addressees: Numbers
    """How many destinations each has."""
    destinations: Numbers
    """All of them, one send's after the other's."""
    endings: tuple[Mapping[str, Any], ...]
    """The few rows that are about nodes, not about messages."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "_Part":
        kind = kinds_of(batch.column(EVENT))
        known = kind < FIRST_ENDING
        endings: list[Mapping[str, Any]] = []
        if not known.all():
            ending = (kind >= FIRST_ENDING) & (kind < OTHER)
            if ending.any():
                endings = batch.filter(pa.array(ending)).to_pylist()
            batch = batch.filter(pa.array(known))
            kind = kind[known]
        of_sends = [name for name in (PRIORITY, DESTINATIONS) if name in batch.schema.names]
        sends = batch.select(of_sends).filter(pa.array(kind == _SEND))
        lists = sends.column(DESTINATIONS)
        destinations = pc.list_flatten(lists)
        if lists.null_count or destinations.null_count:
            raise StrangeError
        node = numbers(batch.column(NODE))
        if node.size and not (node.min() >= 0 and node.max() < MOST_NODES):
            raise StrangeError
        source, seq = numbers(batch.column(SOURCE), _NULL), numbers(batch.column(SEQ), _NULL)
        if source.size and min(source.min(), seq.min()) == _NULL:
            raise StrangeError
        return cls(
            kind=kind,
            node=node.astype(np.int16),
            step=numbers(batch.column(STEP)),
            time=numbers(batch.column(TIME)) if TIME in batch.schema.names else np.zeros_like(seq),
            source=source,
            seq=seq,
            priority=numbers(sends.column(PRIORITY), 0) if PRIORITY in of_sends else np.zeros(sends.num_rows, np.int64),
            addressees=numbers(pc.list_value_length(lists)),
            destinations=numbers(destinations),
            endings=tuple(endings),
        )

    @classmethod
    def joined(cls, parts: Sequence["_Part"]) -> "_Part":
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.of(pa.RecordBatch.from_pylist([], EVENTS))
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__ if name != "endings"
        }
        return cls(**arrays, endings=tuple(ending for part in parts for ending in part.endings))


def kinds_of(events: pa.Array) -> npt.NDArray[np.int8]:
    """A code for the kind of each event."""
    if not pa.types.is_dictionary(events.type):
        events = events.dictionary_encode()
    codes = np.array([CODES.get(word, OTHER) for word in events.dictionary.to_pylist()], np.int8)
    if not codes.size:
        return np.empty(0, np.int8)
    return codes[numbers(events.indices)]


def numbers(column: pa.Array, instead_of_null: int | None = None) -> Numbers:
    """A column as an array; nulls are strange, unless it is said what stands for them."""
    if column.null_count:
        if instead_of_null is None:
            raise StrangeError
        column = column.cast(pa.int64()).fill_null(instead_of_null)
    return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)  # type: ignore[no-any-return]


def _by_node_and_step(rows: _Part) -> Numbers:
    """The places of the rows, sorted; rows that each node wrote in its order need no more than a look."""
    order = np.argsort(rows.node, kind="stable")
    step, node = rows.step[order], rows.node[order]
    if np.all((step[1:] >= step[:-1]) | (node[1:] != node[:-1])):
        rising = order
    else:
        rising = np.lexsort((rows.step, rows.node))
        step = rows.step[rising]
    # Two events of a node at one step, of those that make logs: most likely one run was given twice.
    in_logs = rows.kind[rising] <= CODES[EventKind.DELIVER]
    step, node = step[in_logs], node[in_logs]
    if np.any((step[1:] == step[:-1]) & (node[1:] == node[:-1])):
        raise StrangeError
    return rising


def _sends_of(nodes: int, rows: _Part, chosen: Numbers) -> Sends:
    """The messages, given the places of the rows that are sends, sorted."""
    source, seq = rows.node[chosen], rows.seq[chosen]
    if not np.array_equal(source, rows.source[chosen]):
        raise StrangeError  # not sent at its source
    destinations = rows.destinations
    if destinations.size and not (destinations.min() >= 0 and destinations.max() < nodes):
        raise StrangeError
    number = np.cumsum(rows.kind == _SEND)[chosen] - 1  # of each send among the sends of the batches
    place = np.empty(chosen.size, np.int64)
    place[number] = np.arange(chosen.size)
    addressed = np.zeros((nodes, chosen.size), np.bool_)
    addressed[destinations, np.repeat(place, rows.addressees)] = True
    starts = np.searchsorted(source, np.arange(nodes + 1))
    return Sends(source, seq, rows.step[chosen], rows.priority[number], starts, addressed)


class _Places:
    """Finds messages by their names."""

    def __init__(self, sends: Sends) -> None:
        self._starts = sends.starts
        self._sizes = np.diff(sends.starts)
        self._lowest = np.zeros(self._sizes.size, np.int64)
        self._seqs: list[Numbers] = []
        self._orders: list[Numbers] = []
        sending = self._sizes > 0
        self._lowest[sending] = sends.seq[sends.starts[:-1][sending]]
        counted = self._lowest[sends.source] + np.arange(sends.seq.size) - sends.starts[sends.source]
        if np.array_equal(sends.seq, counted):
            return  # as every trace of ours numbers them
        for start, end in pairwise(sends.starts):
            order = np.argsort(sends.seq[start:end], kind="stable")
            seqs = sends.seq[start:end][order]
            if np.any(seqs[1:] == seqs[:-1]):
                raise StrangeError  # one name for two messages
            self._seqs.append(seqs)
            self._orders.append(order + start)

    def of(self, source: Numbers, seq: Numbers) -> Numbers:
        """Places of the messages of these names."""
        nodes = self._sizes.size
        named = (source >= 0) & (source < nodes)
        inside = np.where(named, source, 0)
        if not self._seqs:
            place = seq - self._lowest[inside]
            known = named & (place >= 0) & (place < self._sizes[inside])
            return np.where(known, self._starts[inside] + place, UNKNOWN)
        found = np.full(source.size, UNKNOWN, np.int64)
        for node in range(nodes):
            (mine,) = np.nonzero(named & (source == node))
            if self._seqs[node].size:
                at = np.minimum(np.searchsorted(self._seqs[node], seq[mine]), self._seqs[node].size - 1)
                known = self._seqs[node][at] == seq[mine]
                found[mine[known]] = self._orders[node][at[known]]
        return found


Endings = tuple[frozenset[int], dict[int, int], dict[int, list[tuple[int, int]]]]
"""`stopped`, `gave_up` and `views` of a run."""


def endings_of(nodes: int, rows: Iterable[Mapping[str, Any]]) -> Endings:
    """What the few rows that are about nodes amount to."""
    stopped: set[int] = set()
    gave_up: dict[int, int] = {}
    views: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        node, remaining = row[NODE], row[DESTINATIONS]
        if not 0 <= node < nodes:
            raise StrangeError
        if row[EVENT] in {EventKind.CRASH, EventKind.ABORT}:
            stopped.add(node)
        if row[EVENT] == EventKind.ABORT:
            gave_up[node] = row[TIME]
        if row[EVENT] == EventKind.VIEW and remaining is not None:
            if not all(other is not None and 0 <= other < nodes for other in remaining):
                raise StrangeError
            views.setdefault(node, []).append((row[STEP], mask_of(remaining)))
            stopped |= set(range(nodes)) - set(remaining)
    for told in views.values():
        told.sort()
    return frozenset(stopped), gave_up, views
