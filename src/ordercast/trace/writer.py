"""Writes the trace of one run, batch by batch, so that any number of events takes the memory of one batch.

A run that ended early, was interrupted or filled the disk leaves nothing that could be taken for a trace: see `making`.
Equal rows in equal batches give equal bytes.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ordercast.model.errors import TraceError, reason_of
from ordercast.trace.atomic_writer import AtomicWriter
from ordercast.trace.files import events_batch, runs_table
from ordercast.trace.schema import EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX, EventRow, is_hidden


class TraceWriter(AtomicWriter):
    """The trace of one run in the making.

    Used as a context manager it throws away what it wrote unless `finish` was reached:

        with TraceWriter(folder, run) as trace:
            trace.write(rows)
            trace.finish({"protocol": "spo", "nodes": 3, "complete": True})
    """

    def __init__(self, folder: Path, run: str) -> None:
        if not run or is_hidden(run) or "/" in run or "\\" in run or "\0" in run:
            raise TraceError(f"{run!r} cannot name a run: it becomes a file name that must not be hidden")
        require_no_trace(folder)
        self.run = run
        self._made: list[Path] = []
        super().__init__(folder, run, f"the trace {folder}")

    def write(self, rows: Sequence[EventRow]) -> None:
        """Appends a batch of events. Batches of some ten thousand rows are a good size."""
        if rows:
            self._write_batch(events_batch(self.run, rows))

    def finish(self, runs_row: Mapping[str, object]) -> None:
        """Makes the trace whole with the row of its run; columns that the row does not name are null."""
        table = runs_table([{**runs_row, RUN: self.run}])
        self._open_writer()
        try:
            require_no_trace(self.folder)  # somebody else may have written here meanwhile
        except TraceError:
            self.discard()
            raise
        self._commit(table)

    def discard(self) -> None:
        """Throws away what was written, and the folders made for it. Nothing happens after `finish`."""
        super().discard()
        for path in reversed(self._made):
            with suppress(OSError):  # somebody put a file there, or we did
                path.rmdir()
        self._made = []

    def _make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self._make_folder(path.parent)
            path.mkdir()
            self._made.append(path)


def require_no_trace(folder: Path) -> None:
    """Refuses a folder that holds a trace, or part of one, and a path that is no folder."""
    try:
        if folder.exists() and not folder.is_dir():
            raise TraceError(f"{folder} is a file; choose a folder for the trace")
        for dataset in (EVENTS_FOLDER, RUNS_FOLDER):
            if any(not is_hidden(path.name) for path in (folder / dataset).rglob(f"*{SUFFIX}")):
                raise TraceError(f"{folder} already holds a trace; choose another folder or remove this one")
    except OSError as error:
        raise TraceError(f"cannot look into {folder}: {reason_of(error)}; choose another folder") from error
