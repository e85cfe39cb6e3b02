"""Small traces for the viewer's tests."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from ordercast.trace.run_writer import TraceWriter
from ordercast.trace.schema import EventRow
from ordercast.viewer.encoding import HEADER

HOSTILE = '"><img src=x onerror=window.hacked=1><script>window.hacked=1</script></script>'


def row(
    node: int, step: int, time: int, event: str, source: int | None = None, seq: int | None = None, **more: Any
) -> EventRow:
    """An event; `more`: destinations, priority, size, detail, transmission."""
    get = more.get
    rest = get("destinations"), get("priority"), get("size"), get("detail"), get("transmission")
    return (node, step, time, event, source, seq, *rest)


def write(folder: Path, rows: list[EventRow], run: str = "r", batch: int = 10_000, **columns: Any) -> Path:
    """A trace of one run, with a row group for each batch."""
    with TraceWriter(folder, run) as trace:
        for first in range(0, len(rows), batch):
            trace.write(rows[first : first + batch])
        trace.finish({"protocol": "st", "nodes": 3, "complete": True, **columns})
    return folder


def sent_as(data: bytes) -> tuple[dict[str, Any], pa.Table]:
    """The header and the columns of what travels to the page."""
    table = pa.ipc.open_stream(data).read_all()
    header: dict[str, Any] = json.loads(table.schema.metadata[HEADER])
    return header, table


def one_loss() -> list[EventRow]:
    """E1 sends to all; E3 loses it, all are stopped, and E3 is sent a copy."""
    return [
        row(0, 0, 100, "send", 0, 0, destinations=(0, 1, 2), priority=2, size=64),
        row(0, 1, 100, "transmit", 0, 0, detail="data", transmission=1),
        row(0, 2, 100, "accept", 0, 0),
        row(1, 0, 200, "receive", 0, 0, transmission=1),
        row(1, 1, 200, "accept", 0, 0),
        row(2, 0, 200, "lose", 0, 0, detail="loss", transmission=1),
        row(2, 1, 300, "stop", detail="gap"),
        row(0, 3, 400, "transmit", 0, 0, detail="copy", transmission=2),
        row(2, 2, 500, "receive", 0, 0, transmission=2),
        row(2, 3, 500, "accept", 0, 0),
        row(2, 4, 600, "resume", detail="1 asked, 1 inserted"),
        *(row(node, 5, 700 + node, "preack", 0, 0) for node in range(3)),
        *(row(node, 6, 800 + node, "ack", 0, 0) for node in range(3)),
        *(row(node, 7, 800 + node, "deliver", 0, 0) for node in range(3)),
    ]


def many(messages: int, nodes: int = 3) -> list[EventRow]:
    """Each message is sent, and delivered everywhere 50 ns later; a message each 100 ns."""
    found = []
    everybody = tuple(range(nodes))
    for number in range(messages):
        source, seq, time = number % nodes, number // nodes, 100 * number
        found.append(row(source, 2 * number, time, "send", source, seq, destinations=everybody, size=8))
        found += [row(node, 2 * number + 1, time + 50, "deliver", source, seq) for node in everybody]
    return found
