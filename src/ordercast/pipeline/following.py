"""Follows a trace that grows: a Spark stream of its new files, judged as `prefixes` judges beginnings.

Spark remembers in the checkpoint which files it has handed out; beside it stands what is known of each run, with the
number of the batch that it is the outcome of. A batch that is handed out again after a restart is passed over if its
outcome is there, and judged on the state before it if not: so a restart neither loses nor repeats anything. A batch
that cannot be judged fails, so that Spark hands it out again as well.

Batches are judged where Spark calls for it: in this process, or, through Spark Connect, at the server. Whoever follows
learns the outcome from the file alone, so the checkpoint must be in a place that both see.
"""

import logging
import re
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ordercast.audit.judge import Witness, is_uniform, runs_by_name, service_of
from ordercast.audit.logs import COLUMNS
from ordercast.model.errors import ConfigError, PipelineError, TraceError, reason_of
from ordercast.model.services import Service
from ordercast.pipeline.prefixes import Beginning
from ordercast.pipeline.schemas import EVENTS_TABLE
from ordercast.trace.reader import RunRow, read_runs
from ordercast.trace.schema import EVENTS_FOLDER, RUN, RUNS_FOLDER, SUFFIX
from ordercast.trace.small_files import write_atomically

CHECKPOINT = "_audit"
"""The folder in a trace that remembers how far it was followed; readers of traces pass over it."""
_EVERY = 1  # seconds between two looks for new files
_STATE = "state.msgpack"


class _State(msgspec.Struct):
    """The outcome of all batches up to one."""

    batch: int = -1
    service: str | None = None
    """The service that was asked for."""
    runs: dict[str, Beginning] = {}
    witnesses: list[Witness] = []


class _Outcome(msgspec.Struct):
    """What of a state whoever follows wants to know."""

    batch: int = -1
    witnesses: list[Witness] = []


class Follower:
    """Judges the batches of one growing trace, and remembers the outcome in a folder."""

    def __init__(self, folder: Path, checkpoint: Path, service: Service | None) -> None:
        self.folder = folder
        self.service = service
        self._file = checkpoint / _STATE
        self.state = self._known()

    def take(self, batch: DataFrame, number: int) -> None:
        """Judges a batch, unless its outcome is known."""
        if number > self.state.batch:
            self.take_events(batch.select(RUN, *COLUMNS).toArrow(), number)

    def take_events(self, events: pa.Table, number: int) -> None:
        """Judges some events, given the number of their batch."""
        rows = _rows_of(self.folder)
        for run in sorted(pc.unique(events.column(RUN)).to_pylist()):
            service, uniform = self._service(run, rows)
            known = self.state.runs.setdefault(run, Beginning(run))
            mine = events.filter(pc.equal(events.column(RUN), run)).combine_chunks()
            for part in mine.to_batches():
                found = known.grow(part, service, uniform=uniform)
                self.state.witnesses += [Witness(run, violation) for violation in found]
        self.state.batch = number
        self._remember()

    def _service(self, run: str, rows: dict[str, RunRow]) -> tuple[Service, bool]:
        row = rows.get(run)
        if self.service is None and row is None:
            raise TraceError(
                f"run {run} has no row in {RUNS_FOLDER}/ yet, which names its service: say it by --service"
            )
        uniform = row is not None and is_uniform(row)
        if self.service is not None:
            return self.service, uniform
        assert row is not None
        return service_of(row), uniform

    def _known(self) -> _State:
        asked = self.service.value if self.service else None
        try:
            state = msgspec.msgpack.decode(self._file.read_bytes(), type=_State)
        except FileNotFoundError:
            return _State(service=asked)
        except (OSError, msgspec.DecodeError) as error:
            raise TraceError(f"cannot read {self._file}: {error}; remove {self._file.parent} to begin anew") from error
        if state.service != asked:
            raise ConfigError(
                f"{self._file.parent} remembers an audit by {state.service or 'each run’s own service'}; "
                "ask for the same, or remove it to begin anew"
            )
        return state

    def _remember(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._file, msgspec.msgpack.encode(self.state))
        except OSError as error:
            raise TraceError(
                f"cannot write {self._file}: {reason_of(error)}; give --checkpoint a place with room"
            ) from error


def follow(
    spark: SparkSession,
    folder: Path,
    service: Service | None = None,
    *,
    checkpoint: Path | None = None,
    until_idle: float | None = None,
    told_to_stop: Event | None = None,
) -> list[Witness]:
    """Judges a growing trace until something is broken, it is told to stop, or nothing came for `until_idle` seconds.

    Returns what is broken. Raises `TraceError` for files that are no part of a trace.
    """
    events = (folder / EVENTS_FOLDER).absolute()
    if not events.is_dir():
        raise TraceError(f"{folder} holds no trace: it has no folder {EVENTS_FOLDER}/; make it, or give another")
    place = (checkpoint or folder / CHECKPOINT).absolute()
    follower = Follower(folder.absolute(), place, service)
    stream = spark.readStream.schema(EVENTS_TABLE).option("pathGlobFilter", f"*{SUFFIX}").parquet(str(events))
    query = (
        stream.writeStream.foreachBatch(follower.take)
        .option("checkpointLocation", str(place / "spark"))
        .trigger(processingTime=f"{_EVERY} seconds")
        .start()
    )
    stop = told_to_stop or Event()
    # A batch that is under way when we stop fails, and is handed out again the next time: nothing to tell anybody.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    known = _Outcome()
    busy = time.monotonic()
    try:
        while not known.witnesses and not stop.wait(_EVERY):
            if not query.isActive:
                query.awaitTermination()  # raises what ended it
            before, known = known.batch, _outcome(place / _STATE)
            if known.batch != before or query.status["isDataAvailable"] or query.lastProgress is None:
                busy = time.monotonic()
            if until_idle is not None and time.monotonic() - busy > until_idle:
                break
    except PySparkException as error:
        raise _as_ours(error) from error
    finally:
        query.stop()
    return _outcome(place / _STATE).witnesses


def _outcome(file: Path) -> _Outcome:
    """What is known so far; it is written whole or not at all."""
    try:
        return msgspec.msgpack.decode(file.read_bytes(), type=_Outcome)
    except FileNotFoundError:
        return _Outcome()


def _as_ours(error: PySparkException) -> TraceError | PipelineError:
    told = re.search(r"TraceError: (.+)", str(error))
    if told:
        return TraceError(told[1])
    lines: Sequence[str] = str(error).strip().splitlines()
    line = next((line.strip() for line in lines if "FAILED_READ_FILE" in line or "Caused by" in line), lines[0])
    return PipelineError(f"following stopped: {line}; take that file away, or write it anew, and follow again")


def _rows_of(folder: Path) -> dict[str, RunRow]:
    """The rows of `runs`, as far as they are there."""
    if not any((folder / RUNS_FOLDER).rglob(f"*{SUFFIX}")):
        return {}
    return runs_by_name(read_runs([folder]))
