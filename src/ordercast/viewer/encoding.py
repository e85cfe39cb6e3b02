"""What travels to the page: an Arrow stream with one batch of plain numbers, and a header as JSON in its metadata.

Times are nanoseconds since the run began, as doubles: exact for a hundred days. No value is null: -1 stands for that.
Any reader of Arrow can read it; the page's own is `static/arrow.js`.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ordercast.viewer.event_arrays import NONE, Array, Events, Texts
from ordercast.viewer.tiles import Tile

HEADER = b"ordercast"
"""The key of the header in the metadata of the schema."""


def encoded(header: Mapping[str, Any], columns: Mapping[str, Array]) -> bytes:
    """A header and arrays as bytes; the arrays are of one length."""
    arrays = [pa.array(np.ascontiguousarray(column).reshape(-1)) for column in columns.values()]
    fields = [pa.field(name, array.type, nullable=False) for name, array in zip(columns, arrays, strict=True)]
    schema = pa.schema(fields, metadata={HEADER: json.dumps(header, separators=(",", ":")).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    found: bytes = sink.getvalue().to_pybytes()
    return found


def encoded_events(events: Events, texts: Texts, origin: int, header: Mapping[str, Any] | None = None) -> bytes:
    """Events, with the strings that they use; `origin`: the time at which the run began."""
    details, strings = _used(events.detail, texts)
    destinations, sets = _used(events.destinations, texts)
    columns: dict[str, Array] = {
        "time": (events.time - origin).astype(np.float64),
        "node": events.node.astype(np.int16),
        "kind": events.kind,
        "source": events.source,
        "seq": events.seq.astype(np.float64),
        "priority": events.priority,
        "size": events.size,
        "detail": details,
        "destinations": destinations,
        "transmission": events.transmission.astype(np.float64),
        "begins_run": events.begins_run,
    }
    return encoded({**(header or {}), "rows": len(events), "strings": strings, "sets": sets}, columns)


def encoded_tile(tile: Tile, texts: Texts, origin: int) -> bytes:
    """A tile."""
    header = {"begin": tile.begin - origin, "end": tile.end - origin, "total": tile.total}
    if tile.events is not None:
        return encoded_events(tile.events, texts, origin, header)
    assert tile.counts is not None
    nodes, classes, bins = tile.counts.counts.shape
    shape = {"nodes": nodes, "classes": classes, "bins": bins, "estimated": tile.counts.estimated}
    return encoded({**header, **shape}, {"counts": tile.counts.counts})


def _used(codes: Array, texts: Texts) -> tuple[Array, list[str]]:
    """The codes of only those strings that occur."""
    known, places = np.unique(codes, return_inverse=True)
    if len(known) and known[0] == NONE:
        return (places - 1).astype(np.int32), [texts.all[int(code)] for code in known[1:]]
    return places.astype(np.int32), [texts.all[int(code)] for code in known]
