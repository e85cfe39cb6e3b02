"""What travels to the page: a header as JSON, then arrays as they are in memory.

    4 bytes   length of the header, little-endian
    header    {"columns": {name: [type, offset, length]}, …}, padded to a multiple of 8 bytes
    arrays    each at its offset from the end of the header, a multiple of 8

Times are nanoseconds since the run began, as doubles: exact for a hundred days.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ordercast.viewer.event_arrays import NONE, Array, Events, Texts
from ordercast.viewer.tiles import Tile

_NAMES = {"float64": "f8", "int32": "i4", "uint32": "u4", "int16": "i2", "uint8": "u1"}


def encoded(header: Mapping[str, Any], columns: Mapping[str, Array]) -> bytes:
    """A header and arrays as bytes."""
    described: dict[str, tuple[str, int, int]] = {}
    bodies: list[bytes] = []
    offset = 0
    for name, column in columns.items():
        flat = np.ascontiguousarray(column).reshape(-1)
        body = flat.tobytes()
        described[name] = (_NAMES[flat.dtype.name], offset, len(flat))
        padding = -len(body) % 8
        bodies += [body, bytes(padding)]
        offset += len(body) + padding
    head = json.dumps({**header, "columns": described}, separators=(",", ":")).encode()
    head += b" " * (-(len(head) + 4) % 8)
    return b"".join([len(head).to_bytes(4, "little"), head, *bodies])


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
