"""Frames of a log as Arrow batches: whole columns at a time, many small frames in one batch."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ordercast.log.format import RECORD_SIZE, Frame, View

POSITION, SENDER, DESTINATIONS, PRIORITY, VIEW, PAYLOAD = (
    *("position", "sender", "destinations"),
    *("priority", "view", "payload"),
)
VALUE = "value"
MESSAGES = pa.schema(
    [
        (POSITION, pa.int64()),
        (SENDER, pa.string()),
        (DESTINATIONS, pa.list_(pa.string())),
        (PRIORITY, pa.int32()),
        (VIEW, pa.int64()),
        (PAYLOAD, pa.binary()),
    ]
)
_RECORD = np.dtype(
    {
        "names": ["count", "source", "priority"],
        "formats": ["<u4", "<u2", "u1"],
        "offsets": [8, 20, 22],
        "itemsize": RECORD_SIZE,
    }
)
ROWS, BYTES = 1 << 17, 64 << 20
"""A batch that has so many is handed out."""


class Rows:
    """Messages of one view, one after the other."""

    def __init__(self, first: int, view: View, view_number: int) -> None:
        self.first, self.view, self.view_number = first, view, view_number
        self.count = self.bytes = 0
        self._sources: list[np.ndarray] = []
        self._priorities: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._payloads: list[memoryview] = []

    def is_full(self) -> bool:
        """It is to be handed out."""
        return self.count >= ROWS or self.bytes >= BYTES

    def add(self, frame: Frame, start: int, stop: int) -> None:
        """The messages of a frame that are at `start` or above it, and below `stop`."""
        header = frame.header
        skipped, end = max(0, start - header.first), min(header.messages, stop - header.first)
        records = np.frombuffer(frame.columns, _RECORD, header.packets)
        lengths = np.frombuffer(frame.columns, "<u4", header.messages, header.packets * RECORD_SIZE)
        before, kept = int(lengths[:skipped].sum()), lengths[skipped:end]
        size = int(kept.sum())
        counts = records["count"]
        self._sources.append(np.repeat(records["source"], counts)[skipped:end])
        self._priorities.append(np.repeat(records["priority"], counts)[skipped:end])
        self._lengths.append(kept)
        self._payloads.append(frame.payloads[before : before + size])
        self.count += len(kept)
        self.bytes += size

    def column(self, name: str) -> pa.Array:
        """One of `MESSAGES`."""
        match name:
            case "position":
                return pa.array(np.arange(self.first, self.first + self.count, dtype=np.int64))
            case "sender":
                return self._senders()
            case "destinations":
                return self._destinations()
            case "priority":
                return pa.array(np.concatenate(self._priorities).astype(np.int32))
            case "view":
                return pa.array(np.full(self.count, self.view_number, np.int64))
            case _:
                return self._payload_column()

    def _senders(self) -> pa.Array:
        sources = np.concatenate(self._sources)
        highest = int(sources.max()) if len(sources) else 0
        names = [*self.view.members, *(f"[{place}]" for place in range(len(self.view.members), highest + 1))]
        return pa.array(names, pa.string()).take(pa.array(sources))

    def _destinations(self) -> pa.Array:
        """Messages of a log went to all members."""
        names = self.view.members
        offsets = pa.array(np.arange(self.count + 1, dtype=np.int32) * np.int32(len(names)))
        values = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(len(names)), self.count)))
        return pa.ListArray.from_arrays(offsets, values)

    def _payload_column(self) -> pa.Array:
        offsets = np.zeros(self.count + 1, np.int32)
        np.cumsum(np.concatenate(self._lengths), out=offsets[1:])
        data = self._payloads[0] if len(self._payloads) == 1 else b"".join(self._payloads)
        return pa.Array.from_buffers(pa.binary(), self.count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def batch_of(rows: Rows, columns: pa.Schema, value: pa.Array | None) -> pa.RecordBatch:
    """The columns that are asked for; `value`: what the messages were decoded to."""
    arrays = [value if name == VALUE and value is not None else rows.column(name) for name in columns.names]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def chosen(columns: Sequence[str]) -> pa.Schema:
    """Some columns of a message."""
    return pa.schema([MESSAGES.field(name) for name in columns])
