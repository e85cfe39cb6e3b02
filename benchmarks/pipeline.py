"""How fast the pipeline is: a sweep on Spark against the same chunks on a plain pool of processes.

Both do the same work, down to the files, on two cores; they take turns, so that what else the machine does falls on
both. What Spark takes to start is told apart. Nothing here is a test. Run it on a quiet machine:

    make bench
    .venv/bin/python benchmarks/pipeline.py sweep 96      # as many runs
"""

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
from command_line import parser_for

from ordercast.model.runs import RunConfig
from ordercast.pipeline import sweep
from ordercast.pipeline.session import session
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.pipeline.sweep.grid import grid_of
from ordercast.pipeline.sweep.worker import CHUNK, CHUNKS, CONFIGS, IN_PROGRESS, PLACES, sweep_chunks

CORES = 2
REPEATS = 3


def main() -> None:
    """Prints the sections asked for, or all."""
    parser = parser_for(__doc__, "some minutes")
    parser.add_argument("section", nargs="?", choices=SECTIONS, help="what to measure; default: all")
    parser.add_argument("runs", nargs="?", type=int, default=400, help="of the sweep; default: 400")
    asked = parser.parse_args()
    print(f"Python {platform.python_version()} on {platform.machine()}; load {os.getloadavg()[0]:.1f}")
    for name, show in SECTIONS.items():
        if asked.section in {None, name}:
            show(asked.runs)


# --- sweep ---


def sweep_section(runs: int) -> None:
    """A sweep on Spark against a pool."""
    configs = grid_of(
        {
            "protocol": ["spo", "st"],
            "nodes": [4, 8],
            "loss": [0.0, 0.05],
            "messages": 100,
            "record": "deliveries",
            "seeds": max(1, runs // 8),
        },
        "the benchmark",
    )
    print(f"\nsweep: {len(configs)} runs in {len(in_chunks(configs))} chunks on {CORES} cores; {REPEATS} turns each")
    began = time.perf_counter()
    with session(f"local[{CORES}]") as spark, tempfile.TemporaryDirectory() as folder:
        print(f"  Spark's session      {time.perf_counter() - began:6.1f} s")
        print(f"  Spark's first sweep  {timed(lambda out: sweep(spark, configs[:2], out), folder):6.1f} s, of 2 runs")
        took: dict[str, list[float]] = {"pool": [], "Spark": []}
        for _ in range(REPEATS):
            took["pool"].append(timed(partial(sweep_by_pool, configs), folder))
            took["Spark"].append(timed(lambda out: sweep(spark, configs, out), folder))
    for name, times in took.items():
        rates = ", ".join(f"{len(configs) / seconds:.1f}" for seconds in times)
        print(f"  {name:5} {statistics.median(times):6.2f} s in the median; runs a second: {rates}")
    ratios = [pool / spark for pool, spark in zip(took["pool"], took["Spark"], strict=True)]
    told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"  Spark's speed is {statistics.median(ratios):.2f} of the pool's ({told})")


def timed(work: Callable[[Path], object], folder: str) -> float:
    """Seconds that it takes to write a sweep into a new folder."""
    out = Path(tempfile.mkdtemp(dir=folder))
    began = time.perf_counter()
    work(out)
    return time.perf_counter() - began


def sweep_by_pool(configs: list[RunConfig], out: Path) -> None:
    """The same chunks, written by processes without Spark."""
    (out / IN_PROGRESS).mkdir()
    rows = [
        {CHUNK: number, PLACES: places, CONFIGS: [configs[place].to_json() for place in places]}
        for number, places in enumerate(in_chunks(configs))
    ]
    with get_context("fork").Pool(CORES) as pool:
        pool.map(partial(sweep_rows, str(out)), [[row] for row in rows], chunksize=1)


def sweep_rows(out: str, rows: list[dict[str, object]]) -> int:
    """What a process of the pool does with a chunk."""
    batch = pa.RecordBatch.from_pylist(rows, schema=CHUNKS)
    return sum(swept.num_rows for swept in sweep_chunks(iter([batch]), out=out, time_limit=None, deadly=frozenset()))


SECTIONS: dict[str, Callable[[int], None]] = {"sweep": sweep_section}


if __name__ == "__main__":
    main()
