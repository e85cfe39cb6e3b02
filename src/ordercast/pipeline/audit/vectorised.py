"""Audits folders by array operations in this process; memory holds one run, or a partition of a long one."""

from collections.abc import Sequence

from ordercast.audit.profiles import Asked
from ordercast.audit.records import incomplete_records
from ordercast.audit.run_rows import service_of
from ordercast.audit.verdict import Verdict
from ordercast.pipeline.audit.partitioned.audit import Note, audit_partitioned, is_long
from ordercast.pipeline.audit.partitioned.tasks import run_in_process
from ordercast.pipeline.audit.plan import AuditTask, EventReader, TraceFiles, audit_tasks, read_with_details
from ordercast.pipeline.audit.run import audit_run
from ordercast.trace.storage import Location


def audit_vectorised(
    folders: Sequence[Location] | TraceFiles, service: Asked | None = None, *, note: Note | None = None
) -> Verdict:
    """The verdict of `ordercast.audit.audit`, found faster.

    Raises `TraceError` if a folder holds no complete trace.
    """
    tasks = audit_tasks(folders)
    verdict = Verdict(incomplete_records=incomplete_records(task.row for task in tasks))
    reader = EventReader()
    for task in tasks:
        verdict.add(_audited(task, service or service_of(task.row), reader, note or (lambda _: None)))
    return verdict


def _audited(task: AuditTask, service: Asked, reader: EventReader, note: Note) -> Verdict:
    found = audit_partitioned(task, service, run_in_process, note) if is_long(task) else None
    return found or audit_run(task.row, reader.read(task), service, with_details=lambda: read_with_details(task))
