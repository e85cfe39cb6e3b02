"""Writes a trace that must be readable at any time: what a live member records, which may be killed at any time.

Each batch of events is a file of its own, under its name only when it is whole. The run's row is there from the
beginning, and replaced when more is known. Names of files are given by who writes: many may write into one folder.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.files import WRITE_ERRORS, events_batch, open_parquet, runs_table, unfinished
from ordercast.trace.packet_recorder import PacketBatch
from ordercast.trace.schema import EVENTS, EVENTS_FOLDER, RUN, RUNS, RUNS_FOLDER, SUFFIX, EventRow


class IncrementalTraceWriter:
    """One run in the making. All its calls come from one thread at a time."""

    def __init__(self, folder: Path, name: str, run: str) -> None:
        """`name`: of the files; nobody else writes files of this name there."""
        self.folder, self.run = folder, run
        self._name, self._files = name, 0

    def begin(self, runs_row: Mapping[str, object]) -> None:
        """From now on it is a trace, if one without events."""
        try:
            for dataset in (EVENTS_FOLDER, RUNS_FOLDER):
                (self.folder / dataset).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failure(error) from error
        self.append(())
        self.describe(runs_row)

    def append(self, rows: Sequence[EventRow]) -> None:
        """Adds events. Batches of some ten thousand rows are a good size, and of a second at most."""
        self._append([events_batch(self.run, rows)] if rows else [])

    def append_packets(self, packed: PacketBatch) -> None:
        """Adds the events of one node."""
        self._append([packed.batch(self.run)])

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
                hidden.unlink(missing_ok=True)  # on a full disk somebody needs the room
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> TraceError:
        return TraceError(f"cannot write the record {self.folder}: {reason_of(error)}; what was written before is kept")
