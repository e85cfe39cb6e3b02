"""What a task of a soak does: simulates runs, audits each, and gives their results."""

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from ordercast.model.runs import RunConfig, TraceDetail
from ordercast.model.services import PRIORITISED
from ordercast.pipeline.sweep.worker import CONFIGS, PLACE, PLACES
from ordercast.pipeline.time_limit import OutOfTimeError
from ordercast.pipeline.time_limit import time_limit as limited
from ordercast.simulator.fault_rules import OVERRUN, QUEUE_FULL
from ordercast.simulator.simulate import runs_row
from ordercast.simulator.simulation import Simulation
from ordercast.swarm.run_audit import INCOMPLETE, RAISES, Failure, failures_in
from ordercast.swarm.soak import Soaked, soaked, unfinished
from ordercast.trace.packet_recorder import RunBatch, RunRecorder
from ordercast.trace.schema import RUN

RESULT = "result"
SOAKED = pa.schema([pa.field(PLACE, pa.int64(), nullable=False), pa.field(RESULT, pa.string(), nullable=False)])
"""What tasks give: the result of each run, as JSON."""


def soak_chunks(chunks: Iterator[pa.RecordBatch], *, time_limit: float) -> Iterator[pa.RecordBatch]:
    """Simulates and audits the runs of each chunk."""
    for batch in chunks:
        for chunk in batch.to_pylist():
            rows = [
                {PLACE: place, RESULT: msgspec.json.encode(soak_one(RunConfig.from_json(text), time_limit)).decode()}
                for place, text in zip(chunk[PLACES], chunk[CONFIGS], strict=True)
            ]
            yield pa.RecordBatch.from_pylist(rows, schema=SOAKED)


def soak_one(config: RunConfig, time_limit: float | None = None) -> Soaked:
    """Simulates and audits a run; `time_limit`: seconds of CPU time."""
    from ordercast.pipeline.audit.run import audit_run  # noqa: PLC0415 - the kernel, only where the task runs

    name, batches = config.name(), list[pa.RecordBatch]()
    overruns = False

    def take(packets: RunBatch) -> None:
        nonlocal overruns
        overruns = overruns or (config.network.may_lose() and packets.has_detail(OVERRUN, QUEUE_FULL))
        batches.append(packets.batch(name))

    recorder = RunRecorder(
        *(config.group.nodes, take),
        deliveries_only=config.record is TraceDetail.DELIVERIES,
        by_priority=config.protocol in PRIORITISED,
    )
    try:
        with limited(time_limit, cpu_time=True):
            simulation = Simulation(config, recorder=recorder)
            watcher = simulation.watch()
            result = simulation.run()
            verdict = audit_run({RUN: name, **runs_row(result)}, batches)
    except OutOfTimeError:
        return unfinished(config, Failure(INCOMPLETE, f"it has not ended after {time_limit:g} s of CPU time"))
    except Exception as error:  # whatever a machine raises is a fault of its own
        return unfinished(config, Failure(f"{RAISES} {type(error).__name__}", str(error) or "without a message"))
    return soaked(result, verdict.deliveries, failures_in(result, verdict, watcher.observed()), overrun=overruns)
