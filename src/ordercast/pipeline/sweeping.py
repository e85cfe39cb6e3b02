"""Sweeps: many runs simulated on Spark, into one trace that can be stopped and gone on with.

A chunk of runs is a task, and a file of each dataset, which is there whole or not at all: what is missing is seen by
looking. The folder must be one that the cluster's machines share. Nothing here needs more of Spark than DataFrames.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from ordercast import __version__
from ordercast.model.errors import ConfigError, PipelineError, TraceError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.chunks import in_chunks
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.measuring import chunks_table
from ordercast.pipeline.progress import Progress, watched
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.worker import SWEPT, UNDER_WAY, chunk_name, sweep_chunks
from ordercast.trace.files import cannot_write
from ordercast.trace.reader import read_runs
from ordercast.trace.schema import COMPLETE, ERROR, EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX
from ordercast.trace.small_files import UNFINISHED, write_atomically
from ordercast.trace.writer import require_no_trace

MANIFEST = "sweep.json"
"""The file that tells what a sweep's folder is to hold, and that whoever writes there locks."""


@dataclass(frozen=True)
class SweepResult:
    """What a sweep came to."""

    out: Path
    runs: int
    found: int
    """Runs that were there before."""
    complete: int
    """Runs in which every message was acknowledged everywhere."""
    failed: Mapping[str, str]
    """Runs that came to nothing, and why."""


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder is to hold. Equal grids have equal manifests, in whatever order they were written."""

    version: str
    runs: int
    chunks: int
    digest: str


@dataclass(frozen=True)
class _Plan:
    configs: Sequence[RunConfig]
    chunks: Mapping[int, Sequence[int]]
    out: Path
    time_limit: float | None

    def landed(self) -> set[int]:
        """The chunks that are whole."""
        try:
            names = {entry.name for entry in os.scandir(self.out / RUNS_FOLDER)}
        except FileNotFoundError:
            return set()
        return {number for number in self.chunks if f"{chunk_name(number)}{SUFFIX}" in names}

    def missing(self) -> list[int]:
        landed = self.landed()
        return [number for number in self.chunks if number not in landed]

    def runs_in(self, chunks: Iterable[int]) -> int:
        return sum(len(self.chunks[number]) for number in chunks)


def sweep(
    spark: SparkSession,
    configs: Sequence[RunConfig],
    out: Path,
    *,
    resume: bool = False,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> SweepResult:
    """Simulates configurations, each once, into the trace `out`; `progress` is told of runs.

    `time_limit` is the seconds that a run may take. With `resume` only what is missing is done. A run that raises,
    takes too long or kills its process has a row whose `error` says so; the others go on.
    """
    plan = _plan(configs, out, time_limit)
    with _held(plan, resume=resume):
        found = plan.runs_in(plan.landed())
        with watched(lambda: plan.runs_in(plan.landed()), len(plan.configs), progress), _saying_what_stays():
            _do_what_is_missing(spark, plan)
        rows = read_runs([out])
    failed = {row[RUN]: row[ERROR] for row in rows if row[ERROR] is not None}
    return SweepResult(out, len(rows), found, sum(row[COMPLETE] for row in rows), failed)


def require_sweepable(configs: Sequence[RunConfig], out: Path, *, resume: bool = False) -> None:
    """Raises what `sweep` would raise about the folder, before there is a session."""
    _require_folder(_plan(configs, out), resume=resume)


def _plan(configs: Sequence[RunConfig], out: Path, time_limit: float | None = None) -> _Plan:
    unique = list({config.name(): config for config in configs}.values())
    if not unique:
        raise ConfigError("there is nothing to sweep: no run is named")
    return _Plan(unique, dict(enumerate(in_chunks(unique))), out, time_limit)


@contextmanager
def _saying_what_stays() -> Iterator[None]:
    try:
        yield
    except (PipelineError, TraceError) as error:
        raise type(error)(f"{error}; what is done stays, and --resume goes on with it") from error


# --- the folder ---


@contextmanager
def _held(plan: _Plan, *, resume: bool) -> Iterator[None]:
    """The folder, prepared and locked, with everything half-written taken away before and after."""
    _require_folder(plan, resume=resume)
    try:
        path = _with_manifest(plan)
        with path.open("rb") as file:
            _lock(file.fileno(), plan.out)
            _tidy(plan.out)
            (plan.out / UNDER_WAY).mkdir(exist_ok=True)
            try:
                yield
            finally:
                _tidy(plan.out)
    except OSError as error:
        raise cannot_write(f"the sweep {plan.out}", error) from error


def _require_folder(plan: _Plan, *, resume: bool) -> None:
    path = plan.out / MANIFEST
    if path.is_file():
        _require_same(path, _manifest_of(plan), resume=resume)
    else:
        require_no_trace(plan.out)


def _with_manifest(plan: _Plan) -> Path:
    path = plan.out / MANIFEST
    if not path.exists():
        plan.out.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.encode(_manifest_of(plan)))
    return path


def _manifest_of(plan: _Plan) -> _Manifest:
    digest = blake2b(digest_size=16)
    for number, places in plan.chunks.items():
        names = (plan.configs[place].name() for place in places)
        digest.update(f"{number}: {' '.join(names)}\n".encode())
    return _Manifest(version=__version__, runs=len(plan.configs), chunks=len(plan.chunks), digest=digest.hexdigest())


def _require_same(path: Path, wanted: _Manifest, *, resume: bool) -> None:
    folder = path.parent
    if not resume:
        raise ConfigError(f"{folder} already holds a sweep; go on with it by --resume, or choose another folder")
    try:
        held = msgspec.json.decode(path.read_bytes(), type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"{path} is no sweep's: {error}; choose another folder") from error
    if held.version != wanted.version:
        raise ConfigError(
            f"{folder} was begun by ordercast {held.version}, and this is {wanted.version}: their runs may differ; "
            "choose another folder"
        )
    if held != wanted:
        raise ConfigError(
            f"{folder} holds another sweep, of {held.runs:,} runs where this one has {wanted.runs:,} or of other "
            "values; resume with the grid and the options that it was begun with, or choose another folder"
        )


def _lock(file: int, folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ConfigError(f"another sweep is writing to {folder}; wait for it, or choose another folder") from error


def _tidy(folder: Path) -> None:
    """Takes away what a process that died left half-written."""
    with suppress(OSError):
        for dataset in (EVENTS_FOLDER, RUNS_FOLDER):
            for path in (folder / dataset).glob(f"_*{UNFINISHED}"):
                path.unlink(missing_ok=True)
        for path in (folder / UNDER_WAY).glob("*"):
            path.unlink(missing_ok=True)
        (folder / UNDER_WAY).rmdir()


# --- the work ---


def _do_what_is_missing(spark: SparkSession, plan: _Plan) -> None:
    """Runs all chunks that are missing, and after a failure each that was under way by itself, to see whose it was."""
    while missing := plan.missing():
        try:
            _run_job(spark, plan, missing, frozenset())
        except PipelineError:
            begun = {path.name for path in (plan.out / UNDER_WAY).glob("*")}
            suspects = [number for number in plan.missing() if chunk_name(number) in begun]
            if not suspects:
                raise
            for number in suspects:
                _run_alone(spark, plan, number)


def _run_alone(spark: SparkSession, plan: _Plan, number: int) -> None:
    """Runs one chunk with nobody beside it, so that the run that is under way when its process dies is to blame."""
    under_way = plan.out / UNDER_WAY / chunk_name(number)
    deadly: frozenset[str] = frozenset()
    while number not in plan.landed():
        under_way.unlink(missing_ok=True)
        try:
            _run_job(spark, plan, [number], deadly)
        except PipelineError:
            if not under_way.exists():
                raise
            deadly |= {under_way.read_text()}


def _run_job(spark: SparkSession, plan: _Plan, chunks: Sequence[int], deadly: frozenset[str]) -> None:
    task = partial(sweep_chunks, out=str(plan.out.absolute()), time_limit=plan.time_limit, deadly=deadly)
    work = chunks_table(spark, plan.configs, {number: plan.chunks[number] for number in chunks})
    collected(work.mapInArrow(task, spark_schema(SWEPT)))
