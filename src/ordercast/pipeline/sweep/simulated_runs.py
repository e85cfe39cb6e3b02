"""What came of runs that this process has simulated, kept for a while: queries read both tables, and read them again.

Kept are the latest, as far as their events take 64 MiB: Spark's processes live for several queries.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ordercast.model.errors import PipelineError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.sweep.worker import run_one
from ordercast.trace.files import events_batch, runs_table
from ordercast.trace.schema import ERROR, EventRow

MOST_BYTES = 64 * 2**20


@dataclass(frozen=True)
class SimulatedRun:
    """The row of a run, and its events if they were asked for."""

    row: pa.Table
    batches: tuple[pa.RecordBatch, ...] | None

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(int(part.nbytes) for part in (self.row, *(self.batches or ())))

    def events(self, config: str) -> tuple[pa.RecordBatch, ...]:
        """The events; `PipelineError` if the run failed."""
        [error] = self.row.column(ERROR).to_pylist()
        if error is not None:
            raise PipelineError(f"run {RunConfig.from_json(config).name()} failed: {error}")
        assert self.batches is not None
        return self.batches


_kept: OrderedDict[str, SimulatedRun] = OrderedDict()


def simulated_run(config: str, *, with_events: bool) -> SimulatedRun:
    """What comes of a configuration, given as JSON; with its events, if these are asked for."""
    known = _kept.get(config)
    if known is None or (with_events and known.batches is None):
        known = _kept[config] = _simulate(RunConfig.from_json(config), with_events=with_events)
    _kept.move_to_end(config)
    while len(_kept) > 1 and sum(one.size for one in _kept.values()) > MOST_BYTES:
        _kept.popitem(last=False)
    return known


def _simulate(config: RunConfig, *, with_events: bool) -> SimulatedRun:
    batches: list[pa.RecordBatch] = []
    name = config.name()

    def keep(rows: Sequence[EventRow]) -> None:
        batches.append(events_batch(name, rows))

    row = runs_table([run_one(config, keep if with_events else None)])
    return SimulatedRun(row, tuple(batches) if with_events else None)
