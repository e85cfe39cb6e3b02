"""A long run: the index of its row groups, and the tasks that read parts of it."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np

from ordercast.audit.profiles import Asked, completeness_of, promised_by, service_and_profile
from ordercast.audit.records import has_one_clock
from ordercast.audit.reference import add_missing_by_counters
from ordercast.audit.run_rows import delivers_stable, is_uniform
from ordercast.audit.services import LEVEL_SOUNDNESS, Property
from ordercast.audit.shrinking_views import disagreements, minorities
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.verdict import MOST_WITNESSES, Finding, Verdict, Witness
from ordercast.audit.virtual_synchrony import acknowledged_stays, kept
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.columns import (
    NotVectorisableError,
    Numbers,
    excused_in,
    has_numbered_views,
    membership_of,
)
from ordercast.pipeline.audit.partitioned.cut_points import OpenCut, closing_tasks
from ordercast.pipeline.audit.partitioned.explain import ExplainTask, PropertyViolations, checkable_in_partitions
from ordercast.pipeline.audit.partitioned.log_comparison import ComparisonTask
from ordercast.pipeline.audit.partitioned.partition_audit import Partition, PartitionTask
from ordercast.pipeline.audit.partitioned.row_group_index import RowGroupIndex
from ordercast.pipeline.audit.partitioned.row_group_summary import IndexTask, RowGroupSummary
from ordercast.pipeline.audit.partitioned.row_groups import Ranges, RowGroups
from ordercast.pipeline.audit.partitioned.tasks import RunTasks, TaskKind, answer_of
from ordercast.pipeline.audit.plan import AuditTask
from ordercast.trace.schema import COMPLETE, NODES, RUN

ROWS_OF_AN_INDEX_TASK = 1_200_000
"""About how many rows one task summarises,"""
GROUPS_OF_AN_INDEX_TASK = 128
"""but no more row groups."""
MANY_NODES = 256
"""Of so many nodes a summary is so large that row groups are summarised together,"""
_ROWS_FOR_EACH_NODE = 100  # or so many in all


class NotPartitionableError(Exception):
    """A run cannot be audited in partitions; the message says why."""


class UnsortedError(NotPartitionableError):
    """The events of a node are not in the order of its steps in the files."""


class LongRun:
    """A run, and the summaries of its row groups, which are in the order of time."""

    def __init__(
        self,
        task: AuditTask,
        asked: Asked,
        run_tasks: RunTasks,
        found: Sequence[RowGroupSummary],
        files: Sequence[RowGroups],
    ) -> None:
        self.row = task.row
        self.nodes: int = task.row[NODES]
        self.asked = asked
        self.service = asked if isinstance(asked, Service) else asked.service
        self.promises = frozenset(promised_by(asked, uniform=False))
        self.one_clock = has_one_clock(task.row)
        self.uniform = asked is Service.SEQUENCED and is_uniform(task.row)
        self.run_tasks = run_tasks
        self.files = files
        self.levels = any(one.levels for one in found)
        self.receipts = any(one.receipts for one in found)
        self.transmissions = any(one.transmissions for one in found)
        if self.levels and delivers_stable(task.row):
            raise NotPartitionableError("it delivers what is stable, which is audited as a whole")
        if any(one.logs for one in found):
            raise NotPartitionableError("its nodes have durable logs, which are audited as a whole")
        self.membership = tuple(event for one in found for event in one.membership)
        try:
            self.views_numbered = has_numbered_views(self.nodes, [event.as_row() for event in self.membership])
        except NotVectorisableError:
            raise NotPartitionableError("its members change, and views are audited as a whole") from None
        if self.views_numbered:  # all that they say is that the group stayed as it was founded
            self.membership = ()
        membership = membership_of(self.nodes, [event.as_row() for event in self.membership])
        self.stopped = membership.stopped
        self.views = {node: [mask for _, mask in mine] for node, mine in membership.views.items()}
        self.excused = excused_in(self.nodes, membership)
        self.rows = sum(one.rows for one in found)
        self.sends = sum(one.sends for one in found)
        self.index = RowGroupIndex(self.nodes, [one.spans for one in found])
        self._counts = np.array([np.frombuffer(one.deliveries, np.int32) for one in found])
        self.deliveries = int(self._counts.sum(dtype=np.int64))

    @classmethod
    def indexed(cls, task: AuditTask, asked: Asked, run_tasks: RunTasks) -> "LongRun":
        """Builds the index of a run's row groups."""
        nodes = task.row[NODES]
        files, rows = summarised_together(task, _ROWS_FOR_EACH_NODE * nodes if nodes >= MANY_NODES else 0)
        tasks = [IndexTask(nodes, start, tuple(files[start:end])) for start, end in index_tasks(rows)]
        found: list[RowGroupSummary] = []
        for answer in run_tasks(TaskKind.INDEX, [msgspec.msgpack.encode(one) for one in tasks]):
            found += answer_of(answer, list[RowGroupSummary])
        if any(one.unknown_nodes for one in found):
            raise NotPartitionableError("it names nodes that are not in the group")
        if not all(one.in_order for one in found):
            raise UnsortedError("the events of a node are not in the order of its steps in the files")
        found.sort(key=lambda one: (one.begins, one.number))
        if not _in_order([one.steps for one in found]):  # times may be those of other clocks
            found.sort(key=lambda one: one.number)
            if not _in_order([one.steps for one in found]):
                raise UnsortedError("the events of a node are not in the order of its steps in the files")
        return cls(task, asked, run_tasks, found, [files[one.number] for one in found])

    def close_cuts(self, cuts: Sequence[tuple[Numbers, Sequence[int]]]) -> list[Numbers]:
        """Closes cut points, each as far as some row groups tell."""
        given = [OpenCut(point.tobytes(), _by_file([self.files[group] for group in groups])) for point, groups in cuts]
        tasks = [msgspec.msgpack.encode(task) for task in closing_tasks(self.nodes, given)]
        found: list[bytes] = []
        for answer in self.run_tasks(TaskKind.CLOSE, tasks):
            found += answer_of(answer, list[bytes])
        return [np.frombuffer(point, np.int64) for point in found]

    def partition_task(self, number: int, partition: Partition, groups: Sequence[int], *, closed: bool) -> bytes:
        """The task that audits a partition, whose events are in these row groups."""
        service, profile = service_and_profile(self.asked)
        return msgspec.msgpack.encode(
            PartitionTask(
                number=number,
                nodes=self.nodes,
                service=service,
                profile=profile,
                one_clock=self.one_clock,
                levels=self.levels,
                receipts=self.receipts,
                uniform=self.uniform,
                closed=closed,
                membership=self.membership,
                partition=partition,
                files=_by_file([self.files[group] for group in groups]),
            )
        )

    def comparison_task(self, start: int, below: int) -> bytes:
        """The task that compares the logs from one position to below another."""
        first = self._before
        groups = np.flatnonzero(((first < below) & (first + self._counts > start)).any(axis=1)).tolist()
        return msgspec.msgpack.encode(ComparisonTask(self.nodes, start, below, *self._groups(groups)))

    def explain(self, partitions: Sequence[Partition]) -> list[PropertyViolations]:
        """The violations that the reference audit finds in some partitions together."""
        groups = sorted(
            {
                group
                for partition in partitions
                for group in self.index.groups_of(np.array(partition.start), np.array(partition.below))
            }
        )
        service, profile = service_and_profile(self.asked)
        task = ExplainTask(
            self.row[RUN],
            self.nodes,
            service,
            self.levels,
            self.membership,
            tuple(partitions),
            *self._groups(groups),
            profile,
            self.one_clock,
        )
        (answer,) = self.run_tasks(TaskKind.EXPLAIN, [msgspec.msgpack.encode(task)])
        return answer_of(answer, list[PropertyViolations])

    @cached_property
    def _before(self) -> Numbers:
        """By row group and node: how many deliveries come before those in it."""
        below: Numbers = np.cumsum(self._counts, axis=0, dtype=np.int64)
        below -= self._counts
        return below

    def _groups(self, groups: Sequence[int]) -> tuple[tuple[RowGroups, ...], tuple[tuple[int, ...], ...]]:
        """Row groups, and how many deliveries at each node come before those in them."""
        before = tuple(tuple(self._before[group].tolist()) for group in groups)
        return tuple(self.files[group] for group in groups), before

    def verdict(self, explained: Sequence[Sequence[PropertyViolations]], exact: Callable[[str], bool]) -> Verdict:
        """The verdict, given what was found; `exact`: True for properties of which all violations were found."""
        verdict = Verdict(runs=1, deliveries=self.deliveries)
        verdict.excuse(self.row[RUN], self.excused)
        checked = {promise.__name__ for promise in checkable_in_partitions(self.asked, stops=bool(self.stopped))}
        for promise in promised_by(
            self.asked, uniform=self.uniform, views=self.views_numbered, shrinking=bool(self.views)
        ):
            name = promise.__name__
            if not self._is_recorded(promise):
                verdict.not_recorded[name] += 1
                continue
            finding = verdict.findings[name] = Finding(runs=1)
            finding.at_least = bool(explained) and not (exact(name) and name in checked)
            for one in (one for found in explained for one in found if one.breaks == name):
                finding.violations += one.violations
                finding.by_node.update(one.by_node)
                room = MOST_WITNESSES - len(finding.witnesses)
                finding.witnesses += [Witness(self.row[RUN], violation) for violation in one.witnesses[:room]]
        completeness = completeness_of(self.asked)
        if completeness in verdict.findings and verdict.findings[completeness].holds:
            add_missing_by_counters(self.row, self.sends, self.deliveries, verdict, completeness)
        return verdict

    def views_agree(self) -> bool:
        """True if its views are as they should be, where they have no numbers."""
        wrong = disagreements(self.views, self.stopped, ended=bool(self.row.get(COMPLETE, True)))
        return next(wrong, None) is None and next(minorities(self.nodes, self.views), None) is None

    def records_urgency(self) -> bool:
        """True if the run records what `priority_order_kept` is about."""
        return self.levels and self.transmissions and priority_order_kept in self.promises

    def _is_recorded(self, promise: Property) -> bool:
        if promise is priority_order_kept:
            return self.records_urgency()
        if promise in LEVEL_SOUNDNESS or promise is acknowledged_stays:
            return self.levels
        return promise is not kept or bool(self.row.get(COMPLETE, True))


def summarised_together(task: AuditTask, least: int) -> tuple[list[RowGroups], list[int]]:
    """The row groups of a run, neighbours of one file together until they have so many rows; and how many these are."""
    files: list[RowGroups] = []
    rows: list[int] = []
    for location in task.locations:
        run = task.row[RUN] if location.shared else None
        groups, held = list[int](), 0
        for group, more in zip(location.groups, location.rows, strict=True):
            groups.append(group)
            held += more
            if held >= least or group == location.groups[-1]:
                files.append(RowGroups(location.path, location.in_path, tuple(groups), run))
                rows.append(held)
                groups, held = [], 0
    return files, rows


def index_tasks(rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Divides row groups of so many rows into tasks."""
    start = size = 0
    for number, more in enumerate(rows):
        if number > start and (size + more > ROWS_OF_AN_INDEX_TASK or number - start == GROUPS_OF_AN_INDEX_TASK):
            yield start, number
            start, size = number, 0
        size += more
    if rows:
        yield start, len(rows)


def _in_order(steps: Sequence[Ranges]) -> bool:
    """True if at each node steps increase from one row group to the next."""
    latest: Numbers | None = None
    for one in steps:
        lowest, highest = one.tables()
        if latest is not None and np.any(lowest <= latest):
            return False
        latest = highest if latest is None else np.maximum(latest, highest)
    return True


def _by_file(files: Sequence[RowGroups]) -> tuple[RowGroups, ...]:
    """The same row groups, with those of one file together."""
    found: dict[tuple[str, str | None], list[RowGroups]] = {}
    for file in files:
        found.setdefault((file.path, file.run), []).append(file)
    return tuple(
        msgspec.structs.replace(parts[0], groups=tuple(group for part in parts for group in part.groups))
        for parts in found.values()
    )
