"""The rows of a growing trace that are kept between batches, and questions about rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import ALL_COLUMNS
from ordercast.pipeline.audit.kernel.columns import Flags
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.schema import DESTINATIONS, DETAIL, EVENT, NODE, SEQ, SOURCE, EventKind

CARRIED = pa.schema([EVENTS.field(column) for column in ALL_COLUMNS])
"""The columns of the rows that are kept."""


def as_stream(table: pa.Table) -> bytes:
    """Rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, CARRIED) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def from_stream(stream: bytes) -> pa.Table:
    """The rows of an Arrow stream; none, if it is empty."""
    if not stream:
        return CARRIED.empty_table()
    table = pa.ipc.open_stream(stream).read_all()
    if DETAIL not in table.schema.names:  # the state of an earlier version
        table = table.append_column(CARRIED.field(DETAIL), pa.nulls(table.num_rows, pa.string()))
    return table


def members_join(table: pa.Table) -> bool:
    """True if views have numbers."""
    views = pc.equal(table.column(EVENT), EventKind.VIEW.value)
    return bool(pc.any(pc.and_(views, pc.is_valid(table.column(SEQ)))).as_py())


def is_sent(table: pa.Table) -> Flags:
    """By row: whether the send of its message is among the rows, or it is about no message."""
    rows = list(_messages_of(table))
    sent = {(source, seq) for event, source, seq in rows if event == EventKind.SEND}
    return np.array([event != EventKind.DELIVER or (source, seq) in sent for event, source, seq in rows], np.bool_)


def is_addressed(table: pa.Table) -> Flags:
    """By row: whether it is no delivery, or one at a node that its message is known to be sent to.

    Who joined may be sent a message again that was sent before, and its delivery may be read before that.
    """
    rows = list(zip(_messages_of(table), table.column(NODE).to_pylist(), strict=True))
    to: dict[tuple[int, int], set[int]] = {}
    for ((event, source, seq), _), destinations in zip(rows, table.column(DESTINATIONS).to_pylist(), strict=True):
        if event in {EventKind.SEND, EventKind.RENUMBER}:
            to.setdefault((source, seq), set()).update(destinations or ())
    return np.array(
        [
            event != EventKind.DELIVER or (source, seq) not in to or node in to[source, seq]
            for (event, source, seq), node in rows
        ],
        np.bool_,
    )


def _messages_of(table: pa.Table) -> Iterator[tuple[str, Any, Any]]:
    """By row: its event, source and number."""
    return zip(*(table.column(name).to_pylist() for name in (EVENT, SOURCE, SEQ)), strict=True)
