"""Writes the trace of one run, batch by batch, so that any number of events takes the memory of one batch.

Everything is written under names that readers pass over, and renamed when it is whole, the runs row last: a run
that ended early, was interrupted or filled the disk leaves nothing that could be taken for a trace.
Equal rows in equal batches give equal bytes.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn

import pyarrow.parquet as pq

from ordercast.model.errors import TraceError
from ordercast.trace.files import WRITE_ERRORS, cannot_write, events_batch, open_parquet, runs_table, unfinished
from ordercast.trace.schema import EVENTS, EVENTS_FOLDER, RUN, RUNS, RUNS_FOLDER, SUFFIX, EventRow, is_hidden


class TraceWriter:
    """The trace of one run in the making.

    Used as a context manager it throws away what it wrote unless `finish` was reached:

        with TraceWriter(folder, run) as trace:
            trace.write(rows)
            trace.finish({"protocol": "spo", "nodes": 3, "complete": True})
    """

    def __init__(self, folder: Path, run: str) -> None:
        if not run or is_hidden(run) or "/" in run or "\\" in run or "\0" in run:
            raise TraceError(f"{run!r} cannot name a run: it becomes a file name that must not be hidden")
        self.folder = folder
        self.run = run
        self._events = folder / EVENTS_FOLDER / f"{run}{SUFFIX}"
        self._runs = folder / RUNS_FOLDER / f"{run}{SUFFIX}"
        self._made: list[Path] = []
        self._closed = False
        self._writer: pq.ParquetWriter | None = None
        require_no_trace(folder)
        try:
            for path in (folder / EVENTS_FOLDER, folder / RUNS_FOLDER):
                self._make_folder(path)
            self._writer = open_parquet(unfinished(self._events), EVENTS)
        except WRITE_ERRORS as error:
            self._fail(error)

    def write(self, rows: Sequence[EventRow]) -> None:
        """Appends a batch of events. Batches of some ten thousand rows are a good size."""
        if not rows:
            return
        batch = events_batch(self.run, rows)
        try:
            self._open_writer().write_batch(batch)
        except WRITE_ERRORS as error:
            self._fail(error)

    def finish(self, runs_row: Mapping[str, object]) -> None:
        """Makes the trace whole with the row of its run; columns that the row does not name are null."""
        table = runs_table([{**runs_row, RUN: self.run}])
        writer = self._open_writer()
        try:
            require_no_trace(self.folder)  # somebody else may have written here meanwhile
        except TraceError:
            self.discard()
            raise
        try:
            writer.close()
            with open_parquet(unfinished(self._runs), RUNS) as runs_writer:
                runs_writer.write_table(table)
            unfinished(self._events).replace(self._events)
            unfinished(self._runs).replace(self._runs)
        except WRITE_ERRORS as error:
            with suppress(OSError):
                self._events.unlink(missing_ok=True)
            self._fail(error)
        self._closed = True

    def discard(self) -> None:
        """Throws away what was written, and the folders made for it. Nothing happens after `finish`."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            with suppress(*WRITE_ERRORS):  # its last words have no room on a full disk
                self._writer.close()
        for path in (self._events, self._runs):
            with suppress(OSError):
                unfinished(path).unlink(missing_ok=True)
        for path in reversed(self._made):
            with suppress(OSError):  # somebody put a file there: it is theirs
                path.rmdir()

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.discard()

    def _make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self._make_folder(path.parent)
            path.mkdir()
            self._made.append(path)

    def _open_writer(self) -> pq.ParquetWriter:
        if self._closed or self._writer is None:
            raise TraceError(f"the trace of {self.run} in {self.folder} is closed")
        return self._writer

    def _fail(self, error: Exception) -> NoReturn:
        self.discard()
        raise cannot_write(f"the trace {self.folder}", error) from error


def require_no_trace(folder: Path) -> None:
    """Refuses a folder that holds a trace, or part of one, and a path that is no folder."""
    try:
        if folder.exists() and not folder.is_dir():
            raise TraceError(f"{folder} is a file; choose a folder for the trace")
        for dataset in (EVENTS_FOLDER, RUNS_FOLDER):
            if any(not is_hidden(path.name) for path in (folder / dataset).rglob(f"*{SUFFIX}")):
                raise TraceError(f"{folder} already holds a trace; choose another folder or remove this one")
    except OSError as error:
        raise TraceError(f"cannot look into {folder}: {error}; choose another folder") from error
