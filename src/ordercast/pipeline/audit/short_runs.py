"""A task with some runs, each of which is audited whole: what a worker of any kind does with it."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ordercast.audit.names import names_of_run
from ordercast.audit.profiles import Asked, asked_in, service_and_profile
from ordercast.model.errors import TraceError
from ordercast.pipeline.audit.plan import AuditTask, EventReader, Size, TaskBatch, read_with_details
from ordercast.pipeline.audit.run import audit_run
from ordercast.pipeline.audit.verdict_table import row_of_error, rows_of
from ordercast.trace.schema import RUN

OF_A_TASK = Size(rows=500_000, bytes=200_000_000, files=64)
"""How much one task reads, unless one run is more."""
JUDGE = "judge"


class JudgeTask(msgspec.Struct, frozen=True):
    """Some runs; their numbers are those in the verdict."""

    numbers: tuple[int, ...]
    tasks: tuple[str, ...]
    service: tuple[str, dict[str, Any] | None] | None
    sharing: int


def encoded(batch: TaskBatch, service: Asked | None, sharing: int) -> bytes:
    """A task of a batch, for another process."""
    asked = None if service is None else service_and_profile(service)
    return msgspec.msgpack.encode(JudgeTask(batch.numbers, batch.tasks, asked, sharing))


def judge_batch(task: bytes) -> bytes:
    """The rows of the verdicts on its runs."""
    given = msgspec.msgpack.decode(task, type=JudgeTask)
    service = None if given.service is None else asked_in(*given.service)
    rows = [row for found in verdict_rows(given.numbers, given.tasks, service, given.sharing) for row in found]
    return msgspec.msgpack.encode(rows)


def verdict_rows(
    numbers: Sequence[int], tasks: Sequence[str], service: Asked | None, sharing: int, *, named: bool = False
) -> Iterator[list[dict[str, Any]]]:
    """The rows of each run's verdict; of one that cannot be audited a row with the error.

    `named`: sentences have the names of the nodes, if these have any.
    """
    reader = EventReader(sharing=sharing)
    for number, text in zip(numbers, tasks, strict=True):
        yield _rows(number, msgspec.json.decode(text, type=AuditTask), reader, service, named=named)


def _rows(
    number: int, task: AuditTask, reader: EventReader, service: Asked | None, *, named: bool
) -> list[dict[str, Any]]:
    run = task.row[RUN]
    try:
        events = reader.read(task)
        verdict = audit_run(
            task.row, events, service, with_details=lambda: read_with_details(task), sharing=reader.sharing
        )
        return list(rows_of(number, run, verdict, names_of_run(task.row) if named else None))
    except TraceError as error:
        return [row_of_error(number, run, error)]
