"""Records packet by packet: one entry for all messages of a packet, expanded into rows when it is written.

A live member has many small messages in each packet, and their rows differ in `step` and `seq` only. Building arrays
of entries and repeating them takes about a sixth of the time of a tuple for each row (`benchmarks/recording.py`).
"""

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from ordercast.model.nodes import members
from ordercast.model.units import Packet
from ordercast.trace.arrow_columns import Counts, constant, counted, counting, parts, repeated
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.recorder import BATCH, EventRecorder, MembershipChange
from ordercast.trace.schema import (
    DESTINATIONS,
    DETAIL,
    EVENT,
    NODE,
    PRIORITY,
    RUN,
    SEQ,
    SIZE,
    SOURCE,
    STEP,
    TIME,
    TRANSMISSION,
    EventKind,
)

ROW_GROUP = 12_288
"""Rows of a batch, which is expanded at once: larger ones take more memory, smaller ones more time and space."""

Entry = tuple[
    int,  # rows
    int,  # time
    str,  # event
    int | None,  # source
    int | None,  # first seq
    tuple[int, ...] | None,  # destinations
    int | None,  # priority
    tuple[int, ...] | None,  # sizes
    str | None,  # detail
    int | None,  # transmission
]


_DETAIL = 8  # of an entry


class PacketBatch(NamedTuple):
    """Consecutive entries of one node."""

    node: int
    first_step: int
    rows: int
    entries: list[Entry]

    def batch(self, run: str) -> pa.RecordBatch:
        """The rows, as columns."""
        node, step = constant(pa.int32(), self.node, self.rows), counting(self.first_step, self.rows)
        return _batch(run, self.rows, self.entries, lambda _: (node, step))


class RunBatch(NamedTuple):
    """Consecutive entries of all nodes of a run."""

    rows: int
    nodes: list[int]
    """By entry."""
    steps: list[int]
    """By entry: of its first row."""
    entries: list[Entry]

    def batch(self, run: str) -> pa.RecordBatch:
        """The rows, as columns."""
        return _batch(
            *(run, self.rows, self.entries),
            lambda counts: (repeated(pa.int32(), self.nodes, counts), counted(self.steps, counts)),
        )

    def has_detail(self, *details: str) -> bool:
        """Whether an event has one of these details."""
        return any(entry[_DETAIL] in details for entry in self.entries)


def _batch(
    run: str, count: int, entries: list[Entry], node_and_step: Callable[[Counts], tuple[pa.Array, pa.Array]]
) -> pa.RecordBatch:
    rows, times, events, sources, firsts, destinations, priorities, sizes, details, transmissions = zip(
        *entries, strict=True
    )
    counts = None if rows.count(1) == len(rows) else rows
    node, step = node_and_step(counts)
    found = {
        RUN: constant(pa.string(), run, count),
        NODE: node,
        STEP: step,
        TIME: repeated(pa.int64(), times, counts),
        EVENT: repeated(pa.string(), events, counts),
        SOURCE: repeated(pa.int32(), sources, counts),
        SEQ: counted(firsts, counts),
        DESTINATIONS: repeated(pa.list_(pa.int32()), destinations, counts),
        PRIORITY: repeated(pa.int32(), priorities, counts),
        SIZE: parts(sizes, counts),
        DETAIL: repeated(pa.string(), details, counts),
        TRANSMISSION: repeated(pa.int64(), transmissions, counts),
    }
    return pa.RecordBatch.from_arrays([found[name] for name in EVENTS.names], schema=EVENTS)


class PacketRecorder(EventRecorder):
    """Records what happens at one node, packet by packet."""

    def __init__(
        self, node: int, sink: Callable[[PacketBatch], None], *, deliveries_only: bool, by_priority: bool = False
    ) -> None:
        super().__init__(deliveries_only=deliveries_only, by_priority=by_priority)
        self._node, self._batch_sink = node, sink
        self.nodes: tuple[int, ...] | None = None
        """By place of a packet's view: node numbers, which rows have; None: they are the same."""
        self._entries: list[Entry] = []
        self._step = self._count = 0  # of the first entry; rows of all

    def send(self, time: int, packet: Packet) -> None:
        """Each message of a packet got its number."""
        lengths = packet.lengths
        to, priority, source = members(packet.destinations), self._priority(packet), packet.source
        if self.nodes is not None:
            to, source = tuple(self.nodes[place] for place in to), self.nodes[source]
        event = EventKind.SEND.value
        self._add((len(lengths), time, event, source, packet.first, to, priority, lengths, None, None))

    def renumber(self, time: int, node: int, packet: Packet, number: int) -> None:
        """A packet is sent again, to the members of a later view that it is for; also to those that joined.

        Recorded even if only deliveries are: an audit must know that those that joined may deliver it.
        """
        del node
        to, source, event = members(packet.destinations), packet.source, EventKind.RENUMBER.value
        if self.nodes is not None:
            to, source = tuple(self.nodes[place] for place in to), self.nodes[source]
        self._add((len(packet.lengths), time, event, source, packet.first, to, None, None, str(number), None))

    def flush(self) -> None:
        """Passes the remaining entries to the sink."""
        if self._entries:
            batch = PacketBatch(self._node, self._step, self._count, self._entries)
            self._step, self._count, self._entries = self._step + self._count, 0, []
            self._batch_sink(batch)

    def reserve(self) -> int:
        """Leaves a step free, for a row that is known later."""
        self.flush()
        self._step += 1
        return self._step - 1

    def state_at(self, step: int, time: int, change: MembershipChange) -> None:
        """Records a row at a step that was reserved."""
        self._batch_sink(PacketBatch(self._node, step, 1, [_membership_entry(time, change)]))

    def _membership(self, time: int, node: int, change: MembershipChange) -> None:
        del node  # there is only one
        self._add(_membership_entry(time, change))

    def _messages(
        self, time: int, node: int, event: str, packet: Packet, detail: str | None, number: int | None
    ) -> None:
        del node
        source, first, count = packet.source, packet.first, len(packet.lengths)
        if self.nodes is not None:
            source = self.nodes[source]
        self._add((count, time, event, source, first, None, None, None, detail, number))

    def _other(self, time: int, node: int, event: str, detail: str | None, number: int | None) -> None:
        del node
        self._add((1, time, event, None, None, None, None, None, detail, number))

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._count += entry[0]
        if self._count >= ROW_GROUP:
            self.flush()


class RunRecorder(EventRecorder):
    """Records what happens at all nodes of a run, packet by packet: the rows are those of `recorder.Recorder`."""

    def __init__(
        self, nodes: int, sink: Callable[[RunBatch], None], *, deliveries_only: bool, by_priority: bool = False
    ) -> None:
        super().__init__(deliveries_only=deliveries_only, by_priority=by_priority)
        self._sink = sink
        self._next_step = [0] * nodes
        self._count = 0  # rows of the entries
        self._nodes: list[int] = []
        self._steps: list[int] = []
        self._entries: list[Entry] = []

    def send(self, time: int, packet: Packet) -> None:
        """Each message of a packet got its number."""
        lengths, source = packet.lengths, packet.source
        to, priority, event = members(packet.destinations), self._priority(packet), EventKind.SEND.value
        self._add(source, (len(lengths), time, event, source, packet.first, to, priority, lengths, None, None))

    def flush(self) -> None:
        """Passes the remaining entries to the sink."""
        if self._entries:
            batch = RunBatch(self._count, self._nodes, self._steps, self._entries)
            self._count, self._nodes, self._steps, self._entries = 0, [], [], []
            self._sink(batch)

    def _membership(self, time: int, node: int, change: MembershipChange) -> None:
        self._add(node, _membership_entry(time, change))

    def _messages(
        self, time: int, node: int, event: str, packet: Packet, detail: str | None, number: int | None
    ) -> None:
        count = len(packet.lengths)
        self._add(node, (count, time, event, packet.source, packet.first, None, None, None, detail, number))

    def _other(self, time: int, node: int, event: str, detail: str | None, number: int | None) -> None:
        self._add(node, (1, time, event, None, None, None, None, None, detail, number))

    def _add(self, node: int, entry: Entry) -> None:
        self._nodes.append(node)
        self._steps.append(self._next_step[node])
        self._entries.append(entry)
        self._next_step[node] += entry[0]
        self._count += entry[0]
        if self._count >= BATCH:
            self.flush()


def _membership_entry(time: int, change: MembershipChange) -> Entry:
    event, source, seq, to, size, detail = change
    return (1, time, event.value, source, seq, to, None, None if size is None else (size,), detail, None)
