"""Records of members, kept in memory as a recording process leaves them on a disk, and their audit."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.audit.logs import ALL_COLUMNS, KINDS
from ordercast.audit.reference import check_run
from ordercast.audit.run_rows import require_nothing_sent, runs_by_name
from ordercast.audit.verdict import Verdict
from ordercast.trace.arrow_schema import RUNS
from ordercast.trace.packet_recorder import PacketBatch
from ordercast.trace.schema import CONFIG, EVENT, RUN
from tests.live_harness.world import World

_KEPT = pa.array(sorted(KINDS), pa.string())


class MemoryTrace:
    """What `IncrementalTraceWriter` does, without files: a killed process leaves what was published."""

    def __init__(self, records: "Records", folder: Path, name: str, run: str) -> None:
        self.folder, self.run, self.name = folder, run, name
        self.row: dict[str, Any] = {}
        self._open: list[PacketBatch] = []
        self.published: list[PacketBatch] = []
        process = records.world.current
        assert process is not None
        self._process = process
        records.traces.append(self)

    def begin(self, row: Mapping[str, Any]) -> None:
        self.describe(row)

    def append_packets(self, packets: PacketBatch) -> None:
        self._open.append(packets)

    def publish(self) -> None:
        if self._process.alive:
            self.published += self._open
            self._open = []

    def describe(self, row: Mapping[str, Any]) -> None:
        if self._process.alive:
            self.row = dict(row)


class Records:
    """Of all members of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.traces: list[MemoryTrace] = []

    def new(self, folder: Path, name: str, run: str) -> MemoryTrace:
        """In place of `IncrementalTraceWriter`."""
        return MemoryTrace(self, folder, name, run)

    def audit(self) -> Verdict:
        """By the reference audit, of each group that there was; all members have one clock."""
        traces = sorted(self.traces, key=lambda trace: trace.name)
        rows = runs_by_name([_row_of(trace) for trace in traces])
        verdict = Verdict()
        for run, row in rows.items():
            parts = [_columns(trace.published) for trace in traces if trace.run == run and trace.published]
            if not parts:
                require_nothing_sent({**row, "sent": row["sent"] or 0})
            check_run(row, parts, None, verdict)
        return verdict

    def rows(self) -> list[tuple[Any, ...]]:
        """All that was recorded, to compare two runs."""
        return [
            (trace.name, trace.run, tuple(sorted(trace.row.items())), batch.first_step, *batch.entries)
            for trace in self.traces
            for batch in trace.published
        ]


def _row_of(trace: MemoryTrace) -> dict[str, Any]:
    config = json.loads(trace.row[CONFIG])
    config["live"]["one_clock"] = True
    return {**dict.fromkeys(RUNS.names), **trace.row, CONFIG: json.dumps(config), RUN: trace.run}


def _columns(batches: list[PacketBatch]) -> dict[str, list[Any]]:
    rows = pa.Table.from_batches([batch.batch("") for batch in batches])
    rows = rows.filter(pc.is_in(rows.column(EVENT), _KEPT)).select(ALL_COLUMNS)
    return dict(zip(ALL_COLUMNS, (column.to_pylist() for column in rows.columns), strict=True))
