"""Soak tests: random runs on Spark, each audited by the task that simulated it, for as long as wanted.

The folder of a soak has a file for each finished round of runs. The numbers of a round decide its result, so that a
soak that was stopped and resumed gives the same result as one that was not.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.progress import is_connect
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.soak.worker import RESULT, SOAKED, soak_chunks
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.pipeline.sweep.measure import chunks_table
from ordercast.pipeline.sweep.worker import PLACE
from ordercast.pipeline.work_folder import Manifest, locked, read_manifest, remove_unfinished
from ordercast.swarm.soak import Soaked, Tally, soak_config
from ordercast.trace.storage import Location, files_below, is_empty, write_whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANIFEST = "soak.json"
"""The file that says what the folder of a soak is for; it is locked while a soak writes there."""
ROUNDS, FAILURES = "rounds", "failures"
"""The folders of finished rounds and of failed runs."""

TIME_LIMIT = 300.0
"""Seconds of CPU time after which a run counts as endless; most need one."""
MOST_FAILURES = 10
"""A soak stops after so many failed runs."""

_RUNS_OF_A_CORE = 16  # in one round: a quarter of a minute of work, so that little is lost when a soak is stopped


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When a soak ends: at the first limit that is reached, after the round in progress."""

    seconds: float | None = None
    """Of this call."""
    deliveries: int | None = None
    """Of the whole folder."""
    runs: int | None = None
    """Of the whole folder."""

    def reached(self, tally: Tally, seconds: float) -> bool:
        """True if a soak is to end."""
        return (
            (self.seconds is not None and seconds >= self.seconds)
            or (self.runs is not None and tally.runs >= self.runs)
            or (self.deliveries is not None and tally.deliveries >= self.deliveries)
        )


class Round(msgspec.Struct, frozen=True):
    """The result of a range of numbers."""

    first: int
    end: int
    """One more than the last."""
    seconds: float
    tally: Tally
    failed: dict[int, tuple[tuple[str, str], ...]]
    """By number: what failed, as kinds and sentences."""


class SoakManifest(Manifest, frozen=True, kw_only=True):
    """The protocols of a soak, its first number, and whether its groups have views."""

    protocols: tuple[str, ...]
    first: int = 0
    views: bool = False
    logs: bool = False


class Soak:
    """The folder of a soak: the rounds that are done, and the number of the next run."""

    def __init__(
        self,
        out: Location,
        protocols: Sequence[str],
        *,
        first: int | None = None,
        resume: bool = False,
        views: bool = False,
        logs: bool = False,
    ) -> None:
        """`first`: the number that a new soak begins with; default: 0. `views`: members of its groups come and go.

        Raises `ConfigError` if the folder holds something else, another soak, or a soak and `resume` is False.
        """
        self.out, self.protocols, self.first = out, tuple(protocols), first or 0
        self.views, self.logs = views, logs
        self.rounds: list[Round] = []
        self._held = False
        path = out / MANIFEST
        if path.exists():
            held = read_manifest(path, SoakManifest, "soak", resume=resume)
            if held.protocols != self.protocols:
                raise ConfigError(f"{out} is a soak of {', '.join(held.protocols)}; resume with the same --protocols")
            if held.views != views:
                raise ConfigError(f"{out} is a soak {'with' if held.views else 'without'} --views; resume it as such")
            if held.logs != logs:
                raise ConfigError(f"{out} is a soak {'with' if held.logs else 'without'} --logs; resume it as such")
            self.first = held.first
            if first not in {None, self.first}:
                raise ConfigError(
                    f"{out} began with number {self.first}; resume without --first, or choose another folder"
                )
            self.rounds = [_read_round(out / ROUNDS / name) for name in files_below(out / ROUNDS, ".json")]
            self.rounds.sort(key=lambda round_: round_.first)
        elif not is_empty(out):
            raise ConfigError(f"{out} is not empty and holds no soak; choose another folder")

    @property
    def tally(self) -> Tally:
        """The results of all rounds together."""
        tally = Tally()
        for done in self.rounds:
            tally.add_all(done.tally)
        return tally

    @property
    def seconds(self) -> float:
        """How long all rounds took."""
        return sum(done.seconds for done in self.rounds)

    @property
    def failed(self) -> dict[int, tuple[tuple[str, str], ...]]:
        """By number of a failed run: what failed, as kinds and sentences."""
        return {number: failures for done in self.rounds for number, failures in done.failed.items()}

    @property
    def next_number(self) -> int:
        """The first number that was not run."""
        return max((done.end for done in self.rounds), default=self.first)

    def config(self, number: int) -> RunConfig:
        """The run of a number."""
        return soak_config(number, self.protocols, views=self.views, logs=self.logs)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Creates and locks the folder; within such a block it does nothing."""
        if self._held:
            yield
            return
        manifest = SoakManifest(protocols=self.protocols, first=self.first, views=self.views, logs=self.logs)
        with locked(self.out / MANIFEST, manifest, "soak"):
            if isinstance(self.out, Path):
                (self.out / ROUNDS).mkdir(exist_ok=True)
                remove_unfinished([self.out / ROUNDS])
            self._held = True
            try:
                yield
            finally:
                self._held = False

    def keep(self, done: Round) -> None:
        """Stores a round."""
        write_whole(self.out / ROUNDS / f"{done.first:09}.json", msgspec.json.encode(done))
        self.rounds.append(done)


def soak(
    spark: "SparkSession", work: Soak, limits: Limits, *, note: Callable[[Soak], None] | None = None
) -> dict[int, RunConfig]:
    """Simulates and audits runs until a limit is reached; returns the failed runs of the folder, by number.

    The folder is held meanwhile: `ConfigError` if another soak writes to it. A run that raises or takes too long counts
    as failed. `note` is called after each round.
    """
    started, found = time.monotonic(), len(work.failed)
    with work.held():
        while not limits.reached(work.tally, time.monotonic() - started) and len(work.failed) - found < MOST_FAILURES:
            size = round_size(spark)
            if limits.runs is not None:
                size = min(size, limits.runs - work.tally.runs)
            work.keep(_run_round(spark, work, range(work.next_number, work.next_number + size)))
            if note is not None:
                note(work)
    return {number: work.config(number) for number in work.failed}


def round_size(spark: "SparkSession") -> int:
    """How many runs a round has."""
    cores = 2 if is_connect(spark) else spark.sparkContext.defaultParallelism
    return _RUNS_OF_A_CORE * max(2, cores)


def _run_round(spark: "SparkSession", work: Soak, numbers: range) -> Round:
    started = time.monotonic()
    configs = [work.config(number) for number in numbers]
    chunks = dict(enumerate(in_chunks(configs)))
    task = partial(soak_chunks, time_limit=TIME_LIMIT)
    rows = collected(chunks_table(spark, configs, chunks).mapInArrow(task, spark_schema(SOAKED))).to_pylist()
    tally = Tally()
    failed: dict[int, tuple[tuple[str, str], ...]] = {}
    for row in sorted(rows, key=lambda row: int(row[PLACE])):
        one = msgspec.json.decode(row[RESULT], type=Soaked)
        tally.add(one)
        if one.failures:
            failed[numbers[row[PLACE]]] = one.failures
    return Round(numbers.start, numbers.stop, round(time.monotonic() - started, 3), tally, failed)


def _read_round(path: Location) -> Round:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Round)
    except (OSError, msgspec.DecodeError) as error:
        raise TraceError(f"{path} is not a round of a soak: {error}; remove it to run its numbers again") from error
