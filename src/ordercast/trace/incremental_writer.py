"""Writes a trace that is readable at any time: the recording of a live member, which may be killed at any time.

Each batch of events is a file of its own, renamed to its final name when it is complete. The run's row exists from
the beginning and is replaced when more is known. The caller chooses the file names, so that several members can write
into one folder.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.files import WRITE_ERRORS, events_batch, open_parquet, runs_table
from ordercast.trace.packet_recorder import PacketBatch
from ordercast.trace.schema import EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX, EventRow
from ordercast.trace.small_files import unfinished


class IncrementalTraceWriter:
    """Appends to the trace of one run. Its methods must be called from one thread at a time."""

    def __init__(self, folder: Path, name: str, run: str) -> None:
        """`name`: of the files; no other writer may use the same name in this folder."""
        self.folder, self.run = folder, run
        self._name, self._files = name, 0

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

    def append_packets(self, packets: PacketBatch) -> None:
        """Adds the events of one node, recorded packet by packet."""
        self._append([packets.batch(self.run)])

    def _append(self, batches: Sequence[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches, schema=EVENTS)
        self._write(EVENTS_FOLDER, f"{self._name}-{self._files:06}", table, EVENTS)
        self._files += 1

    def describe(self, runs_row: Mapping[str, object]) -> None:
        """Replaces the row of the run."""
        self._write(RUNS_FOLDER, self._name, runs_table([{**runs_row, RUN: self.run}]), RUNS)

    def _write(self, dataset: str, name: str, table: Any, schema: Any) -> None:
        path = self.folder / dataset / f"{name}{SUFFIX}"
        hidden = unfinished(path)
        try:
            with open_parquet(hidden, schema) as writer:
                writer.write_table(table)
            hidden.replace(path)
        except WRITE_ERRORS as error:
            with suppress(OSError):
                hidden.unlink(missing_ok=True)  # frees its space if the disk is full
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> TraceError:
        return TraceError(
            f"cannot write the recording {self.folder}: {reason_of(error)}; what was written before is kept"
        )
