"""Writes one file of each dataset under a temporary name that readers ignore, and renames both when they are complete.

On a storage that has a URL files are put whole instead. The file of `runs` comes last: a process that is killed leaves
nothing that could be mistaken for a trace.
"""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import NoReturn, Self

import pyarrow as pa

from ordercast.model.errors import TraceError
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.files import cannot_write
from ordercast.trace.parquet_file import WRITE_ERRORS, ParquetFile
from ordercast.trace.schema import EVENTS_FOLDER, RUNS_FOLDER, SUFFIX
from ordercast.trace.small_files import unfinished
from ordercast.trace.storage import Location, RemotePath


class AtomicWriter:
    """The base of the writers of one run and of many runs.

    As a context manager it discards what it wrote unless it was committed.
    """

    def __init__(self, folder: Location, name: str, what: str) -> None:
        """`what`: its name in errors."""
        self.folder = folder
        self._what = what
        self._events = folder / EVENTS_FOLDER / f"{name}{SUFFIX}"
        self._runs = folder / RUNS_FOLDER / f"{name}{SUFFIX}"
        self._closed = False
        self._elsewhere = TemporaryDirectory(prefix="ordercast-") if isinstance(folder, RemotePath) else None
        self._writer: ParquetFile | None = None
        try:
            for path in (self._events, self._runs):
                if isinstance(path, Path):
                    self._make_folder(path.parent)
            self._writer = ParquetFile(self._unfinished(self._events), EVENTS)
        except WRITE_ERRORS as error:
            self._fail(error)

    def discard(self) -> None:
        """Discards what was written and not committed."""
        if self._closed:
            return
        self._closed = True
        if self._writer is not None:
            with suppress(*WRITE_ERRORS):  # the footer does not fit on a full disk
                self._writer.close()
        for path in (self._events, self._runs):
            with suppress(OSError):
                self._unfinished(path).unlink(missing_ok=True)
        if self._elsewhere is not None:
            self._elsewhere.cleanup()

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
            self._open_writer().write(pa.Table.from_batches([batch]))
        except WRITE_ERRORS as error:
            self._fail(error)

    def _restart(self) -> None:
        """Discards all events so far."""
        try:
            self._open_writer().close()
            self._writer = ParquetFile(self._unfinished(self._events), EVENTS)
        except WRITE_ERRORS as error:
            self._fail(error)

    def _commit(self, runs: pa.Table) -> None:
        """Renames both files. If another process did so meanwhile, its files stay: equal runs give equal bytes."""
        writer = self._open_writer()
        try:
            writer.close()
            with ParquetFile(self._unfinished(self._runs), RUNS) as runs_file:
                runs_file.write(runs)
            if not self._runs.exists():
                self._publish(self._events)
                self._publish(self._runs)
        except WRITE_ERRORS as error:
            with suppress(OSError):
                if not self._runs.exists():
                    self._events.unlink(missing_ok=True)
            self._fail(error)
        self.discard()

    def _unfinished(self, path: Location) -> Path:
        """Where a file is written until it is complete: beside its place, or on this machine."""
        if isinstance(path, Path):
            return unfinished(path)
        assert self._elsewhere is not None
        return Path(self._elsewhere.name) / f"{path.parent.name}-{path.name}"

    def _publish(self, path: Location) -> None:
        """Makes a complete file appear."""
        if isinstance(path, Path):
            self._unfinished(path).replace(path)
        else:
            path.put(self._unfinished(path))

    def _open_writer(self) -> ParquetFile:
        if self._closed or self._writer is None:
            raise TraceError(f"{self._what} is closed")
        return self._writer

    def _fail(self, error: Exception) -> NoReturn:
        self.discard()
        raise cannot_write(self._what, error) from error
