"""Writes a chunk of a trace: many runs in one file of each dataset.

A chunk is complete or does not exist, like the trace of a single run. A run that failed leaves its row and no events.
Equal runs in equal order give equal bytes, so that it does not matter which of two writers finishes first.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ordercast.trace.atomic_writer import AtomicWriter
from ordercast.trace.files import events_batch, runs_table
from ordercast.trace.schema import EventRow
from ordercast.trace.storage import Location

if TYPE_CHECKING:
    import pyarrow as pa


class ChunkWriter(AtomicWriter):
    """Writes some runs of a trace, one after the other.

    As a context manager it discards what it wrote unless `finish` was called:

        with ChunkWriter(folder, "chunk-00000") as chunk:
            chunk.write("a", rows)
            chunk.keep({"run": "a", "protocol": "spo", "nodes": 3, "complete": True})
            chunk.write("b", rows)
            chunk.drop({"run": "b", "protocol": "spo", "nodes": 3, "complete": False, "error": "timed out"})
            chunk.finish()

    The first run is written as it comes, so it may be of any length; the events of the others are buffered until
    `keep` or `drop` is called.
    """

    def __init__(self, folder: Location, name: str) -> None:
        super().__init__(folder, name, f"{name} of the trace {folder}")
        self._rows: list[Mapping[str, object]] = []
        self._held: list[pa.RecordBatch] = []
        self._streamed = False  # there are events in the file
        self._kept_events = False  # of a run that is kept

    def write(self, run: str, rows: Sequence[EventRow]) -> None:
        """Takes a batch of events of the current run."""
        if not rows:
            return
        batch = events_batch(run, rows)
        if self._kept_events:
            self._held.append(batch)
        else:
            self._write_batch(batch)
            self._streamed = True

    def keep(self, runs_row: Mapping[str, object]) -> None:
        """Ends the current run with its row."""
        for batch in self._held:
            self._write_batch(batch)
        self._held = []
        self._kept_events = self._kept_events or self._streamed
        self._rows.append(runs_row)

    def drop(self, runs_row: Mapping[str, object]) -> None:
        """Ends the current run with a row that says why it failed; its events are discarded."""
        self._held = []
        if self._streamed and not self._kept_events:
            self._restart()
            self._streamed = False
        self._rows.append(runs_row)

    def finish(self) -> None:
        """Completes the chunk. If another process did so meanwhile, its chunk stays: it is the same."""
        self._commit(runs_table(self._rows))
