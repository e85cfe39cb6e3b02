"""Sweeps: many runs simulated on Spark, into one trace; a sweep that was stopped can be resumed.

A chunk of runs is a task, and a file of each dataset, which is there completely or not at all: so the missing chunks
are known from the folder. The machines of a cluster must share the folder. Only Spark's DataFrame API is used.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.model.errors import ConfigError, PipelineError, TraceError
from ordercast.model.progress import Progress
from ordercast.model.runs import RunConfig
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.progress import watched
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.pipeline.sweep.measure import chunks_table
from ordercast.pipeline.sweep.worker import IN_PROGRESS, SWEPT, chunk_name, sweep_chunks
from ordercast.pipeline.work_folder import Manifest, locked, read_manifest, remove_unfinished
from ordercast.trace.reader import read_runs
from ordercast.trace.run_writer import require_no_trace
from ordercast.trace.schema import COMPLETE, ERROR, EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = "sweep.json"
"""The file that says what the folder of a sweep is to hold; it is locked while a sweep writes there."""


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep."""

    out: Path
    runs: int
    found: int
    """Runs that were in the folder before."""
    complete: int
    """Runs in which every message was acknowledged everywhere."""
    failed: Mapping[str, str]
    """Runs that failed, and why."""


class SweepManifest(Manifest, frozen=True, kw_only=True):
    """The runs of a sweep. Equal sets of runs have equal manifests, in whatever order they are given."""

    runs: int
    chunks: int
    digest: str


@dataclass(frozen=True)
class SweepPlan:
    """The runs of a sweep, divided into chunks, and the folder that they are written to."""

    configs: Sequence[RunConfig]
    chunks: Mapping[int, Sequence[int]]
    """By number of the chunk: indices of its runs."""
    out: Path
    time_limit: float | None = None

    @classmethod
    def of(cls, configs: Sequence[RunConfig], out: Path, time_limit: float | None = None) -> "SweepPlan":
        """Divides runs into chunks, each run once."""
        unique = list({config.name(): config for config in configs}.values())
        if not unique:
            raise ConfigError("there is nothing to sweep: the list of runs is empty")
        return cls(unique, dict(enumerate(in_chunks(unique))), out, time_limit)

    def done(self) -> set[int]:
        """The chunks that are in the folder."""
        try:
            names = {entry.name for entry in os.scandir(self.out / RUNS_FOLDER)}
        except FileNotFoundError:
            return set()
        return {number for number in self.chunks if f"{chunk_name(number)}{SUFFIX}" in names}

    def missing(self) -> list[int]:
        """The chunks that are not in the folder."""
        done = self.done()
        return [number for number in self.chunks if number not in done]

    def runs_in(self, chunks: Iterable[int]) -> int:
        """How many runs some chunks have."""
        return sum(len(self.chunks[number]) for number in chunks)

    def manifest(self) -> SweepManifest:
        """The manifest of the folder."""
        digest = blake2b(digest_size=16)
        for number, places in self.chunks.items():
            names = (self.configs[place].name() for place in places)
            digest.update(f"{number}: {' '.join(names)}\n".encode())
        return SweepManifest(runs=len(self.configs), chunks=len(self.chunks), digest=digest.hexdigest())

    def require_folder(self, *, resume: bool) -> None:
        """Raises `ConfigError` or `TraceError` if the folder holds something else, or a sweep without `resume`."""
        path = self.out / MANIFEST
        if not path.is_file():
            require_no_trace(self.out)
            return
        held, wanted = read_manifest(path, SweepManifest, "sweep", resume=resume), self.manifest()
        if held != wanted:
            raise ConfigError(
                f"{self.out} holds another sweep, of {held.runs:,} runs where this one has {wanted.runs:,}, or of "
                "other values; resume with the grid and the options that it was begun with, or choose another folder"
            )

    @contextmanager
    def held(self, *, resume: bool) -> Iterator[None]:
        """The folder, prepared and locked; unfinished files are removed before and after."""
        self.require_folder(resume=resume)
        with locked(self.out / MANIFEST, self.manifest(), "sweep"):
            self._clean_up()
            (self.out / IN_PROGRESS).mkdir(exist_ok=True)
            try:
                yield
            finally:
                self._clean_up()

    def _clean_up(self) -> None:
        with suppress(OSError):
            remove_unfinished([self.out / dataset for dataset in (EVENTS_FOLDER, RUNS_FOLDER)])
            for path in (self.out / IN_PROGRESS).glob("*"):
                path.unlink(missing_ok=True)
            (self.out / IN_PROGRESS).rmdir()


def sweep(
    spark: "SparkSession",
    configs: Sequence[RunConfig],
    out: Path,
    *,
    resume: bool = False,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> SweepResult:
    """Simulates configurations, each once, into the trace `out`.

    `time_limit`: seconds that a run may take. `resume`: simulate only what is missing in the folder. `progress` is
    called with the number of finished runs and of all runs. A run that raises, takes too long or kills its process has
    a row whose `error` says why; the others continue.

    Raises `ConfigError` or `TraceError` if the folder cannot be used, and `PipelineError` if Spark fails.
    """
    plan = SweepPlan.of(configs, out, time_limit)
    with plan.held(resume=resume):
        found = plan.runs_in(plan.done())
        with watched(lambda: plan.runs_in(plan.done()), len(plan.configs), progress), _mentioning_resume():
            _run_missing(spark, plan)
        rows = read_runs([out])
    failed = {row[RUN]: row[ERROR] for row in rows if row[ERROR] is not None}
    return SweepResult(out, len(rows), found, sum(row[COMPLETE] for row in rows), failed)


def require_sweepable(configs: Sequence[RunConfig], out: Path, *, resume: bool = False) -> None:
    """Raises what `sweep` would raise about the folder, before there is a session."""
    SweepPlan.of(configs, out).require_folder(resume=resume)


@contextmanager
def _mentioning_resume() -> Iterator[None]:
    try:
        yield
    except (PipelineError, TraceError) as error:
        raise type(error)(f"{error}; finished runs are kept, and --resume continues with the rest") from error


def _run_missing(spark: "SparkSession", plan: SweepPlan) -> None:
    """Runs all missing chunks; after a failure, each chunk that was in progress by itself, to find the cause."""
    while missing := plan.missing():
        try:
            run_chunks(spark, plan, missing)
            _require_seen(plan, missing)
        except PipelineError:
            begun = {path.name for path in (plan.out / IN_PROGRESS).glob("*")}
            suspects = [number for number in plan.missing() if chunk_name(number) in begun]
            if not suspects:
                raise
            for number in suspects:
                _run_alone(spark, plan, number)


def _require_seen(plan: SweepPlan, chunks: Sequence[int]) -> None:
    """Raises `PipelineError` if the workers wrote some chunks to a folder of their own."""
    if not plan.done() & set(chunks):
        raise PipelineError(
            f"Spark's workers wrote to {plan.out.absolute()}, and nothing came here: the machines of a cluster must "
            "share the folder of a sweep"
        )


def _run_alone(spark: "SparkSession", plan: SweepPlan, number: int) -> None:
    """Runs one chunk alone: the run that is in progress when its process dies is the cause."""
    in_progress = plan.out / IN_PROGRESS / chunk_name(number)
    deadly: frozenset[str] = frozenset()
    while number not in plan.done():
        in_progress.unlink(missing_ok=True)
        try:
            run_chunks(spark, plan, [number], deadly)
        except PipelineError:
            if not in_progress.exists():
                raise
            deadly |= {in_progress.read_text()}


def run_chunks(
    spark: "SparkSession", plan: SweepPlan, chunks: Sequence[int], deadly: frozenset[str] = frozenset()
) -> None:
    """Runs some chunks as one Spark job; `deadly`: names of runs that are not run but recorded as failed."""
    task = partial(sweep_chunks, out=str(plan.out.absolute()), time_limit=plan.time_limit, deadly=deadly)
    work = chunks_table(spark, plan.configs, {number: plan.chunks[number] for number in chunks})
    collected(work.mapInArrow(task, spark_schema(SWEPT)))
