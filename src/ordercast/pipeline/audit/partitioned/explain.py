"""Looks into boxes of a long run that were not acquitted, with the reference audit. There is no Spark in here.

Some messages of a run, with all their events, are a run as well. Whatever it breaks, the whole run breaks: orders and
cycles among some messages are there among all. Only places have to be told as they are in the whole logs.

Not so with what is said of whole logs: which priority runs they have, and where the log of a node that stopped departs
from the others'. These are left out here.
"""

import re
from collections.abc import Sequence
from itertools import islice

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.audit.completeness import complete
from ordercast.audit.judge import MOST_WITNESSES
from ordercast.audit.logs import COLUMNS, logs_of
from ordercast.audit.order import no_cycle, same_order
from ordercast.audit.priorities import same_runs
from ordercast.audit.services import ORDERS, PROMISES, TRUTHS, Property
from ordercast.audit.views import delivered_uniformly
from ordercast.audit.violations import Violation
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.columns import CODES, FIRST_ENDING, kinds_of
from ordercast.pipeline.audit.partitioned.partition import Ending, GroupsOfFile, values
from ordercast.pipeline.audit.run import as_lists
from ordercast.trace.schema import EVENT, NODE, SEQ, SOURCE, STEP, EventKind


class Interval(msgspec.Struct, frozen=True):
    """A box: of each source the numbers from `start` to below `end`."""

    start: tuple[int, ...]
    end: tuple[int, ...]


class LookTask(msgspec.Struct, frozen=True):
    """Boxes to look into together."""

    run: str
    nodes: int
    service: str
    levels: bool
    endings: tuple[Ending, ...]
    """Of the whole run."""
    boxes: tuple[Interval, ...]
    files: tuple[GroupsOfFile, ...]
    """One row group each."""
    before: tuple[tuple[int, ...], ...]
    """By row group and node: how many deliveries come before those in it."""


class Found(msgspec.Struct, frozen=True):
    """What breaks a property in some boxes."""

    breaks: str
    violations: int
    witnesses: tuple[Violation, ...]


def look(task: LookTask) -> list[Found]:
    """Holds some boxes against each promise of a service."""
    batches: list[pa.RecordBatch] = []
    places: list[list[tuple[int, int]]] = [[] for _ in range(task.nodes)]  # by node: step, place in the whole log
    for file, before in zip(task.files, task.before, strict=True):
        batches.append(_inside(task, file.read(COLUMNS), before, places))
    endings = [ending.as_row() for ending in task.endings]
    about_nodes = {column: [row.get(column) for row in endings] for column in COLUMNS}
    logs = logs_of(task.run, task.nodes, [about_nodes, *map(as_lists, batches)])
    service = Service(task.service)
    if service not in SELECTIVE:
        logs = logs.addressed_to_everybody()
    in_whole_log = [[place for _, place in sorted(rows)] for rows in places]
    found: list[Found] = []
    for promise in told_by_parts(service, stops=bool(logs.stopped)):
        if promise not in TRUTHS or task.levels:
            violations = promise(logs)
            kept = tuple(_placed(violation, in_whole_log) for violation in islice(violations, MOST_WITNESSES))
            found.append(Found(promise.__name__, len(kept) + sum(1 for _ in violations), kept))
    return found


def told_by_parts(service: Service, *, stops: bool) -> list[Property]:
    """The promises that some messages of a run tell of; `stops`: whether nodes stop in it."""
    whole: tuple[Property, ...] = (same_runs, delivered_uniformly)
    if stops and service is Service.SEQUENCED:
        whole += ORDERS
    return [promise for promise in PROMISES[service] if promise not in whole]


def _inside(
    task: LookTask, batch: pa.RecordBatch, before: Sequence[int], places: list[list[tuple[int, int]]]
) -> pa.RecordBatch:
    """The events of a row group that are about messages in the boxes; notes where in its log each delivery stands."""
    kind = kinds_of(batch.column(EVENT))
    node, step = values(batch.column(NODE)), values(batch.column(STEP))
    source, seq = values(batch.column(SOURCE)), values(batch.column(SEQ))
    inside = np.zeros(kind.size, np.bool_)
    for box in task.boxes:
        start, end = np.array(box.start), np.array(box.end)
        inside |= (seq >= start[source]) & (seq < end[source])
    inside &= kind < FIRST_ENDING
    is_delivery = kind == CODES[EventKind.DELIVER]
    for at in range(task.nodes):
        (mine,) = np.nonzero(is_delivery & (node == at))
        (chosen,) = np.nonzero(inside[mine])
        places[at] += zip(step[mine[chosen]].tolist(), (chosen + before[at]).tolist(), strict=True)
    return batch.filter(pa.array(inside))


def _placed(violation: Violation, in_whole_log: Sequence[Sequence[int]]) -> Violation:
    """A violation with places as they are in the whole logs."""
    if not violation.places:
        return violation
    if violation.breaks == no_cycle.__name__:
        nodes: Sequence[int] = violation.nodes
    elif violation.breaks == same_order.__name__:
        one, other = violation.nodes
        nodes = (one, one, other, other)
    else:
        nodes = violation.nodes[:1] * len(violation.places)
    places = tuple(in_whole_log[node][place] for node, place in zip(nodes, violation.places, strict=True))
    sentence = violation.sentence
    if violation.breaks == complete.__name__ and len(places) > 1:
        sentence = re.sub(r"as numbers \d+ and \d+ of", f"as numbers {places[0]} and {places[1]} of", sentence)
    return Violation(violation.breaks, sentence, violation.messages, violation.nodes, places)
