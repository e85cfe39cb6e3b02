"""Writes a chunk of a trace: many runs in one file of each dataset.

The chunk is whole or not there, as the trace of a single run is: it is written under names that readers pass over,
and renamed at the end, the runs last. A run that failed leaves its row and no events. Equal runs in equal order give
equal bytes, whoever writes them, so that it does not matter which of two writers of a chunk is first.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.errors import TraceError
from ordercast.trace.files import WRITE_ERRORS, cannot_write, events_batch, open_parquet, runs_table, unfinished
from ordercast.trace.schema import EVENTS, EVENTS_FOLDER, RUNS, RUNS_FOLDER, SUFFIX, EventRow


class ChunkWriter:
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
        self.folder, self.name = folder, name
        self._events = folder / EVENTS_FOLDER / f"{name}{SUFFIX}"
        self._runs = folder / RUNS_FOLDER / f"{name}{SUFFIX}"
        self._rows: list[Mapping[str, object]] = []
        self._held: list[pa.RecordBatch] = []
        self._streamed = False  # events are in the file
        self._kept_events = False  # and they stay
        self._closed = False
        self._writer: pq.ParquetWriter | None = None
        try:
            for path in (self._events, self._runs):
                path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = open_parquet(unfinished(self._events), EVENTS)
        except WRITE_ERRORS as error:
            self._fail(error)

    def write(self, run: str, rows: Sequence[EventRow]) -> None:
        """Takes a batch of events of the run under way."""
        if not rows:
            return
        batch = events_batch(run, rows)
        if self._kept_events:
            self._held.append(batch)
        else:
            self._put(batch)
            self._streamed = True

    def keep(self, runs_row: Mapping[str, object]) -> None:
        """Ends the run under way with its row."""
        for batch in self._held:
            self._put(batch)
        self._held = []
        self._kept_events = self._kept_events or self._streamed
        self._rows.append(runs_row)

    def drop(self, runs_row: Mapping[str, object]) -> None:
        """Ends the run under way with a row that says why; its events are forgotten."""
        self._held = []
        if self._streamed and not self._kept_events:
            try:
                self._open_writer().close()
                self._writer = open_parquet(unfinished(self._events), EVENTS)
            except WRITE_ERRORS as error:
                self._fail(error)
            self._streamed = False
        self._rows.append(runs_row)

    def finish(self) -> None:
        """Makes the chunk whole. If somebody else did so meanwhile, theirs stays: it is the same."""
        table = runs_table(self._rows)
        writer = self._open_writer()
        try:
            writer.close()
            with open_parquet(unfinished(self._runs), RUNS) as runs_writer:
                runs_writer.write_table(table)
            if not self._runs.exists():
                unfinished(self._events).replace(self._events)
                unfinished(self._runs).replace(self._runs)
        except WRITE_ERRORS as error:
            with suppress(OSError):
                if not self._runs.exists():
                    self._events.unlink(missing_ok=True)
            self._fail(error)
        self.discard()

    def discard(self) -> None:
        """Throws away what was written and is not whole."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            with suppress(*WRITE_ERRORS):  # its last words have no room on a full disk
                self._writer.close()
        for path in (self._events, self._runs):
            with suppress(OSError):
                unfinished(path).unlink(missing_ok=True)

    def __enter__(self) -> "ChunkWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.discard()

    def _put(self, batch: pa.RecordBatch) -> None:
        try:
            self._open_writer().write_batch(batch)
        except WRITE_ERRORS as error:
            self._fail(error)

    def _open_writer(self) -> pq.ParquetWriter:
        if self._closed or self._writer is None:
            raise TraceError(f"{self.name} of the trace {self.folder} is closed")
        return self._writer

    def _fail(self, error: Exception) -> NoReturn:
        self.discard()
        raise cannot_write(f"{self.name} of the trace {self.folder}", error) from error
