"""A file of each dataset in the making: written under names that readers pass over, and renamed when both are whole.

The runs are renamed last, so that whatever ends a process leaves nothing that could be taken for a trace.
"""

from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.errors import TraceError
from ordercast.trace.files import WRITE_ERRORS, cannot_write, open_parquet, unfinished
from ordercast.trace.schema import EVENTS, EVENTS_FOLDER, RUNS, RUNS_FOLDER, SUFFIX


class AtomicWriter:
    """What a writer of a run and one of many runs have in common.

    Used as a context manager it throws away what it wrote unless it was landed.
    """

    def __init__(self, folder: Path, name: str, what: str) -> None:
        """`what` is what errors call it."""
        self.folder = folder
        self._what = what
        self._events = folder / EVENTS_FOLDER / f"{name}{SUFFIX}"
        self._runs = folder / RUNS_FOLDER / f"{name}{SUFFIX}"
        self._closed = False
        self._writer: pq.ParquetWriter | None = None
        try:
            for path in (self._events, self._runs):
                self._make_folder(path.parent)
            self._writer = open_parquet(unfinished(self._events), EVENTS)
        except WRITE_ERRORS as error:
            self._fail(error)

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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.discard()

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)

    def _write_batch(self, batch: pa.RecordBatch) -> None:
        try:
            self._open_writer().write_batch(batch)
        except WRITE_ERRORS as error:
            self._fail(error)

    def _restart(self) -> None:
        """Forgets all events so far."""
        try:
            self._open_writer().close()
            self._writer = open_parquet(unfinished(self._events), EVENTS)
        except WRITE_ERRORS as error:
            self._fail(error)

    def _commit(self, runs: pa.Table) -> None:
        """Gives both files their names. If somebody else did so meanwhile, theirs stay: equal runs give equal bytes."""
        writer = self._open_writer()
        try:
            writer.close()
            with open_parquet(unfinished(self._runs), RUNS) as runs_writer:
                runs_writer.write_table(runs)
            if not self._runs.exists():
                unfinished(self._events).replace(self._events)
                unfinished(self._runs).replace(self._runs)
        except WRITE_ERRORS as error:
            with suppress(OSError):
                if not self._runs.exists():
                    self._events.unlink(missing_ok=True)
            self._fail(error)
        self.discard()

    def _open_writer(self) -> pq.ParquetWriter:
        if self._closed or self._writer is None:
            raise TraceError(f"{self._what} is closed")
        return self._writer

    def _fail(self, error: Exception) -> NoReturn:
        self.discard()
        raise cannot_write(self._what, error) from error
