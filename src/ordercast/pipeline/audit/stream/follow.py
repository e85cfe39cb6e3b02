"""Follows a growing trace: a Spark stream of its new files, each audited as more of a prefix (see `prefix`).

Spark's checkpoint says which files were processed. Beside it is the state of each run, with the number of the last
batch that is part of it. A batch that is processed again after a restart is skipped if the state contains it, and
audited if not: so a restart neither loses nor repeats anything. A batch that cannot be audited fails, so that Spark
processes it again as well.

Batches are audited in this process, through Spark Connect at the server, and on a cluster by tasks, one for each run.
The follower reads the result from the state file alone, so the checkpoint must be in a folder that all of them see.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import msgspec

from ordercast.audit.profiles import Profile
from ordercast.audit.verdict import Witness
from ordercast.model.errors import PipelineError, TraceError
from ordercast.model.services import Service
from ordercast.pipeline.jobs import trace_error_in
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.schema import EVENTS_FOLDER, SUFFIX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINT = "_audit"
"""The folder in a trace with the state of its follower; readers of traces ignore it."""
_ANY_AGE = "36500d"  # Spark would skip, silently, files that are a week older than the newest
FILES_OF_A_BATCH = 256
"""At most so many new files are taken at once: what was written while nobody followed does not come as one batch."""
_EVERY = 1  # seconds between two polls for new files


class _Outcome(msgspec.Struct):
    """The part of the state that the follower polls."""

    batch: int = -1
    witnesses: list[Witness] = []
    lags: list[str] = []


def follow(  # noqa: PLR0913 - all but the first three by name
    spark: "SparkSession",
    folder: Path,
    service: Service | Profile | None = None,
    *,
    checkpoint: Path | None = None,
    until_idle: float | None = None,
    note: Callable[[str], None] | None = None,
    stop: Event | None = None,
) -> list[Witness]:
    """Audits a growing trace until a violation, until `stop` is set, or until `until_idle` seconds without a new file.

    `checkpoint`: where to keep the state; default: in the trace. `note` is called with a sentence for each node that
    has lacked something for 100,000 messages, and again for ten times as many. Returns the violations. Raises
    `TraceError` for files that are not part of a trace.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415 - whoever passes a session has loaded it

    from ordercast.pipeline.audit.stream.follower import Follower  # noqa: PLC0415 - the kernel, only where it is used

    events = (folder / EVENTS_FOLDER).absolute()
    if not events.is_dir():
        raise TraceError(
            f"{folder} holds no trace: it has no folder {EVENTS_FOLDER}/; create it, or choose another folder"
        )
    place = (checkpoint or folder / CHECKPOINT).absolute()
    follower = Follower(folder.absolute(), place, service)
    stream = (
        spark.readStream.schema(spark_schema(EVENTS))
        .option("pathGlobFilter", f"*{SUFFIX}")
        .option("maxFileAge", _ANY_AGE)
        .option("maxFilesPerTrigger", FILES_OF_A_BATCH)
        .option("ignoreMissingFiles", "true")  # whoever is told that a file does not belong there may remove it
        .parquet(str(events))
    )
    query = (
        stream.writeStream.foreachBatch(follower.take)
        .option("checkpointLocation", str(place / "spark"))
        .trigger(processingTime=f"{_EVERY} seconds")
        .start()
    )
    stopped = stop or Event()
    known = _Outcome()
    busy = time.monotonic()
    with _silenced(logging.getLogger("py4j")):
        try:
            while not known.witnesses and not stopped.wait(_EVERY):
                if not query.isActive:
                    query.awaitTermination()  # raises what ended it
                before, known = known, _outcome(follower.file)
                if note is not None:
                    for sentence in known.lags[_begin(before.lags, known.lags) :]:
                        note(sentence)
                if known.batch != before.batch or query.status["isDataAvailable"] or query.lastProgress is None:
                    busy = time.monotonic()
                if until_idle is not None and time.monotonic() - busy > until_idle:
                    break
        except PySparkException as error:
            raise trace_error_in(error) or _stream_error(error) from error
        finally:
            query.stop()
    return _outcome(follower.file).witnesses


def _begin(before: Sequence[str], now: Sequence[str]) -> int:
    """Where the new ones begin in a list that lost some of its first entries and got others at its end."""
    return next((place for place in range(len(now), 0, -1) if before and now[place - 1] == before[-1]), 0)


@contextmanager
def _silenced(logger: logging.Logger) -> Iterator[None]:
    """A batch in progress when we stop fails, and is processed again the next time: not worth a message."""
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _outcome(file: Path) -> _Outcome:
    """The result so far; the file is replaced atomically."""
    try:
        return msgspec.msgpack.decode(file.read_bytes(), type=_Outcome)
    except FileNotFoundError:
        return _Outcome()


def _stream_error(error: Exception) -> PipelineError:
    lines: Sequence[str] = str(error).strip().splitlines()
    line = next((line.strip() for line in lines if "FAILED_READ_FILE" in line or "Caused by" in line), lines[0])
    return PipelineError(f"the stream failed: {line}; remove that file, or write it again, and restart")
