"""A partition of a long run, and its audit by one task.

A partition is a set of messages: of each source those whose sequence numbers are in an interval. An event's own name
tells which partition it belongs to, so that partitions need no agreement between nodes. The index of row groups tells
where the events of a partition may be.

A partition is audited as if it were a run. Whether partitions come one after the other at each node is compared
afterwards, by the steps between which the events of each partition lie: see `partition_overlaps`.
"""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.audit.numbering import key_order_kept, numbers_dense
from ordercast.audit.priorities import same_runs
from ordercast.audit.profiles import asked_in, promised_by
from ordercast.audit.services import Property
from ordercast.model.services import SELECTIVE, Service
from ordercast.pipeline.audit.kernel.checks import passes
from ordercast.pipeline.audit.kernel.columns import (
    FIRST_MEMBERSHIP,
    UNKNOWN,
    Flags,
    NotVectorisableError,
    Numbers,
    RunColumns,
    columns_of,
    kinds_of,
    membership_of,
)
from ordercast.pipeline.audit.kernel.profiles import only_first_deliveries, profile_passes
from ordercast.pipeline.audit.partitioned.row_group_summary import MembershipEvent
from ordercast.pipeline.audit.partitioned.row_groups import Ranges, RowGroups, numbers_with_null
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, PRIORITY, SEQ, SOURCE, STEP, TIME, EventKind

_MOST_BY_SOURCE = 32
"""Nodes: of so many, steps by node and source are few enough to be compared in one place."""


class Partition(msgspec.Struct, frozen=True):
    """The messages of each source with sequence numbers from `start` to below `below`; both are by source."""

    start: tuple[int, ...]
    below: tuple[int, ...]

    def contains(self, source: Numbers, seq: Numbers) -> Flags:
        """Whether each of some messages is in the partition."""
        start, below = np.array(self.start), np.array(self.below)
        return (seq >= start[source]) & (seq < below[source])


class PartitionTask(msgspec.Struct, frozen=True):
    """A partition to be audited, and where its events may be."""

    number: int
    nodes: int
    service: str
    """Or the name of a profile."""
    levels: bool
    """True if the run recorded levels anywhere."""
    receipts: bool
    uniform: bool
    closed: bool
    """Nodes deliver all of one partition before the next, or should."""
    membership: tuple[MembershipEvent, ...]
    """Of the whole run."""
    partition: Partition
    files: tuple[RowGroups, ...]
    profile: dict[str, Any] | None = None
    one_clock: bool = True

    def batches(self) -> list[pa.RecordBatch]:
        """The events of the partition."""
        columns = [NODE, STEP, TIME, EVENT, SOURCE, SEQ, DESTINATIONS]
        columns += [PRIORITY] if {same_runs, key_order_kept} & set(self.promises()) else []
        found: list[pa.RecordBatch] = []
        for file in self.files:
            batch = file.read(columns)
            source, seq = numbers_with_null(batch.column(SOURCE)), numbers_with_null(batch.column(SEQ))
            inside = self.partition.contains(source, seq)
            inside &= kinds_of(batch.column(EVENT)) < FIRST_MEMBERSHIP
            found.append(batch if inside.all() else batch.filter(pa.array(inside)))
        return found

    def promises(self) -> tuple[Property, ...]:
        """What the run is asked for."""
        return promised_by(asked_in(self.service, self.profile), uniform=False)


class PartitionResult(msgspec.Struct, frozen=True):
    """What was found about a partition."""

    number: int
    passed: bool
    rows: int
    unaccepted: bytes = b""
    """By node and source: True if the node did not accept all that it should have."""
    sent: Ranges | None = None
    """Steps of the sends, by source."""
    delivered: Ranges | None = None
    """Steps of the deliveries, by node and source; by node in large groups, if the partition is closed."""
    accepted: Ranges | None = None
    """Steps of the acceptances, by node and source."""
    deliveries: bytes = b""
    """How many, by node."""
    numbers: Ranges | None = None
    """Numbers of the sends, by source."""
    by_priority: dict[int, Ranges] = {}
    """By priority: steps of the deliveries, by node and source."""


def audit_partition(task: PartitionTask) -> PartitionResult:
    """Audits a partition as if it were a run."""
    batches = task.batches()
    rows = sum(batch.num_rows for batch in batches)
    try:
        run = columns_of(task.nodes, batches)
    except NotVectorisableError:
        return PartitionResult(task.number, passed=False, rows=rows)
    membership = membership_of(task.nodes, [event.as_row() for event in task.membership])
    run = replace(run, **membership._asdict())
    run = replace(run, levels_recorded=task.levels, receipts_recorded=task.receipts)
    asked = asked_in(task.service, task.profile)
    if isinstance(asked, Service):
        service, passed = asked, passes(run, asked, uniform=task.uniform, one_clock=task.one_clock)
    else:
        service, passed = asked.service, profile_passes(run, asked, one_clock=task.one_clock)
        run = only_first_deliveries(run)
    return PartitionResult(
        number=task.number,
        passed=passed,
        rows=rows,
        unaccepted=_unaccepted(run, service).tobytes() if task.levels else b"",
        sent=Ranges.over(task.nodes, run.sends.source, run.sends.step),
        numbers=Ranges.over(task.nodes, run.sends.source, run.sends.seq) if numbers_dense in task.promises() else None,
        delivered=_delivered(run, by_node=steps_by_node(task.nodes, closed=task.closed)),
        accepted=_steps_of(run, EventKind.ACCEPT),
        deliveries=np.bincount(run.events[EventKind.DELIVER].node, minlength=task.nodes).tobytes(),
        by_priority=_steps_by_priority(run) if same_runs in task.promises() else {},
    )


def steps_by_node(nodes: int, *, closed: bool) -> bool:
    """True if steps of deliveries are not told for each source: of closed partitions of large groups.

    Where a node's deliveries of one partition come before those of the next, so do those of each source.
    """
    return closed and nodes > _MOST_BY_SOURCE


def _delivered(run: RunColumns, *, by_node: bool) -> Ranges:
    rows = run.events[EventKind.DELIVER]
    return Ranges.over(run.nodes, rows.node, rows.step) if by_node else _steps_of(run, EventKind.DELIVER)


def _steps_of(run: RunColumns, kind: EventKind, priority: int | None = None) -> Ranges:
    rows = run.events[kind]
    (known,) = np.nonzero(rows.message != UNKNOWN)
    if priority is not None:
        known = known[run.sends.priority[rows.message[known]] == priority]
    source = run.sends.source[rows.message[known]]
    cell = rows.node[known].astype(np.int32) * run.nodes + source
    return Ranges.over(run.nodes**2, cell, rows.step[known])


def _steps_by_priority(run: RunColumns) -> dict[int, Ranges]:
    priorities: list[int] = np.unique(run.sends.priority).tolist()
    return {priority: _steps_of(run, EventKind.DELIVER, priority) for priority in priorities}


def _unaccepted(run: RunColumns, service: Service) -> Flags:
    rows = run.events[EventKind.ACCEPT]
    known = rows.message != UNKNOWN
    missing = run.sends.addressed.copy() if service in SELECTIVE else np.ones_like(run.sends.addressed)
    missing[rows.node[known], rows.message[known]] = False
    found = np.zeros((run.nodes, run.nodes), np.bool_)
    node, message = np.nonzero(missing)
    found[node, run.sends.source[message]] = True
    return found
