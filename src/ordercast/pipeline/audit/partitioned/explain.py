"""Finds the violations in partitions that did not pass, with the reference audit.

Some messages of a run, with all their events, are a run as well. Whatever it violates, the whole run violates: orders
and cycles among some messages exist among all. Only positions have to be reported as they are in the whole logs.

This does not hold for properties of whole logs: which priority runs they have, and where the log of a stopped node
departs from the others'. These are not checked here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.audit.completeness import complete, delivered_once, delivered_twice
from ordercast.audit.logs import COLUMNS, RunLogs, logs_of
from ordercast.audit.order import no_cycle, same_order
from ordercast.audit.priorities import same_runs
from ordercast.audit.profiles import Asked, asked_in, is_selective, promised_by
from ordercast.audit.reference import without_times
from ordercast.audit.services import LEVEL_SOUNDNESS, ORDERS, PROMISES, Property
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.verdict import MOST_WITNESSES, Finding
from ordercast.audit.views import delivered_uniformly
from ordercast.audit.violations import Violation
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import CODES, FIRST_MEMBERSHIP, kinds_of
from ordercast.pipeline.audit.partitioned.partition_audit import Partition
from ordercast.pipeline.audit.partitioned.row_group_summary import MembershipEvent
from ordercast.pipeline.audit.partitioned.row_groups import RowGroups, numbers_with_null
from ordercast.pipeline.audit.run import as_lists
from ordercast.trace.schema import EVENT, NODE, SEQ, SOURCE, STEP, EventKind

_TWICE = {complete.__name__, delivered_once.__name__}


class ExplainTask(msgspec.Struct, frozen=True):
    """Partitions to be searched together."""

    run: str
    nodes: int
    service: str
    levels: bool
    membership: tuple[MembershipEvent, ...]
    """Of the whole run."""
    partitions: tuple[Partition, ...]
    files: tuple[RowGroups, ...]
    """Those of one summary each."""
    before: tuple[tuple[int, ...], ...]
    """By row group and node: how many deliveries come before those in it."""
    profile: dict[str, Any] | None = None
    one_clock: bool = True


class PropertyViolations(msgspec.Struct, frozen=True):
    """The violations of one property in some partitions."""

    breaks: str
    violations: int
    witnesses: tuple[Violation, ...]
    by_node: dict[str, int] = {}


def explain(task: ExplainTask) -> list[PropertyViolations]:
    """Checks each property of the service that can be checked in partitions."""
    batches: list[pa.RecordBatch] = []
    positions: list[list[tuple[int, int]]] = [[] for _ in range(task.nodes)]  # by node: step, position in the whole log
    for file, before in zip(task.files, task.before, strict=True):
        batches.append(_inside(task, file.read(COLUMNS), before, positions))
    membership = [event.as_row() for event in task.membership]
    about_nodes = {column: [row.get(column) for row in membership] for column in COLUMNS}
    parts = [about_nodes, *map(as_lists, batches)]
    logs = logs_of(task.run, task.nodes, parts if task.one_clock else map(without_times, parts))
    service = asked_in(task.service, task.profile)
    if not is_selective(service):
        logs = logs.addressed_to_everybody()
    in_whole_log = [[position for _, position in sorted(rows)] for rows in positions]
    return [
        _counted(promise, logs, in_whole_log)
        for promise in checkable_in_partitions(service, stops=bool(logs.stopped))
        if promise not in LEVEL_SOUNDNESS or task.levels
    ]


def _counted(promise: Property, logs: RunLogs, in_whole_log: Sequence[Sequence[int]]) -> PropertyViolations:
    all_found = Finding()
    kept: list[Violation] = []
    for violation in promise(logs):
        if len(kept) < MOST_WITNESSES:
            kept.append(_positioned(violation, in_whole_log))
        all_found.count(violation)
    return PropertyViolations(promise.__name__, all_found.violations, tuple(kept), dict(all_found.by_node))


def checkable_in_partitions(service: Asked, *, stops: bool) -> list[Property]:
    """The properties that some messages of a run can violate by themselves; `stops`: whether nodes stop in it."""
    if not isinstance(service, Service):
        return [*promised_by(service, uniform=False)]
    of_whole_logs: tuple[Property, ...] = (same_runs, priority_order_kept, delivered_uniformly)
    if stops and service is Service.SEQUENCED:
        of_whole_logs += ORDERS
    return [promise for promise in PROMISES[service] if promise not in of_whole_logs]


def _inside(
    task: ExplainTask, batch: pa.RecordBatch, before: Sequence[int], positions: list[list[tuple[int, int]]]
) -> pa.RecordBatch:
    """The events of a row group about messages in the partitions; appends the position of each delivery in its log."""
    kind = kinds_of(batch.column(EVENT))
    node, step = numbers_with_null(batch.column(NODE)), numbers_with_null(batch.column(STEP))
    source, seq = numbers_with_null(batch.column(SOURCE)), numbers_with_null(batch.column(SEQ))
    inside = np.zeros(kind.size, np.bool_)
    for partition in task.partitions:
        inside |= partition.contains(source, seq)
    inside &= kind < FIRST_MEMBERSHIP
    is_delivery = kind == CODES[EventKind.DELIVER]
    for at in range(task.nodes):
        (mine,) = np.nonzero(is_delivery & (node == at))
        (chosen,) = np.nonzero(inside[mine])
        positions[at] += zip(step[mine[chosen]].tolist(), (chosen + before[at]).tolist(), strict=True)
    return batch.filter(pa.array(inside))


def _positioned(violation: Violation, in_whole_log: Sequence[Sequence[int]]) -> Violation:
    """A violation with positions as they are in the whole logs."""
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
    if violation.breaks in _TWICE and len(places) == 2:  # the sentence has the positions too
        whole = delivered_twice(violation.nodes[0], violation.messages[0], (places[0], places[1]))
        return replace(whole, breaks=violation.breaks)
    return replace(violation, places=places)
