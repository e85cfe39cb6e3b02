"""Soaks: random runs on Spark, each judged where it was made, for as long as wanted.

The folder remembers how far a soak is: a file for each round of runs, there whole or not at all. What a round came to
depends on its numbers alone, so that a soak that was stopped and gone on with tells the same as one that was not.
"""

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from ordercast import __version__
from ordercast.model.errors import ConfigError, TraceError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.chunks import in_chunks
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.judging import judge_batches
from ordercast.pipeline.measuring import chunks_table
from ordercast.pipeline.progress import is_connect
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.worker import CONFIGS, PLACE, PLACES, OutOfTimeError, alarm
from ordercast.simulator.simulate import runs_row, simulate
from ordercast.swarm.judging import ENDINGS, INCOMPLETE, RAISES, Failure, found_in
from ordercast.swarm.soak import Soaked, Tally, came_to_nothing, soak_config, soaked
from ordercast.trace.files import cannot_write, events_batch
from ordercast.trace.schema import RUN, EventRow
from ordercast.trace.small_files import UNFINISHED, write_atomically

MANIFEST = "soak.json"
"""The file that tells what a soak's folder is for, and that whoever writes there locks."""
ROUNDS, FAILURES = "rounds", "failures"
"""The folders of what is done, and of what failed."""

TIME_LIMIT = 300.0
"""Seconds of work, however long they take, after which a run is said not to end; most need one."""
MOST_FAILURES = 10
"""After so many failed runs there is enough to look at."""

_RUNS_OF_A_CORE = 16  # in one round: a quarter of a minute of work, of which little is lost when somebody stops it
_DETAIL, _OVERRUN = 9, "overrun"

TOLD = "told"
SOAKED = pa.schema([pa.field(PLACE, pa.int64(), nullable=False), pa.field(TOLD, pa.string(), nullable=False)])
"""What tasks give: of each run what it came to, as JSON."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When a soak is enough; whatever comes first."""

    seconds: float | None = None
    """Of this command; a round that has begun is ended."""
    deliveries: int | None = None
    """Of the whole folder."""
    runs: int | None = None
    """Of the whole folder."""


class Round(msgspec.Struct, frozen=True):
    """A stretch of numbers that were run."""

    first: int
    end: int
    """One more than the last."""
    seconds: float
    tally: Tally
    failed: dict[int, tuple[tuple[str, str], ...]]
    """By number: what was wrong, as kinds and sentences."""


class _Manifest(msgspec.Struct, frozen=True):
    version: str
    protocols: tuple[str, ...]
    first: int = 0


class Soak:
    """A folder of a soak: what is done, and what is to be done next."""

    def __init__(self, out: Path, protocols: Sequence[str], *, first: int | None = None, resume: bool = False) -> None:
        """`first` is the number that a new soak begins with.

        Raises `ConfigError` if the folder holds another soak, or one that nobody said to go on with.
        """
        self.out, self.protocols, self.first = out, tuple(protocols), first or 0
        self.rounds: list[Round] = []
        path = out / MANIFEST
        if path.exists():
            self.first = _require_same(path, _Manifest(__version__, self.protocols), resume=resume).first
            if first not in {None, self.first}:
                raise ConfigError(
                    f"{out} began with number {self.first}; resume without --first, or choose another folder"
                )
            self.rounds = sorted(map(_read_round, (out / ROUNDS).glob("*.json")), key=lambda round_: round_.first)
        elif out.is_dir() and any(out.iterdir()):
            raise ConfigError(f"{out} holds something else than a soak; choose another folder")

    @property
    def tally(self) -> Tally:
        """What all rounds came to."""
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
        """By number: what was wrong."""
        return {number: told for done in self.rounds for number, told in done.failed.items()}

    @property
    def next_number(self) -> int:
        """The first number that was not run."""
        return max((done.end for done in self.rounds), default=self.first)

    def config(self, number: int) -> RunConfig:
        """The run of a number."""
        return soak_config(number, self.protocols)

    @contextmanager
    def held(self) -> Iterator[None]:
        """The folder, made and locked."""
        try:
            (self.out / ROUNDS).mkdir(parents=True, exist_ok=True)
            path = self.out / MANIFEST
            if not path.exists():
                write_atomically(path, msgspec.json.encode(_Manifest(__version__, self.protocols, self.first)))
            with path.open("rb") as file:
                try:
                    fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise ConfigError(
                        f"another soak is writing to {self.out}; wait for it, or choose another"
                    ) from error
                for path in (self.out / ROUNDS).glob(f"_*{UNFINISHED}"):
                    path.unlink()  # of a process that died over it
                yield
        except OSError as error:
            raise cannot_write(f"the soak {self.out}", error) from error

    def keep(self, done: Round) -> None:
        """Stores a round."""
        write_atomically(self.out / ROUNDS / f"{done.first:09}.json", msgspec.json.encode(done))
        self.rounds.append(done)


def soak(
    spark: SparkSession, work: Soak, limits: Limits, *, note: Callable[[Soak], None] | None = None
) -> dict[int, RunConfig]:
    """Runs until a limit is reached; `note` is told after each round. Gives the runs that failed, by number.

    The folder must be held. A run that raises, or takes too long, is one that failed.
    """
    started, found = time.monotonic(), len(work.failed)
    while not _is_enough(work, limits, time.monotonic() - started) and len(work.failed) - found < MOST_FAILURES:
        size = _round_size(spark)
        if limits.runs is not None:
            size = min(size, limits.runs - work.tally.runs)
        work.keep(_run_round(spark, work, range(work.next_number, work.next_number + size)))
        if note is not None:
            note(work)
    return {number: work.config(number) for number in work.failed}


def _is_enough(work: Soak, limits: Limits, seconds: float) -> bool:
    return (
        (limits.seconds is not None and seconds >= limits.seconds)
        or (limits.runs is not None and work.tally.runs >= limits.runs)
        or (limits.deliveries is not None and work.tally.deliveries >= limits.deliveries)
    )


def _round_size(spark: SparkSession) -> int:
    cores = 2 if is_connect(spark) else spark.sparkContext.defaultParallelism
    return _RUNS_OF_A_CORE * max(2, cores)


def _run_round(spark: SparkSession, work: Soak, numbers: range) -> Round:
    started = time.monotonic()
    configs = [work.config(number) for number in numbers]
    chunks = dict(enumerate(in_chunks(configs)))
    task = partial(soak_chunks, time_limit=TIME_LIMIT)
    rows = collected(chunks_table(spark, configs, chunks).mapInArrow(task, spark_schema(SOAKED))).to_pylist()
    tally = Tally()
    failed: dict[int, tuple[tuple[str, str], ...]] = {}
    for row in sorted(rows, key=lambda row: int(row[PLACE])):
        one = msgspec.json.decode(row[TOLD], type=Soaked)
        tally.add(one)
        if one.failures:
            failed[numbers[row[PLACE]]] = one.failures
    return Round(numbers.start, numbers.stop, round(time.monotonic() - started, 3), tally, failed)


# --- what a task does: there is no Spark in here ---


def soak_chunks(chunks: Iterator[pa.RecordBatch], *, time_limit: float) -> Iterator[pa.RecordBatch]:
    """Runs and judges the runs of each chunk."""
    for batch in chunks:
        for chunk in batch.to_pylist():
            rows = [
                {PLACE: place, TOLD: msgspec.json.encode(soak_one(RunConfig.from_json(text), time_limit)).decode()}
                for place, text in zip(chunk[PLACES], chunk[CONFIGS], strict=True)
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=SOAKED)


def soak_one(config: RunConfig, time_limit: float | None = None) -> Soaked:
    """Runs a configuration and judges it, by the kernel where that acquits it and else by the reference audit."""
    name, batches, endings = config.name(), list[pa.RecordBatch](), list[EventRow]()
    overruns = 0

    def take(rows: Sequence[EventRow]) -> None:
        nonlocal overruns
        endings.extend(row for row in rows if row[3] in ENDINGS)
        if config.network.receive_buffer and not overruns:
            overruns = sum(row[_DETAIL] == _OVERRUN for row in rows)
        batches.append(events_batch(name, rows))

    try:
        with alarm(time_limit, of_work=True):
            result = simulate(config, sink=take)
            verdict = judge_batches({RUN: name, **runs_row(result)}, batches)
    except OutOfTimeError:
        return came_to_nothing(config, Failure(INCOMPLETE, f"it goes on after {time_limit:g} s of work"))
    except Exception as error:  # whatever a machine raises is a mistake of its own
        return came_to_nothing(config, Failure(f"{RAISES} {type(error).__name__}", str(error) or "without a word"))
    failures = found_in(result, verdict, endings)
    return soaked(result, verdict.deliveries, failures, endings, overrun=overruns > 0)


# --- the folder ---


def _read_round(path: Path) -> Round:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Round)
    except (OSError, msgspec.DecodeError) as error:
        raise TraceError(f"{path} is no round of a soak: {error}; remove it, and its numbers are run again") from error


def _require_same(path: Path, wanted: _Manifest, *, resume: bool) -> _Manifest:
    """What the folder says of itself, if it may be gone on with."""
    folder = path.parent
    if not resume:
        raise ConfigError(f"{folder} already holds a soak; go on with it by --resume, or choose another folder")
    try:
        held = msgspec.json.decode(path.read_bytes(), type=_Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise TraceError(f"{path} is no soak's: {error}; choose another folder") from error
    if held.version != wanted.version:
        raise ConfigError(
            f"{folder} was begun by ordercast {held.version}, and this is {wanted.version}: their runs may differ; "
            "choose another folder"
        )
    if held.protocols != wanted.protocols:
        raise ConfigError(f"{folder} is a soak of {', '.join(held.protocols)}; resume with the same --protocols")
    return held
