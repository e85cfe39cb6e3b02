"""The events of one run as arrays: the input of the vectorised audit, without a Python object for each event.

A message is identified by its index among all sends, which are sorted by source and sending order. So the indices of
one source's messages compare as their positions in its sending log, and a table over messages is an array. Inconsistent
events raise `NotVectorisableError`: the reference audit then says what is wrong with them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.excused import excused
from ordercast.audit.logs import LEVELS
from ordercast.model.nodes import mask_of
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, PRIORITY, SEQ, SOURCE, STEP, TIME, EventKind

Numbers = npt.NDArray[np.int64]
Nodes = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]

UNKNOWN = -1
"""The index of a message that no node sent."""
MOST_NODES = (1 << 15) - 1  # node numbers take 16 bits
MOST_CELLS = 1 << 32  # of a table over nodes and messages, with a byte for each

_TIMED = (EventKind.DELIVER, EventKind.RECEIVE, *LEVELS, EventKind.DURABLE)
_MEMBERSHIP = (
    *(EventKind.CRASH, EventKind.ABORT, EventKind.VIEW, EventKind.LEAVE, EventKind.EXCLUDE),
    *(EventKind.STATE, EventKind.RESTART, EventKind.DROP),
)
_KINDS = (EventKind.SEND, *_TIMED, *_MEMBERSHIP)
CODES: dict[str, int] = {kind.value: code for code, kind in enumerate(_KINDS)}
"""The code of each kind of event: those about messages come first, and of these sends and deliveries."""
FIRST_MEMBERSHIP = CODES[_MEMBERSHIP[0]]
"""The first code of events about nodes: crashes, aborts, views, and the ends and beginnings of memberships."""
OTHER = len(_KINDS)
"""The code of all kinds that an audit does not read."""
TRANSMITTED = OTHER + 1
"""The code of transmissions, of which only matters whether there are any."""
_SEND = CODES[EventKind.SEND]
_CODES = {**CODES, EventKind.TRANSMIT.value: TRANSMITTED}
_NULL = np.iinfo(np.int64).min


def excused_in(nodes: int, run: "RunColumns | Membership") -> str:
    """Who is excused, as `excused` says it."""
    views = [(node, mask) for node, mine in sorted(run.views.items()) for _, mask in mine]
    return excused(nodes, run.crashed_at, run.aborted_at, views)


class NotVectorisableError(Exception):
    """These events cannot be represented as arrays: they are inconsistent, or members join. Use the reference audit."""


@dataclass(frozen=True, slots=True)
class EventArrays:
    """The events of one kind, sorted by node and step."""

    node: Nodes
    step: Numbers
    time: Numbers
    message: Numbers
    """Indices of the messages; `UNKNOWN` for those that no node sent."""


@dataclass(frozen=True, slots=True)
class Sends:
    """All messages of a run, by index."""

    source: Nodes
    seq: Numbers
    step: Numbers
    time: Numbers
    priority: Numbers
    starts: Numbers
    """Index of the first message of each source; the last entry is the number of messages."""
    addressed: Flags
    """By node and message."""


@dataclass(frozen=True, slots=True)
class RunColumns:
    """The events of one run."""

    nodes: int
    sends: Sends
    events: Mapping[EventKind, EventArrays]
    stopped: frozenset[int]
    aborted_at: Mapping[int, int]
    """By node that aborted the group: when."""
    views: Mapping[int, Sequence[tuple[int, int]]]
    """By node that installed any: the steps at which it did, and the members from then on as a mask."""
    crashed_at: Mapping[int, int]
    """By node that crashed: its step."""
    levels_recorded: bool
    """True if the events contain acceptances, pre-acknowledgments or acknowledgments."""
    receipts_recorded: bool
    transmissions_recorded: bool = False
    views_numbered: bool = False
    """True if members may join; none did, and none went."""
    delivers_stable: bool = False
    """True if the run delivers what is pre-acknowledged, and does not wait until it is acknowledged."""


def columns_of(nodes: int, batches: Iterable[pa.RecordBatch]) -> RunColumns:
    """Converts the events of one run, in any order, to arrays.

    Batches may lack `priority` if the service has none.
    """
    if nodes > MOST_NODES:
        raise NotVectorisableError
    rows = _Rows.joined([_Rows.of(batch) for batch in batches])
    if rows.node.size and not (rows.node.min() >= 0 and rows.node.max() < nodes):
        raise NotVectorisableError
    views_numbered = has_numbered_views(nodes, rows.membership)
    order = _by_node_and_step(rows)
    kind = rows.kind[order]
    sends = _sends_of(nodes, rows, order[kind == _SEND])
    indices = MessageIndex(sends)
    events = {}
    for name in _TIMED:
        chosen = order[kind == CODES[name]]
        message = indices.of(rows.source[chosen], rows.seq[chosen])
        events[name] = EventArrays(rows.node[chosen], rows.step[chosen], rows.time[chosen], message)
    return RunColumns(
        nodes,
        sends,
        events,
        *(membership_of(nodes, rows.membership) if not views_numbered else Membership(frozenset(), {}, {}, {})),
        levels_recorded=any(events[level].node.size for level in LEVELS),
        receipts_recorded=bool(events[EventKind.RECEIVE].node.size),
        transmissions_recorded=rows.transmissions,
        views_numbered=views_numbered,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
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
    membership: tuple[Mapping[str, Any], ...]
    """The few rows about nodes instead of messages."""
    transmissions: bool
    """True if there are transmissions."""

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> "_Rows":
        kind = kinds_of(batch.column(EVENT))
        known = kind < FIRST_MEMBERSHIP
        transmissions = bool(np.any(kind == TRANSMITTED))
        membership: list[Mapping[str, Any]] = []
        if not known.all():
            about_nodes = (kind >= FIRST_MEMBERSHIP) & (kind < OTHER)
            if about_nodes.any():
                membership = batch.filter(pa.array(about_nodes)).to_pylist()
            batch = batch.filter(pa.array(known))
            kind = kind[known]
        of_sends = [name for name in (PRIORITY, DESTINATIONS) if name in batch.schema.names]
        sends = batch.select(of_sends).filter(pa.array(kind == _SEND))
        lists = sends.column(DESTINATIONS)
        node = numbers(batch.column(NODE))
        if node.size and not (node.min() >= 0 and node.max() < MOST_NODES):
            raise NotVectorisableError
        source, seq = numbers(batch.column(SOURCE), _NULL), numbers(batch.column(SEQ), _NULL)
        if source.size and min(source.min(), seq.min()) == _NULL:
            raise NotVectorisableError
        return cls(
            kind=kind,
            node=node.astype(np.int16),
            step=numbers(batch.column(STEP)),
            time=numbers(batch.column(TIME)),
            source=source,
            seq=seq,
            priority=numbers(sends.column(PRIORITY), 0) if PRIORITY in of_sends else np.zeros(sends.num_rows, np.int64),
            addressees=numbers(pc.list_value_length(lists)),
            destinations=numbers(pc.list_flatten(lists)),
            membership=tuple(membership),
            transmissions=transmissions,
        )

    @classmethod
    def joined(cls, parts: Sequence["_Rows"]) -> "_Rows":
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.of(pa.RecordBatch.from_pylist([], EVENTS))
        arrays = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in cls.__slots__
            if name not in {"membership", "transmissions"}
        }
        membership = tuple(about_nodes for part in parts for about_nodes in part.membership)
        return cls(**arrays, membership=membership, transmissions=any(part.transmissions for part in parts))


def kinds_of(events: pa.Array) -> npt.NDArray[np.int8]:
    """A code for the kind of each event."""
    if not pa.types.is_dictionary(events.type):
        events = events.dictionary_encode()
    codes = np.array([_CODES.get(word, OTHER) for word in events.dictionary.to_pylist()], np.int8)
    if not codes.size:
        return np.empty(0, np.int8)
    return codes[numbers(events.indices)]


def numbers(column: pa.Array, instead_of_null: int | None = None) -> Numbers:
    """A column as an array; nulls are replaced by a value, or raise `NotVectorisableError` if there is none."""
    if column.null_count:
        if instead_of_null is None:
            raise NotVectorisableError
        column = column.cast(pa.int64()).fill_null(instead_of_null)
    return column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)  # type: ignore[no-any-return]


def _by_node_and_step(rows: _Rows) -> Numbers:
    """The indices that sort rows by node and step; cheap if each node's rows are in order already."""
    order = np.argsort(rows.node, kind="stable")
    step, node = rows.step[order], rows.node[order]
    if np.all((step[1:] >= step[:-1]) | (node[1:] != node[:-1])):
        rising = order
    else:
        rising = np.lexsort((rows.step, rows.node))
        step = rows.step[rising]
    # Two sends or deliveries of a node at one step: most likely the same run was passed twice.
    in_logs = rows.kind[rising] <= CODES[EventKind.DELIVER]
    step, node = step[in_logs], node[in_logs]
    if np.any((step[1:] == step[:-1]) & (node[1:] == node[:-1])):
        raise NotVectorisableError
    return rising


def _sends_of(nodes: int, rows: _Rows, chosen: Numbers) -> Sends:
    """The messages, given the sorted indices of the rows that are sends."""
    source, seq = rows.node[chosen], rows.seq[chosen]
    if not np.array_equal(source, rows.source[chosen]):
        raise NotVectorisableError  # not sent at its source
    destinations = rows.destinations
    if destinations.size and not (destinations.min() >= 0 and destinations.max() < nodes):
        raise NotVectorisableError
    number = np.cumsum(rows.kind == _SEND)[chosen] - 1  # of each send among the sends of the batches
    place = np.empty(chosen.size, np.int64)
    place[number] = np.arange(chosen.size)
    if nodes * chosen.size > MOST_CELLS:
        raise NotVectorisableError
    addressed = np.zeros((nodes, chosen.size), np.bool_)
    addressed[destinations, np.repeat(place, rows.addressees)] = True
    starts = np.searchsorted(source, np.arange(nodes + 1))
    return Sends(source, seq, rows.step[chosen], rows.time[chosen], rows.priority[number], starts, addressed)


class MessageIndex:
    """Maps the names of messages, (source, seq), to their indices."""

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
            return  # consecutive numbers: the index is an offset
        for start, end in pairwise(sends.starts):
            order = np.argsort(sends.seq[start:end], kind="stable")
            seqs = sends.seq[start:end][order]
            if np.any(seqs[1:] == seqs[:-1]):
                raise NotVectorisableError  # one name for two messages
            self._seqs.append(seqs)
            self._orders.append(order + start)

    def of(self, source: Numbers, seq: Numbers) -> Numbers:
        """The indices of some messages; `UNKNOWN` for those that no node sent."""
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


def has_numbered_views(nodes: int, rows: Iterable[Mapping[str, Any]]) -> bool:
    """True if members may join, but the group stayed as it was founded; False if views have no numbers.

    In such a run every node begins with view 0 of all nodes, and what is complete has all properties of views. Raises
    `NotVectorisableError` for all other runs whose views have numbers.
    """
    rows = list(rows)
    if not any(row[EVENT] == EventKind.VIEW and row[SEQ] is not None for row in rows):
        return False
    if sorted(row[NODE] for row in rows) != list(range(nodes)):
        raise NotVectorisableError
    for row in rows:
        is_founding = row[EVENT] == EventKind.VIEW and row[SEQ] == 0 and row[STEP] == 0
        if not is_founding or row[DESTINATIONS] != rows[0][DESTINATIONS]:
            raise NotVectorisableError
    if sorted(rows[0][DESTINATIONS] or ()) != list(range(nodes)):
        raise NotVectorisableError
    return True


class Membership(NamedTuple):
    """What the rows about nodes say; the names are those of `RunColumns`."""

    stopped: frozenset[int]
    aborted_at: dict[int, int]
    views: dict[int, list[tuple[int, int]]]
    crashed_at: dict[int, int]


def membership_of(nodes: int, rows: Iterable[Mapping[str, Any]]) -> Membership:
    """Evaluates the rows about nodes."""
    stopped: set[int] = set()
    aborted_at: dict[int, int] = {}
    views: dict[int, list[tuple[int, int]]] = {}
    crashed_at: dict[int, int] = {}
    for row in rows:
        node, remaining = row[NODE], row[DESTINATIONS]
        if not 0 <= node < nodes:
            raise NotVectorisableError
        if row[EVENT] in {EventKind.CRASH, EventKind.ABORT}:
            stopped.add(node)
        if row[EVENT] == EventKind.ABORT:
            aborted_at[node] = row[TIME]
        if row[EVENT] == EventKind.CRASH:
            crashed_at[node] = min(row[STEP], crashed_at.get(node, row[STEP]))
        if row[EVENT] == EventKind.VIEW and remaining is not None:
            if not all(other is not None and 0 <= other < nodes for other in remaining):
                raise NotVectorisableError
            views.setdefault(node, []).append((row[STEP], mask_of(remaining)))
            stopped |= set(range(nodes)) - set(remaining)
    for known in views.values():
        known.sort()
    return Membership(frozenset(stopped), aborted_at, views, crashed_at)
