"""Audits folders by array operations on this machine: in this process, or by a worker for each core if there is much.

Memory holds, in each process, one run, or a partition of a long one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ordercast.audit.profiles import Asked
from ordercast.audit.records import incomplete_records
from ordercast.audit.run_rows import service_of
from ordercast.audit.verdict import Verdict
from ordercast.pipeline.audit.memory import CHECKED_FROM
from ordercast.pipeline.audit.partitioned.audit import Note, audit_partitioned, is_long
from ordercast.pipeline.audit.partitioned.tasks import RunTasks, run_in_process
from ordercast.pipeline.audit.plan import AuditTask, EventReader, TraceFiles, audit_tasks, in_batches, read_with_details
from ordercast.pipeline.audit.run import audit_run
from ordercast.pipeline.audit.short_runs import JUDGE, OF_A_TASK, encoded
from ordercast.pipeline.audit.verdict_table import rows_of, verdict_of
from ordercast.pipeline.audit.workers import Workers, useful_workers, workers
from ordercast.trace.schema import RUN
from ordercast.trace.storage import Location

WORKERS_FROM = 20_000_000
"""Events, which take seven seconds of CPU: a worker takes half a second to start."""
_ROWS_OF_A_WORKER = 5_000_000


def audit_vectorised(
    folders: Sequence[Location] | TraceFiles,
    service: Asked | None = None,
    *,
    note: Note | None = None,
    processes: int | None = None,
) -> Verdict:
    """The verdict of `ordercast.audit.audit`, found faster.

    `processes`: default: one for each core, if there is enough for them to do. Raises `TraceError` if a folder holds no
    complete trace, and `PipelineError` if one of the processes is killed.
    """
    tasks = audit_tasks(folders)
    count = processes or workers_for(sum(task.rows for task in tasks))
    if count == 1:
        verdict = Verdict()
        reader = EventReader()
        for task in tasks:
            verdict.add_run(task.row, _audited(task, service or service_of(task.row), reader, note or (lambda _: None)))
    else:
        with workers(count) as pool:
            verdict = _by_workers(dict(enumerate(tasks)), service, note or (lambda _: None), pool, count)
    return replace(verdict, incomplete_records=incomplete_records(task.row for task in tasks))


def workers_for(rows: int) -> int:
    """How many processes audit so many rows."""
    return 1 if rows < WORKERS_FROM else useful_workers(rows // _ROWS_OF_A_WORKER)


def _by_workers(
    tasks: Mapping[int, AuditTask], service: Asked | None, note: Note, pool: Workers, count: int
) -> Verdict:
    left = dict(tasks)
    rows: list[dict[str, Any]] = []
    run_tasks: RunTasks = pool.run
    for number, task in tasks.items():
        if is_long(task):
            found = audit_partitioned(task, service or service_of(task.row), run_tasks, note)
            if found is not None:
                rows += rows_of(number, task.row[RUN], found)
                del left[number]
    sharing = min(count, sum(task.rows >= CHECKED_FROM for task in left.values()))
    batches = [encoded(batch, service, max(1, sharing)) for batch in in_batches(left, OF_A_TASK)]
    for answer in pool.run(JUDGE, batches):
        rows += msgspec.msgpack.decode(answer)
    return verdict_of(rows, {number: task.row for number, task in tasks.items()})


def _audited(task: AuditTask, service: Asked, reader: EventReader, note: Note) -> Verdict:
    found = audit_partitioned(task, service, run_in_process, note) if is_long(task) else None
    return found or audit_run(task.row, reader.read(task), service, with_details=lambda: read_with_details(task))
