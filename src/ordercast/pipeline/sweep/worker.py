"""What a task of a sweep does: simulates runs, and records failures as rows.

Everything that decides a run comes from its own configuration, never from the task that it is in: a run leaves the same
rows wherever it is simulated.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

import pyarrow as pa

from ordercast.model.errors import TraceError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.time_limit import OutOfTimeError
from ordercast.pipeline.time_limit import time_limit as limited
from ordercast.simulator.simulate import runs_row, simulate
from ordercast.trace.arrow_schema import RUNS
from ordercast.trace.chunk_writer import ChunkWriter
from ordercast.trace.files import cannot_write, runs_table
from ordercast.trace.recorder import Sink
from ordercast.trace.schema import CHANNEL, COMPLETE, CONFIG, ERROR, NODES, PROTOCOL, RUN, SEED
from ordercast.trace.storage import Location, location

PLACE = "place"
"""The column with the index of a row's run among those asked for."""
MEASURED = pa.schema([pa.field(PLACE, pa.int64(), nullable=False), *RUNS])
"""What `measure_runs` gives: the rows of `runs`, each with its index."""

CHUNK, PLACES, CONFIGS = "chunk", "places", "configs"
CHUNKS = pa.schema(
    [
        pa.field(CHUNK, pa.int32(), nullable=False),
        pa.field(PLACES, pa.list_(pa.int64()), nullable=False),
        pa.field(CONFIGS, pa.list_(pa.string()), nullable=False),
    ]
)
"""The input of tasks: a row for each chunk, with the indices and the configurations of its runs."""

SWEPT = pa.schema([pa.field(CHUNK, pa.int32(), nullable=False)])
"""What `sweep_chunks` gives."""

IN_PROGRESS = "_in_progress"
"""The folder with a file for each chunk in progress, which names its current run: known if the process dies."""


def run_one(config: RunConfig, sink: Sink | None = None, time_limit: float | None = None) -> dict[str, object]:
    """Simulates a run and returns its row; a run that raised or took too long has an `error` instead of counters.

    A `TraceError` of the sink, because a trace cannot be written, is raised: the run is not its cause.
    """
    try:
        with limited(time_limit):
            row = {RUN: config.name(), **runs_row(simulate(config, sink=sink))}
            runs_table([row])  # a number that does not fit into its column is an error of the run, not of the writer
    except TraceError:
        raise
    except OutOfTimeError:
        return failed_row(config, f"took longer than the time limit of {time_limit:g} s")
    except OverflowError:
        return failed_row(config, "its seed or one of its counters does not fit into 64 bits")
    except Exception as error:
        return failed_row(config, f"{type(error).__name__}: {error}")
    return row


def failed_row(config: RunConfig, error: str) -> dict[str, object]:
    """The row of a failed run."""
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

    `deadly`: runs that killed their process, which are recorded as failed without being run again.
    """
    for batch in chunks:
        for chunk in batch.to_pylist():
            _sweep_chunk(location(out), chunk_name(chunk[CHUNK]), chunk[CONFIGS], time_limit, deadly)
            yield pa.RecordBatch.from_pylist([{CHUNK: chunk[CHUNK]}], schema=SWEPT)


def chunk_name(number: int) -> str:
    """The name of the files of a chunk."""
    return f"chunk-{number:06}"


def _sweep_chunk(
    folder: Location, name: str, configs: Sequence[str], time_limit: float | None, deadly: frozenset[str]
) -> None:
    in_progress = folder / IN_PROGRESS / name
    with ChunkWriter(folder, name) as chunk:
        for text in configs:
            config = RunConfig.from_json(text)
            run = config.name()
            if run in deadly:
                chunk.drop(failed_row(config, "its process died, and died again when it was run alone"))
                continue
            try:
                in_progress.write_text(run)
            except OSError as error:
                raise cannot_write(f"the trace {folder}", error) from error
            row = run_one(config, partial(chunk.write, run), time_limit)
            if row.get(ERROR) is None:
                chunk.keep(row)
            else:
                chunk.drop(row)
        chunk.finish()
    with suppress(OSError):
        in_progress.unlink(missing_ok=True)
