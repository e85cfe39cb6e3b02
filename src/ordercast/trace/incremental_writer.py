"""Writes a trace that is readable at any time: the recording of a live member, which may be killed at any time.

Events are written into files that are renamed to their final names when they are complete. The run's row exists from
the beginning and is replaced when more is known. The caller chooses the file names, so that several members can write
into one folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.files import events_batch, one_run
from ordercast.trace.packet_recorder import PacketBatch
from ordercast.trace.parquet_file import WRITE_ERRORS, ParquetFile
from ordercast.trace.recorder import BATCH
from ordercast.trace.schema import EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX, EventRow
from ordercast.trace.small_files import unfinished


class IncrementalTraceWriter:
    """Appends to the trace of one run. Its methods must be called from one thread at a time."""

    def __init__(self, folder: Path, name: str, run: str) -> None:
        """`name`: of the files; no other writer may use the same name in this folder."""
        self.folder, self.run = folder, run
        self._name, self._files = name, 0
        self._open: ParquetFile | None = None  # the file of events that is being written
        self._rows = 0  # in it
        self._pool = pa.system_memory_pool()  # Arrow's default pool keeps what was freed

    def begin(self, runs_row: Mapping[str, object]) -> None:
        """Creates the trace, without events."""
        try:
            for dataset in (EVENTS_FOLDER, RUNS_FOLDER):
                (self.folder / dataset).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failure(error) from error
        self.append(())
        self.describe(runs_row)

    def append(self, rows: Sequence[EventRow]) -> None:
        """Adds events as one file. Batches of some ten thousand rows, or of one second, are a good size."""
        self._append([events_batch(self.run, rows)] if rows else [])
        self.publish()

    def append_packets(self, packets: PacketBatch) -> None:
        """Adds the events of one node, recorded packet by packet. Readers see them after `publish`."""
        self._append([packets.batch(self.run)])
        if self._rows >= BATCH:
            self.publish()

    def publish(self) -> None:
        """Completes the file of events that is being written, if there is one: from now on readers see it."""
        if self._open is None:
            return
        path = self._events_path()
        with self._writing(path):
            self._open.close()
            unfinished(path).replace(path)
        self._open, self._rows, self._files = None, 0, self._files + 1
        self._pool.release_unused()

    def describe(self, runs_row: Mapping[str, object]) -> None:
        """Replaces the row of the run."""
        path = self.folder / RUNS_FOLDER / f"{self._name}{SUFFIX}"
        with self._writing(path):
            with ParquetFile(unfinished(path), RUNS, self._pool) as file:
                file.write(one_run({**runs_row, RUN: self.run}))
            unfinished(path).replace(path)

    def _append(self, batches: Sequence[pa.RecordBatch]) -> None:
        path, table = self._events_path(), pa.Table.from_batches(batches, schema=EVENTS)
        with self._writing(path):
            if self._open is None:
                self._open = ParquetFile(unfinished(path), EVENTS, self._pool)
            self._open.write(table)
        self._rows += table.num_rows

    def _events_path(self) -> Path:
        return self.folder / EVENTS_FOLDER / f"{self._name}-{self._files:06}{SUFFIX}"

    @contextmanager
    def _writing(self, path: Path) -> Iterator[None]:
        """If it fails, the unfinished file is closed and removed, which frees its space if the disk is full."""
        try:
            yield
        except WRITE_ERRORS as error:
            if self._open is not None:
                with suppress(*WRITE_ERRORS):
                    self._open.close()
                self._open = None  # what could not be closed is closed with the object
            with suppress(OSError):
                unfinished(path).unlink(missing_ok=True)
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> TraceError:
        return TraceError(
            f"cannot write the recording {self.folder}: {reason_of(error)}; what was written before is kept"
        )
