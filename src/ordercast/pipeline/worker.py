"""What a Spark task does with a run: simulates it, and makes a row of whatever goes wrong. There is no Spark in here.

Everything that decides a run comes from its own configuration, never from the partition that it is in: wherever it
is run, it leaves the same rows.
"""

import gc
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType

import pyarrow as pa

from ordercast.model.errors import TraceError
from ordercast.model.runs import RunConfig
from ordercast.simulator.simulate import runs_row, simulate
from ordercast.trace.arrow_schema import RUNS
from ordercast.trace.chunk_writer import ChunkWriter
from ordercast.trace.files import cannot_write, runs_table
from ordercast.trace.recorder import Sink
from ordercast.trace.schema import CHANNEL, COMPLETE, CONFIG, ERROR, NODES, PROTOCOL, RUN, SEED

PLACE = "place"
"""The column that says which of the runs asked for a row is."""
MEASURED = pa.schema([pa.field(PLACE, pa.int64(), nullable=False), *RUNS])
"""What `measure_runs` gives: the rows of `runs`, each with its place."""

CHUNK, PLACES, CONFIGS = "chunk", "places", "configs"
CHUNKS = pa.schema(
    [
        pa.field(CHUNK, pa.int32(), nullable=False),
        pa.field(PLACES, pa.list_(pa.int64()), nullable=False),
        pa.field(CONFIGS, pa.list_(pa.string()), nullable=False),
    ]
)
"""What tasks are given: a row for each chunk, with all that its runs need, in two lists of equal length."""

SWEPT = pa.schema([pa.field(CHUNK, pa.int32(), nullable=False)])
"""What `sweep_chunks` gives."""

UNDER_WAY = "_under_way"
"""The folder in which each chunk that is being simulated tells its run, should its process die over it."""

_AGAIN = 1.0  # seconds until the alarm rings once more, should somebody have taken it for an error of his own
_SOON = 0.01  # seconds until it rings again if nobody could hear it


class OutOfTimeError(BaseException):
    """A run took too long. No `Exception`, so that nothing on its way takes it for one of its own."""


def run_one(config: RunConfig, sink: Sink | None = None, time_limit: float | None = None) -> dict[str, object]:
    """The row of a run; one that raised, or took too long, has an `error` instead of counters.

    What the sink raises about a trace that cannot be written is not the run's fault and goes on to the caller.
    """
    try:
        with alarm(time_limit):
            row = {RUN: config.name(), **runs_row(simulate(config, sink=sink))}
            runs_table([row])  # a number that outgrows its column is the run's mistake, not the writer's
    except TraceError:
        raise
    except OutOfTimeError:
        return failed_row(config, f"took longer than the {time_limit:g} s that a run was given")
    except OverflowError:
        return failed_row(config, "its seed, or a number that it counted, outgrows the 64 bits that numbers have here")
    except Exception as error:
        return failed_row(config, f"{type(error).__name__}: {error}")
    return row


def failed_row(config: RunConfig, error: str) -> dict[str, object]:
    """The row of a run that came to nothing."""
    return {
        RUN: config.name(),
        PROTOCOL: config.protocol,
        NODES: config.group.nodes,
        CHANNEL: config.network.channel.value,
        SEED: config.seed if -(2**63) <= config.seed < 2**63 else None,
        CONFIG: config.to_json(),
        COMPLETE: False,
        ERROR: error,
    }


def measure_runs(chunks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Simulates the runs of each chunk and gives their rows of `runs`, chunk by chunk."""
    for batch in chunks:
        for chunk in batch.to_pylist():
            rows = [
                {PLACE: place, **run_one(RunConfig.from_json(text))}
                for place, text in zip(chunk[PLACES], chunk[CONFIGS], strict=True)
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=MEASURED)


def sweep_chunks(
    chunks: Iterator[pa.RecordBatch], *, out: str, time_limit: float | None, deadly: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    """Simulates the runs of each chunk and writes their trace; gives the numbers of the chunks.

    `deadly` are runs that killed the process that ran them, and are not run again.
    """
    for batch in chunks:
        for chunk in batch.to_pylist():
            _sweep_chunk(Path(out), chunk_name(chunk[CHUNK]), chunk[CONFIGS], time_limit, deadly)
            yield pa.RecordBatch.from_pylist([{CHUNK: chunk[CHUNK]}], schema=SWEPT)


def chunk_name(number: int) -> str:
    """What the files of a chunk are called."""
    return f"chunk-{number:06}"


def _sweep_chunk(
    folder: Path, name: str, configs: Sequence[str], time_limit: float | None, deadly: frozenset[str]
) -> None:
    under_way = folder / UNDER_WAY / name
    with ChunkWriter(folder, name) as chunk:
        for text in configs:
            config = RunConfig.from_json(text)
            run = config.name()
            if run in deadly:
                chunk.drop(failed_row(config, "the process that ran it died, and died again when it was run alone"))
                continue
            try:
                under_way.write_text(run)
            except OSError as error:
                raise cannot_write(f"the trace {folder}", error) from error
            row = run_one(config, partial(chunk.write, run), time_limit)
            if row.get(ERROR) is None:
                chunk.keep(row)
            else:
                chunk.drop(row)
        chunk.finish()
    with suppress(OSError):
        under_way.unlink()


@contextmanager
def alarm(seconds: float | None, *, of_work: bool = False) -> Iterator[None]:
    """Ends what takes too long. Spark's Python workers do their work in the main thread, where alarms are heard.

    `of_work` counts only the time that this process works: on a busy machine it waits for most of the rest.
    """
    if seconds is None or current_thread() is not main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        del number
        if _swallows_errors(frame):
            signal.setitimer(clock, _SOON, _AGAIN)
        else:
            raise OutOfTimeError

    clock, rings = (signal.ITIMER_PROF, signal.SIGPROF) if of_work else (signal.ITIMER_REAL, signal.SIGALRM)
    before = signal.signal(rings, ring)
    signal.setitimer(clock, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(clock, 0)
        signal.signal(rings, before)


def _swallows_errors(frame: FrameType | None) -> bool:
    """Whether this is a destructor or the collector's callback, which print an error instead of passing it on."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
