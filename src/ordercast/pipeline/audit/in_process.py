"""Audits folders in this process, by the kernel: what small and middling traces need. There is no Spark in here."""

from collections.abc import Sequence
from pathlib import Path

from ordercast.audit.judge import Verdict, service_of
from ordercast.audit.records import told_of_records
from ordercast.model.services import Service
from ordercast.pipeline.audit.partitioned.audit import LONG, Note, here, judge_long
from ordercast.pipeline.audit.plan import Docket, GroupReader, dockets_of
from ordercast.pipeline.audit.run import add_verdict, judge_batches


def audit_in_process(folders: Sequence[Path], service: Service | None, note: Note) -> Verdict:
    """What `ordercast.audit.audit` finds of some folders, found sooner; memory holds one run, or a part of a long one.

    Raises `TraceError` for what is no trace, or not a whole one.
    """
    dockets = dockets_of(folders)
    verdict = Verdict(not_whole=told_of_records(docket.row for docket in dockets))
    reader = GroupReader()
    for docket in dockets:
        add_verdict(verdict, _judged(docket, service or service_of(docket.row), reader, note))
    return verdict


def _judged(docket: Docket, service: Service, reader: GroupReader, note: Note) -> Verdict:
    found = judge_long(docket, service, here, note) if docket.rows > LONG else None
    return found or judge_batches(docket.row, reader.whole(docket), service)
