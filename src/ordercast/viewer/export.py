"""A page in one file, with the events inside: it opens without a server and without a network."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordercast.viewer.answers import run_answer, summary_answer
from ordercast.viewer.encoding import encoded_events
from ordercast.viewer.event_arrays import CODES
from ordercast.viewer.page import page
from ordercast.viewer.traces import Traces, ViewedRun

MOST_EXPORTED = 200_000
"""Events of a run in an exported page, if no other number is asked for."""

MOST_RUNS = 10


@dataclass(frozen=True)
class Range:
    """What is exported of a run: from a time since it began, in nanoseconds, and at most so many events."""

    begin: int = 0
    end: int | None = None
    most: int = MOST_EXPORTED


@dataclass(frozen=True)
class Exported:
    """The page, and how many events it has and has not."""

    page: bytes
    shown: int
    left_out: int


def runs_to_export(traces: Traces, named: Sequence[str], witnesses: Sequence[Mapping[str, Any]]) -> list[str]:
    """The runs that are named; or those that witnesses are of; or the first. At most `MOST_RUNS` of them."""
    if named:
        return list(dict.fromkeys(named))
    wanted = {witness["run"] for witness in witnesses}
    keys = [key for key, run in traces.runs.items() if run.name in wanted]
    return (keys or list(traces.runs))[: MOST_RUNS if keys else 1]


def exported(
    traces: Traces, keys: Sequence[str], chosen: Range, witnesses: Sequence[Mapping[str, Any]] = ()
) -> Exported:
    """Makes the page of some runs."""
    parts, shown, total = [], 0, 0
    for key in keys:
        run = traces.run(key)
        part, rows = _embedded(run, chosen)
        parts.append(part)
        shown += rows
        total += run.events.rows
    listed = traces.described(*keys)
    listed["unlisted"] = len(traces.runs) - len(keys)
    listed["runs"] = [each for each in listed["runs"] if each["key"] in keys]
    names = {traces.run(key).name for key in keys}
    inside = [witness for witness in witnesses if witness["run"] in names]
    data = {**listed, "mode": "file", "first": keys[0], "witnesses": inside, "embedded": parts}
    if len(keys) == 2 and not inside:
        data["beside"] = keys[1]
    return Exported(page(data, served=False), shown, total - shown)


def _embedded(run: ViewedRun, chosen: Range) -> tuple[dict[str, Any], int]:
    origin, last = run.events.origin, run.events.times[1]
    begin = origin + chosen.begin
    end = last + 1 if chosen.end is None else min(last + 1, origin + chosen.end)
    events = run.events.between(begin, end)
    if len(events) > chosen.most:
        events = events.take(slice(0, chosen.most))
    before = [0] * run.nodes
    if run.summary.possible and len(events):
        before = [int(np.searchsorted(order.time, events.time[0])) for order in run.summary.orders]
    if run.summary.possible:
        events = run.summary.with_sends(events)
    table = encoded_events(events, run.events.texts, origin)
    delivered = int(np.count_nonzero(events.kind == CODES["deliver"]))
    return {
        "run": run_answer(run),
        "summary": summary_answer(run),
        "events": b64encode(table).decode(),
        "delivered_before": before,
        "left_out": run.events.rows - len(events),
        "delivered": delivered,
    }, len(events)
