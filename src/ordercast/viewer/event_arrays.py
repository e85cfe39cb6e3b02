"""Events as arrays: one for each column, small codes in place of strings."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.trace.schema import (
    DESTINATIONS,
    DETAIL,
    EVENT,
    NODE,
    PRIORITY,
    SEQ,
    SIZE,
    SOURCE,
    STEP,
    TIME,
    TRANSMISSION,
    EventKind,
)

KINDS: tuple[str, ...] = (*(kind.value for kind in EventKind), "unknown")
"""The kinds by their codes; the last stands for all that this version does not know."""
CODES = {name: code for code, name in enumerate(KINDS)}
NONE = -1
"""Stands for null, in all columns but `priority` and `size`."""
NO_PRIORITY = -(1 << 31)

NARROW = (TIME, NODE, EVENT)
"""The columns that counts need."""
FULL = (TIME, NODE, EVENT, STEP, SOURCE, SEQ, PRIORITY, SIZE, DETAIL, DESTINATIONS, TRANSMISSION)

Array = npt.NDArray[np.generic]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_Number = TypeVar("_Number", np.int16, np.int32, np.int64)


class Texts:
    """Strings by number, each kept once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """The number of a string."""
        if text not in self._codes:
            self._codes[text] = len(self.all)
            self.all.append(text)
        return self._codes[text]

    def codes_of(self, column: pa.Array) -> npt.NDArray[np.int32]:
        """The numbers of a column of strings; -1 for null."""
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        known = np.array([*(self.code(text) for text in coded.dictionary.to_pylist()), NONE], dtype=np.int32)
        indices = coded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
        found: npt.NDArray[np.int32] = known[indices]
        return found


@dataclass(frozen=True)
class Events:
    """Some events in the order of their times; those of a node in the order of the node."""

    time: npt.NDArray[np.int64]
    node: npt.NDArray[np.int16]
    kind: npt.NDArray[np.uint8]
    step: npt.NDArray[np.int64]
    source: npt.NDArray[np.int16]
    seq: npt.NDArray[np.int64]
    priority: npt.NDArray[np.int32]
    size: npt.NDArray[np.int32]
    detail: npt.NDArray[np.int32]
    destinations: npt.NDArray[np.int32]
    transmission: npt.NDArray[np.int64]
    begins_run: npt.NDArray[np.uint8]
    """1: a delivery that begins a run of priorities. A trace does not say it: see `Summary.with_sends`."""

    def __len__(self) -> int:
        return len(self.time)

    def take(self, chosen: Array | slice) -> "Events":
        """Some of them: by a mask, by positions or by a slice."""
        return Events(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def between(self, begin: int, end: int) -> "Events":
        """Those from a time, inclusive, until another, exclusive."""
        first, last = np.searchsorted(self.time, [begin, end])
        return self.take(slice(int(first), int(last)))


def joined(parts: Sequence[Events]) -> Events:
    """The events of several parts, in order; an empty sequence gives none."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Events(*(np.zeros(0, dtype=_TYPES[field.name]) for field in fields(Events)))
    columns = [np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Events)]
    return in_order(Events(*columns))


def in_order(events: Events) -> Events:
    """Sorted by time, then by each node's own order, unless they are already."""
    steps = np.diff(events.time)
    if len(steps) == 0 or steps.min() >= 0:
        return events
    return events.take(np.lexsort((events.step, events.node, events.time)))


def narrow_arrays(
    batch: pa.RecordBatch,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int16], npt.NDArray[np.uint8]]:
    """Time, node and kind."""
    node = _plain(batch.column(NODE), np.int16, NONE)
    return _plain(batch.column(TIME), np.int64, 0), node, _kinds(batch.column(EVENT))


def full_arrays(batch: pa.RecordBatch, texts: Texts) -> Events:
    """All columns; strings are numbered by `texts`."""
    lists = batch.column(DESTINATIONS)
    named = pc.binary_join(lists.cast(pa.list_(pa.string())), ",")
    return in_order(
        Events(
            time=_plain(batch.column(TIME), np.int64, 0),
            node=_plain(batch.column(NODE), np.int16, NONE),
            kind=_kinds(batch.column(EVENT)),
            step=_plain(batch.column(STEP), np.int64, 0),
            source=_plain(batch.column(SOURCE), np.int16, NONE),
            seq=_plain(batch.column(SEQ), np.int64, NONE),
            priority=_plain(batch.column(PRIORITY), np.int32, NO_PRIORITY),
            size=_plain(batch.column(SIZE), np.int32, NONE),
            detail=texts.codes_of(batch.column(DETAIL)),
            destinations=texts.codes_of(named),
            transmission=_plain(batch.column(TRANSMISSION), np.int64, NONE),
            begins_run=np.zeros(batch.num_rows, dtype=np.uint8),
        )
    )


_TYPES = {
    **dict.fromkeys(("time", "step", "seq", "transmission"), np.int64),
    **dict.fromkeys(("node", "source"), np.int16),
    **dict.fromkeys(("priority", "size", "detail", "destinations"), np.int32),
    **dict.fromkeys(("kind", "begins_run"), np.uint8),
}


def _plain(column: pa.Array, dtype: type[_Number], null: int) -> npt.NDArray[_Number]:
    if pa.types.is_null(column.type):
        return np.full(len(column), null, dtype=dtype)
    filled = column.fill_null(null) if column.null_count else column
    found: npt.NDArray[_Number] = filled.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    return found


def _kinds(column: pa.Array) -> npt.NDArray[np.uint8]:
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    unknown = len(KINDS) - 1
    known = np.array([*(CODES.get(name, unknown) for name in coded.dictionary.to_pylist()), unknown], dtype=np.uint8)
    found: npt.NDArray[np.uint8] = known[coded.indices.to_numpy(zero_copy_only=False)]
    return found


def message_keys(events: Events) -> Ints:
    """A number for each message."""
    return keys_of(events.source, events.seq)


def keys_of(source: npt.NDArray[np.int16], seq: Ints) -> Ints:
    """The same of senders and numbers."""
    found: Ints = (source.astype(np.int64) << 44) | seq
    return found
