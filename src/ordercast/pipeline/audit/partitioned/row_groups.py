"""Row groups of event files, as the tasks of a partitioned audit read them; and tables of minima and maxima."""

from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.pipeline.audit.kernel.columns import Numbers, numbers
from ordercast.trace.reader import Part, event_file
from ordercast.trace.schema import RUN
from ordercast.trace.storage import location, modified

MOST, LEAST = int(np.iinfo(np.int64).max), int(np.iinfo(np.int64).min)


class RowGroups(msgspec.Struct, frozen=True):
    """Some row groups of a file."""

    path: str
    in_path: dict[str, str]
    """Columns given by the names of its Hive partition folders."""
    groups: tuple[int, ...]
    run: str | None
    """The run to be read; None if these row groups contain no other run."""

    def read(self, columns: Sequence[str]) -> pa.RecordBatch:
        """The run's events, in the order of the file."""
        columns = tuple(columns) if self.run is None else (*columns, RUN)
        part, opened = _opened(self.path, modified(location(self.path)), tuple(self.in_path.items()), columns)
        batch = part.read_groups(self.groups, opened)
        return batch if self.run is None else batch.filter(pc.equal(batch.column(RUN), self.run))


@lru_cache(maxsize=16)
def _opened(
    path: str, written: int, in_path: tuple[tuple[str, str], ...], columns: tuple[str, ...]
) -> tuple[Part, pq.ParquetFile]:
    """An open file: a worker reads many row groups one by one. The modification time is part of the cache's key."""
    del written
    part = event_file(location(path), dict(in_path), columns)
    return part, part.opened()


class Ranges(msgspec.Struct, frozen=True):
    """Minimum and maximum for each cell of a table, of which most may be empty."""

    cells: int
    """How many there are, also empty ones."""
    filled: bytes
    """Those that are not empty, increasing."""
    lowest: bytes
    highest: bytes

    @classmethod
    def over(cls, cells: int, cell: npt.NDArray[np.signedinteger], values: Numbers) -> "Ranges":
        """Of values, given the cell of each."""
        return cls(cells, *(part.tobytes() for part in ranges_of(cells, cell, values)))

    def sparse(self) -> tuple[Numbers, Numbers, Numbers]:
        """The cells that are not empty, and the minimum and the maximum of each."""
        filled = np.frombuffer(self.filled, np.int32).astype(np.int64)
        return filled, np.frombuffer(self.lowest, np.int64), np.frombuffer(self.highest, np.int64)

    def tables(self) -> tuple[Numbers, Numbers]:
        """The minimum and the maximum of each cell; `MOST` and `LEAST` for empty ones."""
        filled, *found = self.sparse()
        lowest, highest = np.full(self.cells, MOST), np.full(self.cells, LEAST)
        lowest[filled], highest[filled] = found
        return lowest, highest


def ranges_of(
    cells: int, cell: npt.NDArray[np.signedinteger], values: Numbers
) -> tuple[npt.NDArray[np.int32], Numbers, Numbers]:
    """The cells that have values, increasing, and the least and the greatest value of each."""
    if not values.size:
        return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(cell.astype(np.int16) if cells < 2**15 else cell, kind="stable")
    of_value, values = cell[order], values[order]
    starts = np.flatnonzero(np.concatenate(([True], of_value[1:] != of_value[:-1])))
    lowest, highest = (which.reduceat(values, starts).astype(np.int64) for which in (np.minimum, np.maximum))
    return of_value[starts].astype(np.int32), lowest, highest


def numbers_with_null(column: pa.Array) -> Numbers:
    """A column as an array, with -1 for null."""
    return numbers(column, -1)
