"""Plans an audit: where the events of each run are, and which runs are audited together in one task."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import ALL_COLUMNS, COLUMNS
from ordercast.audit.names import NAMES
from ordercast.audit.records import ABSENT, UNRECORDED
from ordercast.audit.run_rows import require_nothing_sent, runs_by_name
from ordercast.model.errors import TraceError
from ordercast.pipeline.audit.memory import BY_KERNEL, require_memory
from ordercast.trace.reader import Part, RunRow, event_file, event_files, read_runs
from ordercast.trace.schema import ABORTED, COMPLETE, CONFIG, ERROR, NODE, NODES, PROTOCOL, RUN
from ordercast.trace.storage import Location
from ordercast.trace.storage import location as located

_COLUMNS_WITH_RUN = (*COLUMNS, RUN)
_KEPT = (RUN, PROTOCOL, NODES, NODE, COMPLETE, ABORTED, CONFIG, UNRECORDED, ABSENT, NAMES, "sent", "delivered")


class EventLocation(msgspec.Struct, frozen=True):
    """Row groups of a file that contain events of a run."""

    path: str
    in_path: dict[str, str]
    """Columns given by the names of its Hive partition folders."""
    groups: tuple[int, ...]
    rows: tuple[int, ...]
    """How many rows each of them has."""
    shared: bool
    """True if these row groups contain events of other runs too."""


class AuditTask(msgspec.Struct, frozen=True):
    """A run to be audited: the columns of its row of `runs` that matter, and where its events are."""

    row: dict[str, Any]
    locations: tuple[EventLocation, ...]
    rows: int
    """About how many events there are in these locations."""
    bytes: int = 0
    """About how many of them they are when they are read."""


class EventReader:
    """Reads the events of runs. Row groups that several runs share are cached for a while, and read once."""

    def __init__(self, columns: Sequence[str] = COLUMNS, *, sharing: int = 1) -> None:
        """`sharing`: how many such tasks may use the memory of one machine at the same time."""
        self.sharing = sharing
        self._columns = tuple(columns)
        self._shared = lru_cache(maxsize=4)(self._read_shared)

    def read(self, task: AuditTask) -> list[pa.RecordBatch]:
        """All events of a run; `TraceError` if there is not enough memory for them."""
        require_memory(task.row[RUN], task.rows, BY_KERNEL, sharing=self.sharing)
        return list(self._batches(task))

    def _batches(self, task: AuditTask) -> Iterator[pa.RecordBatch]:
        for location in task.locations:
            if location.shared:
                for group in location.groups:
                    batch = self._shared(location.path, tuple(location.in_path.items()), group)
                    mine = batch.filter(pc.equal(batch.column(RUN), task.row[RUN]))
                    yield mine.select(list(self._columns))
            else:
                part = event_file(located(location.path), location.in_path, self._columns)
                yield part.read_groups(location.groups)

    def _read_shared(self, path: str, in_path: tuple[tuple[str, str], ...], group: int) -> pa.RecordBatch:
        batch = event_file(located(path), dict(in_path), (*self._columns, RUN)).read_groups([group])
        run = batch.column(RUN).dictionary_encode()
        return batch.set_column(batch.schema.get_field_index(RUN), RUN, run)


def read_with_details(task: AuditTask) -> list[pa.RecordBatch]:
    """All events of a run, with `detail`: what the reference audit needs where members join."""
    return EventReader(ALL_COLUMNS).read(task)


@dataclass(frozen=True)
class TraceFiles:
    """The files that hold the events of some folders, opened once for all that an audit asks of them."""

    folders: Sequence[Location]
    files: Sequence[Part]

    @property
    def events(self) -> int:
        """How many there are."""
        return sum(file.rows for file in self.files)

    def absolute(self) -> "TraceFiles":
        """The same by absolute paths, for other processes."""
        files = [replace(file, path=file.path.absolute()) for file in self.files]
        return TraceFiles([folder.absolute() for folder in self.folders], files)


def open_trace(folders: Sequence[Location] | TraceFiles) -> TraceFiles:
    """Opens the files of some folders, unless they are open.

    Raises `TraceError` if a folder holds no complete trace.
    """
    if isinstance(folders, TraceFiles):
        return folders
    return TraceFiles(folders, event_files(folders, _COLUMNS_WITH_RUN))


def audit_tasks(folders: Sequence[Location] | TraceFiles) -> list[AuditTask]:
    """A task for each run of some folders: those with events first, by name, as the reference audit orders them.

    Raises `TraceError` if a folder holds no complete trace.
    """
    trace = open_trace(folders)
    rows = runs_by_name(read_runs(trace.folders))
    locations: dict[str, list[EventLocation]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    volumes: dict[str, int] = defaultdict(int)
    for part in trace.files:
        groups: dict[str, list[int]] = defaultdict(list)
        shared: set[str] = set()
        for group, runs in enumerate(part.runs_by_group()):
            for run in runs:
                groups[run].append(group)
            shared |= set(runs) if len(runs) > 1 else set()
        for run, its_groups in groups.items():
            rows_of = tuple(part.rows_by_group[group] for group in its_groups)
            found = EventLocation(str(part.path), dict(part.in_path), tuple(its_groups), rows_of, run in shared)
            locations[run].append(found)
            sharing = {group: len(part.runs_by_group()[group]) for group in its_groups}
            sizes[run] += sum(part.rows_by_group[group] // sharing[group] for group in its_groups)
            volumes[run] += sum(part.bytes_by_group[group] // sharing[group] for group in its_groups)
    for run in locations:
        if run not in rows:
            raise TraceError(f"run {run} has events but no row in runs/: the trace is incomplete; run it again")
    without_events = [run for run, row in rows.items() if run not in locations and row[ERROR] is None]
    for run in without_events:
        require_nothing_sent(rows[run])
    named = [*sorted(locations), *without_events]
    return [
        AuditTask(_kept(rows[run]), tuple(locations.get(run, ())), sizes.get(run, 0), volumes.get(run, 0))
        for run in named
    ]


def _kept(row: RunRow) -> dict[str, Any]:
    return {column: row[column] for column in _KEPT}


@dataclass(frozen=True)
class TaskBatch:
    """Some audit tasks, and their positions among all."""

    numbers: tuple[int, ...]
    tasks: tuple[str, ...]
    """As JSON."""


class Size(NamedTuple):
    """How much a batch of tasks has to read."""

    rows: int
    bytes: int
    files: int


def in_batches(tasks: Mapping[int, AuditTask], most: Size) -> list[TaskBatch]:
    """Divides audit tasks, given by their positions in the verdict, into batches that read so much at most.

    A task by itself may read more. Runs whose events are in one file come into one batch, as far as its size allows.
    """
    batches: list[TaskBatch] = []
    numbers: list[int] = []
    rows = volume = 0
    files: set[str] = set()
    for number, task in sorted(tasks.items(), key=lambda item: _first_location(item[1])):
        mine = {location.path for location in task.locations}
        read = Size(rows + task.rows, volume + task.bytes, len(files | mine))
        if numbers and any(size > limit for size, limit in zip(read, most, strict=True)):
            batches.append(_batch(numbers, tasks))
            numbers, rows, volume, files = [], 0, 0, set()
        numbers.append(number)
        rows += task.rows
        volume += task.bytes
        files |= mine
    return [*batches, _batch(numbers, tasks)] if numbers else batches


def _first_location(task: AuditTask) -> list[tuple[str, int]]:
    return [(location.path, location.groups[0]) for location in task.locations[:1]]


def _batch(numbers: Sequence[int], tasks: Mapping[int, AuditTask]) -> TaskBatch:
    return TaskBatch(tuple(numbers), tuple(msgspec.json.encode(tasks[number]).decode() for number in numbers))
