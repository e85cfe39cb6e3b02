"""Writes the trace of one run, batch by batch, so that memory holds one batch whatever the number of events.

A run that fails, is interrupted or fills the disk leaves nothing that could be mistaken for a trace: see
`atomic_writer`. Equal rows in equal batches give equal bytes.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.atomic_writer import AtomicWriter
from ordercast.trace.files import events_batch, runs_table
from ordercast.trace.schema import EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX, EventRow, is_hidden
from ordercast.trace.storage import Location, files_below


class TraceWriter(AtomicWriter):
    """Writes the trace of one run.

    As a context manager it discards what it wrote unless `finish` was called:

        with TraceWriter(folder, run) as trace:
            trace.write(rows)
            trace.finish({"protocol": "spo", "nodes": 3, "complete": True})
    """

    def __init__(self, folder: Location, run: str) -> None:
        if not run or is_hidden(run) or "/" in run or "\\" in run or "\0" in run:
            raise TraceError(
                f"invalid run name {run!r}: it becomes a file name and must not be empty, hidden or contain a slash"
            )
        require_no_trace(folder)
        self.run = run
        self._made: list[Path] = []
        super().__init__(folder, run, f"the trace {folder}")

    def write(self, rows: Sequence[EventRow]) -> None:
        """Appends a batch of events; some ten thousand rows are a good size."""
        if rows:
            self._write_batch(events_batch(self.run, rows))

    def finish(self, runs_row: Mapping[str, object]) -> None:
        """Completes the trace with the row of its run; columns that the row does not name are null."""
        table = runs_table([{**runs_row, RUN: self.run}])
        self._open_writer()
        try:
            require_no_trace(self.folder)  # another process may have written here meanwhile
        except TraceError:
            self.discard()
            raise
        self._commit(table)

    def discard(self) -> None:
        """Discards what was written, and the folders created for it. Does nothing after `finish`."""
        super().discard()
        for path in reversed(self._made):
            with suppress(OSError):  # it is not empty
                path.rmdir()
        self._made = []

    def _make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self._make_folder(path.parent)
            path.mkdir()
            self._made.append(path)


def require_no_trace(folder: Location) -> None:
    """Raises `TraceError` for a folder that holds a trace, or part of one, and for a path that is not a folder."""
    try:
        if folder.is_file() or (isinstance(folder, Path) and folder.exists() and not folder.is_dir()):
            raise TraceError(f"{folder} is a file; choose a folder for the trace")
        for dataset in (EVENTS_FOLDER, RUNS_FOLDER):
            if any(not is_hidden(path.name) for path in files_below(folder / dataset, SUFFIX)):
                raise TraceError(f"{folder} already holds a trace; choose another folder or remove this one")
    except OSError as error:
        raise TraceError(f"cannot read the folder {folder}: {reason_of(error)}; choose another folder") from error
