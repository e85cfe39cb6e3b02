"""All events of a trace, for tests."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.reader import event_files


def read_events(folders: Sequence[Path], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Batch by batch, in the types of the schema; `columns`: all if not given."""
    for part in event_files(folders, EVENTS.names if columns is None else columns):
        for group in range(part.row_groups):
            yield part.read(group)
