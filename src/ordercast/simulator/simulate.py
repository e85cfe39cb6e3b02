"""Simulates a configuration, and writes its trace if wanted."""

import json
from collections.abc import Sequence

from ordercast.model.errors import ConfigError
from ordercast.model.progress import Progress
from ordercast.model.runs import RunConfig
from ordercast.simulator.result import RunResult
from ordercast.simulator.simulation import Simulation
from ordercast.trace.recorder import Sink
from ordercast.trace.schema import COUNTERS, EventRow
from ordercast.trace.storage import Location


def simulate(
    config: RunConfig,
    out: Location | None = None,
    *,
    rows: list[EventRow] | None = None,
    sink: Sink | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Runs a configuration.

    `out`: the folder to write the trace to, while the run goes on. `rows`: a list that collects the rows of the trace,
    for small runs. `sink`: takes them batch by batch. `progress` is called with the messages sent and to send.
    """
    sinks = [taker for taker in (None if rows is None else rows.extend, sink) if taker is not None]
    try:
        return _simulate(config, out, sinks, progress)
    except OverflowError as error:
        raise ConfigError(
            "a time of this run, or its seed, exceeds 64 bits (292 years in nanoseconds); "
            "use shorter times, fewer messages or a smaller seed"
        ) from error


def _simulate(
    config: RunConfig,
    out: Location | None,
    sinks: list[Sink],
    progress: Progress | None,
) -> RunResult:
    def pass_on(batch: Sequence[EventRow]) -> None:
        for sink in sinks:
            sink(batch)

    if out is None:
        return Simulation(config, pass_on if sinks else None).run(progress)
    from ordercast.trace.run_writer import TraceWriter  # noqa: PLC0415 - Arrow is slow to import; only a trace needs it

    with TraceWriter(out, config.name()) as trace:
        sinks = [trace.write, *sinks]
        result = Simulation(config, pass_on).run(progress)
        trace.finish(runs_row(result))
    return result


def runs_row(result: RunResult) -> dict[str, object]:
    """The row of a run in `runs`, without its name."""
    config, counters = result.config, result.counters
    counts = dict(counters.columns())
    latency = {level.name.lower(): times.as_document() for level, times in counters.latency.items()}
    waiting = {str(priority): times.as_document() for priority, times in sorted(counters.waiting.items())}
    return {
        "protocol": config.protocol,
        "nodes": config.group.nodes,
        "channel": config.network.channel.value,
        "seed": config.seed,
        "config": config.to_json(),
        "complete": result.complete,
        "stalled": result.stalled,
        "aborted": result.aborted,
        "virtual_time": result.virtual_time,
        **{name: counts[name] for name in COUNTERS},
        "latency": json.dumps(latency),
        "waiting": json.dumps(waiting),
    }
