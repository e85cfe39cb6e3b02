"""Audits a run that is too long for one task, partition by partition (see `partition_audit` and `cut_points`).

The run passes if each partition does, if together they contain every event of the run, and if they come one after the
other: at each node the deliveries of one partition before those of the next. Then a cycle cannot leave a partition, and
the numbers of each source increase from partition to partition as within them. None of this relies on the cut points.

**Nodes that stop, and views.** Each partition is audited with all membership events of the run. Whether something is
missing is a question about each message by itself, and what a node knew at a step depends on its views alone; so both
can be checked by partition. A sequencer's nodes that go on have, if their partitions pass, one log; the log of a
stopped node is compared with it up to where it departs, which adds nothing to the order. If the run is uniform it must
not depart at all: in each partition its log is a prefix of the others', and after a partition of which it misses
something it has nothing.

**Priorities.** Under PriTO a message may be overtaken by any number of later ones, so that hardly any cut point is
closed. There partitions need not be closed: they show whether everything was delivered once to everybody, and their
steps whether each sender's messages of one priority are in order. That there is one order is found by comparing the
logs position by position (`log_comparison`): equal logs have equal priority runs.

A partition that does not pass is searched by the reference audit, together with neighbours that it overlaps. What that
finds is a violation of the run; how many are counted in the searched partitions only, and the verdict says so.

Runs that cannot be audited in partitions fall back to a single-task audit: see `NotPartitionableError`.
"""

from collections.abc import Callable
from enum import Enum

from ordercast.audit.completeness import PARTS, complete
from ordercast.audit.order import no_cycle, same_order
from ordercast.audit.profiles import Asked, as_profiled
from ordercast.audit.records import UNRECORDED
from ordercast.audit.verdict import Verdict
from ordercast.audit.violations import Message
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.cut_points import cut_points
from ordercast.pipeline.audit.partitioned.log_comparison import Comparison
from ordercast.pipeline.audit.partitioned.long_run import LongRun, NotPartitionableError, UnsortedError
from ordercast.pipeline.audit.partitioned.partition_audit import Partition
from ordercast.pipeline.audit.partitioned.partition_results import PartitionResults
from ordercast.pipeline.audit.partitioned.tasks import RunTasks, TaskKind, answer_of
from ordercast.pipeline.audit.plan import AuditTask
from ordercast.trace.schema import ABORTED, RUN

PARTITIONED_ABOVE = 3_000_000
"""Runs with more events are audited in partitions."""
PARTITIONED_ABOVE_FILES = 256
"""Runs in more files, too: to open them takes longer than to read them."""
ROWS_OF_A_PARTITION = 600_000
"""About how many events a partition has."""
_OF_MESSAGES = {complete.__name__, *(part.__name__ for part in PARTS)}
_MOST_SEARCHED = 6  # groups of partitions that do not pass


class SortedBy(Enum):
    """In which order the events of a run are copied."""

    TIME = "time"
    STEP = "steps"
    """Whatever times are: of clocks that differ, or not those of the events."""


Sort = Callable[[AuditTask, SortedBy], AuditTask]
"""Copies the events of a run, in this order: the run with the files that hold the copy."""
Note = Callable[[str], None]
"""Called with a sentence where a run is audited in an unusual way."""


def is_long(task: AuditTask) -> bool:
    """Whether a run is audited in partitions, as far as that can be."""
    return task.rows > PARTITIONED_ABOVE or len(task.locations) > PARTITIONED_ABOVE_FILES


def audit_partitioned(
    task: AuditTask, service: Asked, run_tasks: RunTasks, note: Note, sort: Sort | None = None
) -> Verdict | None:
    """The verdict on a long run; None, with a note, if it has to fall back to a single-task audit.

    By a profile it is found in partitions only if the run has all that the service promises which implies the profile.
    `sort`: makes a copy with the events in the order of time, if they are not.
    """
    if isinstance(service, Service) or service.judged_in_parts:
        return _by_service(task, service, run_tasks, note, sort)
    stronger = service.implied_by
    if stronger is not None:
        found = _by_service(task, stronger, run_tasks, note, sort)
        if found is None or found.holds:
            return found and as_profiled(found, service, stronger)
    note(
        f"run {task.row[RUN]}: falling back to a single-task audit: "
        f"by the profile {service.name} it is judged as a whole"
    )
    return None


def _by_service(
    task: AuditTask, service: Asked, run_tasks: RunTasks, note: Note, sort: Sort | None = None
) -> Verdict | None:
    try:
        run = _indexed(task, service, run_tasks, note, sort)
        _require_partitionable(run)
        return _with_views(run, _audited(run, note))
    except NotPartitionableError as reason:
        note(f"run {task.row[RUN]}: falling back to a single-task audit: {reason}")
        return None


def _indexed(task: AuditTask, service: Asked, run_tasks: RunTasks, note: Note, sort: Sort | None) -> LongRun:
    """The index of a run, whose events are sorted first if they have to be."""
    for order in SortedBy if sort is not None else ():
        try:
            return LongRun.indexed(task, service, run_tasks)
        except UnsortedError:
            assert sort is not None
            note(f"run {task.row[RUN]}: its events are not in the order of {order.value}, and are sorted first")
            task = sort(task, order)
    return LongRun.indexed(task, service, run_tasks)


def _require_partitionable(run: LongRun) -> None:
    """Raises for runs whose partitions do not determine the verdict on the whole."""
    if run.row.get(UNRECORDED):
        raise NotPartitionableError("some of its members left no complete record")
    if run.levels and not run.one_clock:
        raise NotPartitionableError("it recorded levels, and the clocks of its members differ")
    if not isinstance(run.asked, Service) and (run.membership or run.levels):
        raise NotPartitionableError(
            f"by the profile {run.asked.name} nodes that stop, and levels, are judged as a whole"
        )
    if run.row[ABORTED] and not run.stopped:
        raise NotPartitionableError("the group was aborted, and the trace does not say by whom")
    if not run.views_agree():
        raise NotPartitionableError("its views contradict each other, and are audited as a whole")
    if run.records_urgency():
        raise NotPartitionableError("what waited for something more urgent has to be compared as a whole")
    if run.service is Service.PRIORITY:
        raise NotPartitionableError("its priority runs have to be compared as a whole")
    if run.stopped and run.service is Service.PRIORITY_TOTAL:
        raise NotPartitionableError("nodes stop in it, possibly in the middle of a priority run")
    if len(run.stopped) == run.nodes and run.service is Service.SEQUENCED:
        raise NotPartitionableError("all nodes stop in it")


def _with_views(run: LongRun, verdict: Verdict) -> Verdict:
    """The same verdict; if something is violated where views have numbers, partitions do not show all that is."""
    if run.views_numbered and not verdict.holds:
        raise NotPartitionableError("something is violated, and views are audited as a whole")
    return verdict


def _audited(run: LongRun, note: Note) -> Verdict:
    by_position = run.asked is Service.PRIORITY_TOTAL
    closed = bool({same_order, no_cycle} & run.promises) and not by_position
    points = cut_points(run.index, max(1, run.rows // ROWS_OF_A_PARTITION), run.close_cuts if closed else None)
    partitions = PartitionResults(run, points, closed=closed)
    while (overlap := partitions.audit()) is not None and partitions.all_passed():
        if not partitions.merge(overlap):
            found = run.explain([partitions.partition(overlap[0]), partitions.partition(overlap[-1])])
            if not any(one.violations for one in found):
                raise NotPartitionableError("its order has no closed cut points")
            _note_searched(run, note, 2, len(partitions.cut_points), "partitions")
            return run.verdict([found], lambda _: False)
    if not partitions.contain_everything():
        raise NotPartitionableError("its messages are not numbered in the order in which they were sent")
    suspects, overlap_found = partitions.suspects()
    searched = [run.explain([partitions.partition(number) for number in group]) for group in suspects[:_MOST_SEARCHED]]
    if not suspects and by_position and (differing := _first_difference(run)):
        searched = [run.explain([_only(run, message) for message in differing])]
        suspects = [[0]]
        overlap_found = True
    if suspects and not any(one.violations for found in searched for one in found):
        raise NotPartitionableError("no partition by itself shows what is violated")
    if not suspects and run.uniform and run.stopped and partitions.stopped_node_skips():
        raise NotPartitionableError("a stopped node delivered something after a message that it misses")
    if len(suspects) > _MOST_SEARCHED:
        _note_searched(run, note, _MOST_SEARCHED, len(suspects), "partitions that do not pass")
        return run.verdict(searched, lambda _: False)
    # What is missing or surplus shows in its own partition; orders only if partitions come one after the other.
    return run.verdict(searched, lambda name: not (overlap_found or by_position) or name in _OF_MESSAGES)


def _note_searched(run: LongRun, note: Note, searched: int, of: int, what: str) -> None:
    note(f"run {run.row[RUN]}: searched {searched} of {of} {what}; violations are counted in these")


def _first_difference(run: LongRun) -> tuple[Message, ...]:
    """The messages that nodes delivered at the first position where they differ; all logs have the same length."""
    length = run.deliveries // run.nodes
    size = max(1, ROWS_OF_A_PARTITION // run.nodes)
    tasks = [run.comparison_task(start, min(start + size, length)) for start in range(0, length, size)]
    for answer in run.run_tasks(TaskKind.COMPARE, tasks):
        comparison = answer_of(answer, Comparison)
        if comparison.differing:
            return comparison.differing
    return ()


def _only(run: LongRun, message: Message) -> Partition:
    """The partition of one message alone."""
    source, seq = message
    numbers = [seq if node == source else 0 for node in range(run.nodes)]
    return Partition(tuple(numbers), tuple(number + (node == source) for node, number in enumerate(numbers)))
