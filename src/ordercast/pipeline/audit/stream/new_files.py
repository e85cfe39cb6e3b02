"""Which files of a growing trace are new, and which of them are taken together.

A *batch* is the files that are taken at once. Which they are is stored in the checkpoint before they are read: a batch
that was not finished is taken again with the same files, except those that were removed meanwhile. Files are taken in
the order in which they were written.
"""

from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from ordercast.pipeline.audit.stream.checkpoint import read_state, write_state
from ordercast.trace.reader import is_visible
from ordercast.trace.schema import SUFFIX
from ordercast.trace.storage import Location, files_by_time, names_in

FILES_OF_A_BATCH = 256
"""At most so many new files are taken at once: what was written while nobody followed does not come as one batch."""
_KEPT = 100  # batches, of which each has a file of its own; then one has the names of all files before


class _Batch(msgspec.Struct, frozen=True):
    """The files of a batch, by their paths in the folder of events."""

    files: list[str]
    before: list[str] = []
    """Every so often: those of all batches before it."""


class NewFiles:
    """The files of a folder that are not part of any batch yet."""

    def __init__(self, folder: Location, journal: Location) -> None:
        self._folder, self._journal = folder, journal
        self._batches = {number: self._read(number) for number in self._stored()}
        self._taken = {name for batch in self._batches.values() for name in (*batch.before, *batch.files)}

    def next_batch(self, number: int) -> Sequence[PurePosixPath] | None:
        """The files of this batch; None: nothing is new."""
        batch = self._batches.get(number)
        if batch is not None:
            return [path for path in map(PurePosixPath, batch.files) if (self._folder / path).is_file()]
        found = [path for path in files_by_time(self._folder, SUFFIX) if is_visible(path)]
        new = [path for path in found if str(path) not in self._taken][:FILES_OF_A_BATCH]
        if not new:
            return None
        self._store(number, [str(path) for path in new])
        return new

    def _store(self, number: int, files: list[str]) -> None:
        whole = number % _KEPT == 0
        batch = _Batch(files, sorted(self._taken) if whole else [])
        write_state(self._file_of(number), batch)
        self._taken.update(files)
        if whole:
            for one in self._batches:
                self._file_of(one).unlink(missing_ok=True)
            self._batches.clear()
        self._batches[number] = batch

    def _stored(self) -> list[int]:
        names = [name for name in names_in(self._journal) if name.endswith(".msgpack") and name[:-8].isdigit()]
        return sorted(int(name[:-8]) for name in names)

    def _read(self, number: int) -> _Batch:
        return read_state(self._file_of(number), _Batch) or _Batch([])

    def _file_of(self, number: int) -> Location:
        return self._journal / f"{number:09}.msgpack"
