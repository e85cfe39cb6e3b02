"""Follows a growing trace: takes its new files, each as more of a prefix (see `prefix`), until something is wrong.

A checkpoint says which files were taken, and what is known of each run. A batch of files that is taken again after a
restart is skipped by the runs whose states contain it, and audited by the others: so a restart neither loses nor
repeats anything. A batch that cannot be audited fails, and is taken again as well.

New events are audited in this process, or, with a session on a cluster or through Spark Connect, by tasks, one for each
run. Tasks read the files themselves and keep the states, so both must be where all of them see them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from ordercast.audit.profiles import Profile
from ordercast.audit.verdict import Witness
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.jobs import collected, one_task_per_row
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.schema import EVENTS_FOLDER
from ordercast.trace.storage import Location, location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ordercast.pipeline.audit.stream.follower import TakeEvents

CHECKPOINT = "_audit"
"""The folder in a trace with the state of its follower; readers of traces ignore it."""
_EVERY = 1  # seconds between two looks at the files
_LOOKING = 0.2  # the share of time that may be spent with looking, where there are many
_WORK = pa.schema([pa.field("task", pa.binary())])


def follow(  # noqa: PLR0913 - all but the first three by name
    spark: "SparkSession | None",
    folder: Location | str,
    service: Service | Profile | None = None,
    *,
    checkpoint: Location | str | None = None,
    until_idle: float | None = None,
    note: Callable[[str], None] | None = None,
    stop: Event | None = None,
) -> list[Witness]:
    """Audits a growing trace until a violation, until `stop` is set, or until `until_idle` seconds without a new file.

    `spark`: None, to audit in this process. `checkpoint`: where to keep the state; default: in the trace. `note` gets
    a sentence for each node that has lacked something for 100,000 messages, and again for ten times as many. Returns
    the violations. Raises `TraceError` for files that are not part of a trace.
    """
    from ordercast.pipeline.audit.stream.follower import Follower, take_here  # noqa: PLC0415 - only where it is used

    trace = location(folder).absolute()
    events = trace / EVENTS_FOLDER
    if isinstance(events, Path) and not events.is_dir():  # other storage has no folder where there is no file
        raise TraceError(
            f"{trace} holds no trace: it has no folder {EVENTS_FOLDER}/; create it, or choose another folder"
        )
    follower = Follower(trace, location(checkpoint or trace / CHECKPOINT).absolute(), service)
    take = take_here if spark is None or is_embedded(spark) else _taking(spark)
    stopped = stop or Event()
    idle_since = time.monotonic()
    while not follower.state.witnesses and not stopped.is_set():
        looked = time.monotonic()
        lags = follower.take(take)
        if lags is not None:
            if note is not None:
                for sentence in lags:
                    note(sentence)
            idle_since = time.monotonic()
            continue
        if until_idle is not None and time.monotonic() - idle_since > until_idle:
            break
        stopped.wait(max(_EVERY, (time.monotonic() - looked) / _LOOKING))
    return follower.state.witnesses


def is_embedded(spark: "SparkSession") -> bool:
    """True if tasks run on this machine, started by this process, so that nothing is gained by them."""
    is_client = type(spark).__module__.startswith("pyspark.sql.connect")
    return not is_client and (spark.conf.get("spark.master", "") or "").startswith("local")


def _taking(spark: "SparkSession") -> "TakeEvents":
    """Audits new events on Spark."""
    from ordercast.pipeline.audit.stream.run_follower import Found, NewEvents  # noqa: PLC0415

    def take(tasks: "Sequence[NewEvents]") -> "list[Found]":
        rows = pa.Table.from_pylist([{"task": msgspec.msgpack.encode(task)} for task in tasks], schema=_WORK)
        done = collected(one_task_per_row(spark, rows).mapInArrow(_take_there, spark_schema(_WORK)))
        return [msgspec.msgpack.decode(one, type=Found) for one in done.column("task").to_pylist()]

    return take


def _take_there(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from ordercast.pipeline.audit.stream.run_follower import NewEvents, take_events  # noqa: PLC0415

    for batch in batches:
        for row in batch.to_pylist():
            found = take_events(msgspec.msgpack.decode(row["task"], type=NewEvents))
            yield pa.RecordBatch.from_pylist([{"task": msgspec.msgpack.encode(found)}], schema=_WORK)
