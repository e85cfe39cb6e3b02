"""Finds where the events of each run are, and cuts runs into tasks of about equal work. There is no Spark in here."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.judge import require_silence, runs_by_name
from ordercast.audit.logs import COLUMNS
from ordercast.audit.records import UNSEEN
from ordercast.model.errors import TraceError
from ordercast.pipeline.audit.memory import BY_KERNEL, require_room
from ordercast.trace.reader import RunRow, event_file, event_files, read_runs
from ordercast.trace.schema import ABORTED, CONFIG, ERROR, NODE, NODES, PROTOCOL, RUN

READ = (*COLUMNS, RUN)
"""The columns that are read of each event."""
_KEPT = (RUN, PROTOCOL, NODES, NODE, ABORTED, CONFIG, UNSEEN, "sent", "delivered")


class Place(msgspec.Struct, frozen=True):
    """Row groups of a file that have events of a run."""

    path: str
    in_path: dict[str, str]
    """What the names of its hive folders say."""
    groups: tuple[int, ...]
    shared: bool
    """Whether these row groups have events of other runs too."""


class Docket(msgspec.Struct, frozen=True):
    """A run to be judged: what its row of `runs` says, as far as that counts, and where its events are."""

    row: dict[str, Any]
    places: tuple[Place, ...]
    rows: int
    """About how many events there are in these places."""


class GroupReader:
    """Reads the events of runs. Row groups that several runs share are kept for a while, and read once."""

    def __init__(self, columns: Sequence[str] = COLUMNS) -> None:
        self._columns = tuple(columns)
        self._shared = lru_cache(maxsize=4)(self._read_shared)

    def whole(self, docket: Docket) -> list[pa.RecordBatch]:
        """A run's events, if there is room for them."""
        require_room(docket.row[RUN], docket.rows, BY_KERNEL)
        return list(self.batches(docket))

    def batches(self, docket: Docket) -> Iterator[pa.RecordBatch]:
        """A run's events."""
        for place in docket.places:
            if place.shared:
                for group in place.groups:
                    batch = self._shared(place.path, tuple(place.in_path.items()), group)
                    mine = batch.filter(pc.equal(batch.column(RUN), docket.row[RUN]))
                    yield mine.select(list(self._columns))
            else:
                part = event_file(Path(place.path), place.in_path, self._columns)
                yield part.read_groups(place.groups)

    def _read_shared(self, path: str, in_path: tuple[tuple[str, str], ...], group: int) -> pa.RecordBatch:
        batch = event_file(Path(path), dict(in_path), (*self._columns, RUN)).read_groups([group])
        run = batch.column(RUN).dictionary_encode()
        return batch.set_column(batch.schema.get_field_index(RUN), RUN, run)


def dockets_of(folders: Sequence[Path]) -> list[Docket]:
    """All runs of some folders, those with events first, by name: the order in which the reference judges them.

    Raises `TraceError` for what is no trace, or not a whole one.
    """
    rows = runs_by_name(read_runs(folders))
    places: dict[str, list[Place]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for part in event_files(folders, READ):
        groups: dict[str, list[int]] = defaultdict(list)
        shared: set[str] = set()
        for group, runs in enumerate(part.runs_by_group()):
            for run in runs:
                groups[run].append(group)
            shared |= set(runs) if len(runs) > 1 else set()
        for run, its_groups in groups.items():
            places[run].append(Place(str(part.path), dict(part.in_path), tuple(its_groups), run in shared))
            sizes[run] += part.rows * len(its_groups) // max(1, part.row_groups)
    for run in places:
        if run not in rows:
            raise TraceError(f"there are events of run {run} but no row in runs/: the trace is not whole; run it again")
    silent = [run for run, row in rows.items() if run not in places and row[ERROR] is None]
    for run in silent:
        require_silence(rows[run])
    named = [*sorted(places), *silent]
    return [Docket(_kept(rows[run]), tuple(places.get(run, ())), sizes.get(run, 0)) for run in named]


def _kept(row: RunRow) -> dict[str, Any]:
    return {column: row[column] for column in _KEPT}


@dataclass(frozen=True)
class Task:
    """Some dockets, and their places among all."""

    numbers: tuple[int, ...]
    dockets: tuple[str, ...]
    """As JSON, which is how they travel."""


def in_tasks(dockets: Mapping[int, Docket], rows_of_a_task: int) -> list[Task]:
    """Cuts dockets into tasks of about so many rows; their numbers tell where in the verdict they belong.

    Runs whose events are in one file come into one task, if that does not become too large.
    """
    tasks: list[Task] = []
    numbers: list[int] = []
    rows = 0
    for number, docket in sorted(dockets.items(), key=lambda item: _where(item[1])):
        if numbers and rows + docket.rows > rows_of_a_task:
            tasks.append(_task(numbers, dockets))
            numbers, rows = [], 0
        numbers.append(number)
        rows += docket.rows
    return [*tasks, _task(numbers, dockets)] if numbers else tasks


def _where(docket: Docket) -> list[tuple[str, int]]:
    return [(place.path, place.groups[0]) for place in docket.places[:1]]


def _task(numbers: Sequence[int], dockets: Mapping[int, Docket]) -> Task:
    return Task(tuple(numbers), tuple(msgspec.json.encode(dockets[number]).decode() for number in numbers))
