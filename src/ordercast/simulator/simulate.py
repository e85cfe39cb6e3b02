"""Simulate a configuration, and keep its trace where one is wanted."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from ordercast.model.errors import ConfigError
from ordercast.model.machine import Machine
from ordercast.model.runs import RunConfig
from ordercast.simulator.result import RunResult
from ordercast.simulator.simulation import Progress, Simulation
from ordercast.trace.recorder import Sink
from ordercast.trace.schema import COUNTERS, EventRow


def simulate(
    config: RunConfig,
    out: Path | None = None,
    *,
    rows: list[EventRow] | None = None,
    sink: Sink | None = None,
    progress: Progress | None = None,
    machine: type[Machine] | None = None,
) -> RunResult:
    """Runs a configuration.

    With `out`, its trace is written into that folder as the run goes on; with `rows`, the rows of the trace are kept
    in that list, which is meant for small runs; with `sink`, they are handed to it batch by batch. With `machine`,
    the group consists of such machines in place of the protocol's own.
    """
    sinks = [taker for taker in (None if rows is None else rows.extend, sink) if taker is not None]
    try:
        return _simulate(config, out, sinks, partial(Simulation, machine=machine), progress)
    except OverflowError as error:
        raise ConfigError(
            "a time of this run, or its seed, outgrows the 64 bits that numbers have here (292 years in nanoseconds); "
            "take shorter times, fewer messages or a smaller seed"
        ) from error


def _simulate(
    config: RunConfig,
    out: Path | None,
    sinks: list[Sink],
    simulation: Callable[[RunConfig, Sink | None], Simulation],
    progress: Progress | None,
) -> RunResult:
    def hand_on(batch: Sequence[EventRow]) -> None:
        for sink in sinks:
            sink(batch)

    if out is None:
        return simulation(config, hand_on if sinks else None).run(progress)
    from ordercast.trace.writer import TraceWriter  # noqa: PLC0415 - Arrow is slow to import; only a trace needs it

    with TraceWriter(out, config.name()) as trace:
        sinks = [trace.write, *sinks]
        result = simulation(config, hand_on).run(progress)
        trace.finish(runs_row(result))
    return result


def runs_row(result: RunResult) -> dict[str, object]:
    """The row of a run in the trace, but for its name."""
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
