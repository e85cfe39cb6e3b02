"""Reads traces: one folder or several together, in one file, in many, or hive-partitioned as Spark writes them.

Traces written by other programs are read too, if they have the columns: integers of any width and strings of any kind
are converted to the types of the schema. Anything else raises `TraceError` with the file and the column.
Batches come in the order of the files' names and of the rows in them, whatever order the file system lists.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.model.errors import TraceError
from ordercast.trace.arrow_schema import EVENTS, OPTIONAL_EVENT_COLUMNS, OPTIONAL_RUN_COLUMNS, RUNS
from ordercast.trace.schema import EVENT, EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX, is_hidden
from ordercast.trace.storage import Location, RemotePath, files_below, readable

_NULL_IN_PATH = "__HIVE_DEFAULT_PARTITION__"  # what Spark and Arrow call the folder of rows without a value
_OPENED_AT_ONCE = 32  # files that are not on this machine

RunRow = dict[str, Any]
"""A row of `runs`: all its columns by name."""
EventColumns = dict[str, list[Any]]
"""Some rows of `events`: the values of each column, in the order of the rows."""


def read_runs(folders: Sequence[Location]) -> list[RunRow]:
    """The rows of all runs. A run that several members recorded has a row in the folder of each."""
    rows: list[RunRow] = []
    for file in _files(folders, RUNS_FOLDER):
        part = _open(file, RUNS, OPTIONAL_RUN_COLUMNS, RUNS.names)
        for group in range(part.row_groups):
            with _errors_of(part.path):
                rows += part.read(group).to_pylist()
    return rows


def event_files(folders: Sequence[Location], columns: Sequence[str]) -> list["Part"]:
    """The files that hold the events, for callers that read row groups themselves; `columns`: what they will read.

    Each file is opened once; if `run` is among the columns, that also tells which runs its row groups have.
    """
    files = _files(folders, EVENTS_FOLDER)

    def opened(file: _File) -> Part:
        return _open(file, EVENTS, OPTIONAL_EVENT_COLUMNS, columns, with_runs=RUN in columns)

    if not any(isinstance(file.path, RemotePath) for file in files):
        return [opened(file) for file in files]
    with ThreadPoolExecutor(_OPENED_AT_ONCE) as pool:  # which is mostly waiting
        return list(pool.map(opened, files))


def event_file(
    path: Location, in_path: Mapping[str, str], columns: Sequence[str], *, with_runs: bool = False
) -> "Part":
    """One of these files, opened again in another process; `with_runs`: also tell which runs its row groups have."""
    return _open(_File(path, in_path), EVENTS, OPTIONAL_EVENT_COLUMNS, columns, with_runs=with_runs)


def read_events_by_run(
    folders: Sequence[Location], columns: Sequence[str], kinds: Collection[str] | None = None
) -> Iterator[tuple[str, Iterator[EventColumns]]]:
    """Each run's events, run by run in the order of their names, so that memory holds one run at most.

    `kinds`: the events to read, default: all; a run that has none of these is still yielded, without events.
    """
    wanted = list(dict.fromkeys([*columns, RUN, EVENT]))
    places: dict[str, list[tuple[Part, int]]] = defaultdict(list)
    for part in event_files(folders, wanted):
        for group, runs in enumerate(part.runs_by_group()):
            for run in runs:
                places[run].append((part, group))
    for run in sorted(places):
        yield run, _columns_of(run, places.pop(run), columns, kinds)


def _columns_of(
    run: str, places: Sequence[tuple["Part", int]], columns: Sequence[str], kinds: Collection[str] | None
) -> Iterator[EventColumns]:
    for part, group in places:
        batch = part.read(group)
        batch = batch.filter(pc.equal(batch.column(RUN), run))
        if kinds is not None:
            batch = batch.filter(pc.is_in(batch.column(EVENT), pa.array(sorted(kinds), pa.string())))
        with _errors_of(part.path):
            yield {column: batch.column(column).to_pylist() for column in columns}


@dataclass(frozen=True)
class Part:
    """One file of a dataset. It is opened for each read: a sweep has more files than a process may keep open."""

    path: Location
    row_groups: int
    rows: int
    fields: tuple[pa.Field, ...]
    """The columns to read, in the types of the schema."""
    stored: frozenset[str]
    """Those of them that the file itself has."""
    in_path: Mapping[str, str]
    """Columns that are given by the names of its hive folders."""
    rows_by_group: tuple[int, ...] = ()
    bytes_by_group: tuple[int, ...] = ()
    """As they are when they are read, without compression."""
    runs: tuple[tuple[str, ...], ...] | None = None
    """By row group, if it was asked for."""

    def read(self, group: int) -> pa.RecordBatch:
        """A row group, in the types of the schema."""
        with _errors_of(self.path):
            table = pq.ParquetFile(readable(self.path)).read_row_group(group, columns=sorted(self.stored))
            arrays = [self._column(table, field) for field in self.fields]
            return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(self.fields))

    def opened(self) -> pq.ParquetFile:
        """The open file, for callers that read many row groups: opening it reads the metadata of all of them."""
        with _errors_of(self.path):
            return pq.ParquetFile(readable(self.path), read_dictionary=sorted({RUN, EVENT} & self.stored))

    def read_groups(self, groups: Sequence[int], opened: pq.ParquetFile | None = None) -> pa.RecordBatch:
        """Some row groups as one batch. The kinds of events are dictionary-encoded, which is cheapest."""
        with _errors_of(self.path):
            file = opened or self.opened()
            table = file.read_row_groups(list(groups), columns=sorted(self.stored), use_threads=False)
            arrays = [
                self._coded(table) if field.name == EVENT else self._column(table, field) for field in self.fields
            ]
            return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in self.fields])

    def runs_by_group(self) -> Sequence[Sequence[str]]:
        """The runs that each row group has rows of, mostly from the file's statistics, without reading rows.

        Of files that were opened for the column `run`.
        """
        if self.runs is None:
            raise ValueError(f"{self.path} was opened without its runs")
        return self.runs

    def _coded(self, table: pa.Table) -> pa.Array:
        if EVENT not in self.stored or not pa.types.is_dictionary(table.schema.field(EVENT).type):
            return self._column(table, EVENTS.field(EVENT))
        column = table.column(EVENT).unify_dictionaries().combine_chunks()
        if column.null_count:
            raise TraceError(f"{self.path}: column {EVENT!r} must not be null, but {column.null_count} rows are")
        return column

    def _column(self, table: pa.Table, field: pa.Field) -> pa.Array:
        rows: int = table.num_rows
        if field.name in self.in_path and self.in_path[field.name] != _NULL_IN_PATH:
            return pa.repeat(pa.scalar(self.in_path[field.name]).cast(field.type), rows)
        if field.name in self.in_path and not field.nullable:
            raise TraceError(
                f"{self.path}: column {field.name!r} must not be null, but its folder says that all rows are"
            )
        if field.name not in self.stored:
            return pa.nulls(rows, field.type)
        column = table.column(field.name).combine_chunks()
        try:
            column = column.cast(field.type)
        except pa.ArrowInvalid as error:
            raise TraceError(f"{self.path}: column {field.name!r} does not fit {field.type}: {error}") from error
        if column.null_count and not field.nullable:
            raise TraceError(f"{self.path}: column {field.name!r} must not be null, but {column.null_count} rows are")
        if pa.types.is_list(field.type) and column.flatten().null_count:
            raise TraceError(f"{self.path}: lists of column {field.name!r} must not contain nulls, but some do")
        return column


def _runs_in(parquet: pq.ParquetFile, group: int) -> tuple[str, ...]:
    metadata = parquet.metadata.row_group(group)
    for index in range(metadata.num_columns):
        column = metadata.column(index)
        if column.path_in_schema == RUN and column.is_stats_set and column.statistics.has_min_max:
            lowest, highest = column.statistics.min, column.statistics.max
            if lowest == highest and isinstance(lowest, str):
                return (lowest,)
    runs = parquet.read_row_group(group, columns=[RUN]).column(RUN).unique()
    found: list[str] = runs.cast(pa.string()).drop_null().to_pylist()
    return tuple(sorted(found))


def _open(
    file: "_File", schema: pa.Schema, optional: Collection[str], columns: Sequence[str], *, with_runs: bool = False
) -> Part:
    with _errors_of(file.path):
        parquet = pq.ParquetFile(readable(file.path))
        found, metadata = parquet.schema_arrow, parquet.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    fields = tuple(schema.field(name) for name in columns)
    stored = frozenset(field.name for field in fields if field.name in found.names and field.name not in file.in_path)
    for field in fields:
        if field.name in stored:
            _require_type(file.path, field, found.field(field.name).type)
        elif field.name not in file.in_path and field.name not in optional:
            raise TraceError(
                f"{file.path} has no column {field.name!r}, so it is not part of a trace; "
                "remove the file, or write the trace again"
            )
    return Part(
        file.path,
        len(groups),
        metadata.num_rows,
        fields,
        stored,
        file.in_path,
        tuple(group.num_rows for group in groups),
        tuple(group.total_byte_size for group in groups),
        _runs_by_group(file, parquet) if with_runs else None,
    )


def _runs_by_group(file: "_File", parquet: pq.ParquetFile) -> tuple[tuple[str, ...], ...]:
    if RUN in file.in_path:
        return tuple((file.in_path[RUN],) for _ in range(parquet.num_row_groups))
    with _errors_of(file.path):
        return tuple(_runs_in(parquet, group) for group in range(parquet.num_row_groups))


def _require_type(path: Location, field: pa.Field, found: pa.DataType) -> None:
    if not _is_like(field.type, found):
        raise TraceError(f"{path}: column {field.name!r} is of type {found}; a trace has {field.type} there")


def _is_like(wanted: pa.DataType, found: pa.DataType) -> bool:
    """True if values of the type found can be converted without loss of meaning."""
    types = pa.types
    if types.is_null(found):  # a column of nothing but nulls, from a writer that guesses types
        return True
    if types.is_dictionary(found):
        return _is_like(wanted, found.value_type)
    if types.is_list(wanted):
        return (types.is_list(found) or types.is_large_list(found)) and _is_like(wanted.value_type, found.value_type)
    if types.is_integer(wanted):
        return bool(types.is_integer(found))
    if types.is_string(wanted):
        return bool(types.is_string(found) or types.is_large_string(found))
    return bool(wanted == found)


@dataclass(frozen=True)
class _File:
    """A file of a dataset, and the columns that its folders named `column=value` stand for."""

    path: Location
    in_path: Mapping[str, str]


def _files(folders: Sequence[Location], dataset: str) -> list[_File]:
    found: list[_File] = []
    for folder in folders:
        root = folder / dataset
        with _errors_of(root):
            if not root.is_dir():
                why = f"is not a trace: it has no folder {dataset}/" if folder.exists() else "does not exist"
                raise TraceError(f"{folder} {why}; give the folder of a trace")
            inside = files_below(root, SUFFIX)
        visible = [path for path in inside if is_visible(path)]
        if not visible:
            raise TraceError(f"{folder} holds no complete trace: {root} has no {SUFFIX} file; repeat the run")
        found += [_File(root / path, hive_values(path)) for path in visible]
    return found


def is_visible(path: PurePosixPath) -> bool:
    """Whether a file is part of a dataset, by its path in it: neither it nor a folder that it is in is hidden."""
    return not any(is_hidden(part) for part in path.parts)


def hive_values(path: PurePosixPath) -> dict[str, str]:
    """The columns that the folders of a file stand for, which are named `column=value`."""
    parts = [part.partition("=") for part in path.parts[:-1] if "=" in part]
    return {name: unquote(value) for name, _, value in parts}


@contextmanager
def _errors_of(path: Location) -> Iterator[None]:
    """Turns any error from a damaged file into a `TraceError` that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise TraceError(f"{path} is gone: it was deleted or moved meanwhile") from error
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())  # some take several lines
        reason = reason.partition(" Either the file is corrupted")[0].rstrip(".")  # which we say of all errors
        raise TraceError(
            f"cannot read {path}: {reason}; it is damaged or not a Parquet file: copy it again, or repeat the run"
        ) from error
