"""Records one node packet by packet: one entry for all messages of a packet, expanded into rows when it is written.

A live member has many small messages in each packet, and their rows differ in `step` and `seq` only. Building arrays
of entries and repeating them takes about a sixth of the time of a tuple for each row (`benchmarks/recording.py`).
"""

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.model.machine import View
from ordercast.model.nodes import members, names_of
from ordercast.model.units import Packet
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.recorder import BATCH, Recorder
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
_REPEATED = {TIME: 1, EVENT: 2, SOURCE: 3, SEQ: 4, DESTINATIONS: 5, PRIORITY: 6, DETAIL: 8, TRANSMISSION: 9}
"""By column, its place in an entry: all rows of the entry have this value; `seq` counts up from it."""


class PacketBatch(NamedTuple):
    """Consecutive entries of one node."""

    node: int
    first_step: int
    rows: int
    entries: list[Entry]

    def batch(self, run: str) -> pa.RecordBatch:
        """The rows, as columns."""
        columns = list(zip(*self.entries, strict=True))
        entry_of, place = array("i"), array("q")  # for each row: its entry, and its place in it
        for number, count in enumerate(columns[0]):
            if count == 1:
                entry_of.append(number)
                place.append(0)
            else:
                entry_of.extend(array("i", [number]) * count)
                place.extend(range(count))
        rows = _as_arrow(entry_of, pa.int32())
        found: dict[str, Any] = {
            RUN: pa.repeat(run, self.rows),
            NODE: pa.repeat(pa.scalar(self.node, pa.int32()), self.rows),
            STEP: _as_arrow(array("q", range(self.first_step, self.first_step + self.rows)), pa.int64()),
            SIZE: self._sizes(),
        }
        for name, column in _REPEATED.items():
            found[name] = pa.array(columns[column], EVENTS.field(name).type).take(rows)
        found[SEQ] = pc.add(found[SEQ], _as_arrow(place, pa.int64()))
        return pa.RecordBatch.from_arrays([found[name] for name in EVENTS.names], schema=EVENTS)

    def _sizes(self) -> pa.Array:
        kind = EVENTS.field(SIZE).type
        if not any(entry[7] for entry in self.entries):
            return pa.nulls(self.rows, kind)
        sizes: list[int | None] = []
        for entry in self.entries:
            sizes += entry[7] or [None] * entry[0]
        return pa.array(sizes, kind)


def _as_arrow(values: "array[int]", kind: pa.DataType) -> pa.Array:
    """Without a copy."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


class PacketRecorder(Recorder):
    """Records what happens at one node, packet by packet."""

    def __init__(self, node: int, sink: Callable[[PacketBatch], None], *, deliveries_only: bool) -> None:
        super().__init__(0, lambda _: None, deliveries_only=deliveries_only)
        self._node, self._batch_sink = node, sink
        self._entries: list[Entry] = []
        self._step = self._count = 0  # of the first entry; rows of all

    def send(self, time: int, packet: Packet) -> None:
        """Each message of a packet got its number."""
        lengths = packet.lengths
        to, priority = members(packet.destinations), packet.priority or None
        event = EventKind.SEND.value
        self._add((len(lengths), time, event, packet.source, packet.first, to, priority, lengths, None, None))

    def view(self, time: int, node: int, view: View) -> None:
        """A view was installed; its members are the row's destinations."""
        del node  # there is only one
        detail = f"{view.number}: {names_of(view.members)}; {view.why}"
        self._add((1, time, EventKind.VIEW.value, None, None, members(view.members), None, None, detail, None))

    def flush(self) -> None:
        """Passes the remaining entries to the sink."""
        if self._entries:
            batch = PacketBatch(self._node, self._step, self._count, self._entries)
            self._step, self._count, self._entries = self._step + self._count, 0, []
            self._batch_sink(batch)

    def _messages(
        self, time: int, node: int, event: str, packet: Packet, detail: str | None, number: int | None
    ) -> None:
        del node
        source, first, count = packet.source, packet.first, len(packet.lengths)
        self._add((count, time, event, source, first, None, None, None, detail, number))

    def _other(self, time: int, node: int, event: str, detail: str | None, number: int | None) -> None:
        del node
        self._add((1, time, event, None, None, None, None, None, detail, number))

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._count += entry[0]
        if self._count >= BATCH:
            self.flush()
