"""Writes a chunk of a trace: many runs in one file of each dataset.

The chunk is whole or not there, as the trace of a single run is. A run that failed leaves its row and no events. Equal
runs in equal order give equal bytes, whoever writes them, so that it does not matter which of two writers is first.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.trace.atomic_writer import AtomicWriter
from ordercast.trace.files import events_batch, runs_table
from ordercast.trace.schema import EventRow

if TYPE_CHECKING:
    import pyarrow as pa


class ChunkWriter(AtomicWriter):
    """Some runs of a trace in the making, one after the other.

    Used as a context manager it throws away what it wrote unless `finish` was reached:

        with ChunkWriter(folder, "chunk-00000") as chunk:
            chunk.write("a", rows)
            chunk.keep({"run": "a", "protocol": "spo", "nodes": 3, "complete": True})
            chunk.write("b", rows)
            chunk.drop({"run": "b", "protocol": "spo", "nodes": 3, "complete": False, "error": "it stumbled"})
            chunk.finish()

    The first run goes to the file as it comes, so it may be of any length; the events of the others are held until it
    is known whether they are kept.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder, name, f"{name} of the trace {folder}")
        self._rows: list[Mapping[str, object]] = []
        self._held: list[pa.RecordBatch] = []
        self._streamed = False  # events are in the file
        self._kept_events = False  # and they stay

    def write(self, run: str, rows: Sequence[EventRow]) -> None:
        """Takes a batch of events of the run under way."""
        if not rows:
            return
        batch = events_batch(run, rows)
        if self._kept_events:
            self._held.append(batch)
        else:
            self._write_batch(batch)
            self._streamed = True

    def keep(self, runs_row: Mapping[str, object]) -> None:
        """Ends the run under way with its row."""
        for batch in self._held:
            self._write_batch(batch)
        self._held = []
        self._kept_events = self._kept_events or self._streamed
        self._rows.append(runs_row)

    def drop(self, runs_row: Mapping[str, object]) -> None:
        """Ends the run under way with a row that says why; its events are forgotten."""
        self._held = []
        if self._streamed and not self._kept_events:
            self._restart()
            self._streamed = False
        self._rows.append(runs_row)

    def finish(self) -> None:
        """Makes the chunk whole. If somebody else did so meanwhile, theirs stays: it is the same."""
        self._commit(runs_table(self._rows))
