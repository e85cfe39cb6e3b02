"""Random runs as traces."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.model.services import Service
from ordercast.trace.arrow_schema import RUNS
from tests.pipeline.random_runs import RandomRun, batch_of, break_somehow, random_run
from tests.pipeline.test_audit_kernel import by_reference, row_of


def random_runs(seed: str, count: int) -> dict[str, RandomRun]:
    """Runs that can be judged, half of them with something broken, of all services in turn."""
    chance = Random(seed)
    runs: dict[str, RandomRun] = {}
    services = list(Service)
    while len(runs) < count:
        run = random_run(chance, services[len(runs) % len(services)])
        for _ in range(chance.choice([0, 0, 1, 2])):
            break_somehow(chance, run)
        if run.rows() and by_reference(run) is not None:
            runs[f"run-{chance.randrange(10**6):06}"] = run
    return runs


def write(folder: Path, runs: dict[str, RandomRun], *, runs_in_a_file: int = 1, rows_in_a_group: int = 50) -> Path:
    for part in ("events", "runs"):
        (folder / part).mkdir(parents=True)
    names = list(runs)
    for start in range(0, len(names), runs_in_a_file):
        chosen = names[start : start + runs_in_a_file]
        events = pa.Table.from_batches([batch_of(runs[name].rows(), name) for name in chosen])
        pq.write_table(events, folder / f"events/part-{start}.parquet", row_group_size=rows_in_a_group)
        rows = [{"complete": True, **row_of(runs[name]), "run": name} for name in chosen]
        pq.write_table(pa.Table.from_pylist(rows, schema=RUNS), folder / f"runs/part-{start}.parquet")
    return folder
