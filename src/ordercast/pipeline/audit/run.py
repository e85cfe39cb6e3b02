"""Judges one run: by the kernel if that acquits it, else by the reference audit. There is no Spark in here."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from ordercast.audit.judge import MOST_WITNESSES, Finding, Verdict, is_uniform, judge_run, service_of, uncounted
from ordercast.audit.logs import COLUMNS, KINDS
from ordercast.audit.records import UNSEEN
from ordercast.audit.services import TRUTHS, Property, promised
from ordercast.model.services import Service
from ordercast.pipeline.audit.kernel.checks import acquits
from ordercast.pipeline.audit.kernel.columns import RunColumns, StrangeError, columns_of
from ordercast.pipeline.audit.memory import BY_REFERENCE, require_room
from ordercast.trace.reader import EventColumns, RunRow
from ordercast.trace.schema import ABORTED, EVENT, NODES, RUN, EventKind


def judge_batches(row: RunRow, batches: Sequence[pa.RecordBatch], service: Service | None = None) -> Verdict:
    """What is found of one run, given all of its events.

    Raises `TraceError` if they contradict themselves, or do not fit into memory.
    """
    asked = service or service_of(row)
    verdict = Verdict()
    try:
        run = columns_of(row[NODES], batches)
    except StrangeError:
        pass
    else:
        if not row.get(UNSEEN) and acquitted(row, run, asked):
            _add_good(run, promised(asked, uniform=is_uniform(row)), verdict)
            return verdict
    require_room(row[RUN], sum(batch.num_rows for batch in batches), BY_REFERENCE)
    judge_run(row, map(as_lists, batches), asked, verdict)
    return verdict


def acquitted(row: RunRow, run: RunColumns, service: Service) -> bool:
    """Whether the kernel finds that a run keeps all that the service promises."""
    sends, deliveries = run.sends.seq.size, run.happened[EventKind.DELIVER].node.size
    return acquits(_as_recorded(row, run), service, uniform=is_uniform(row)) and not uncounted(row, sends, deliveries)


def as_lists(batch: pa.RecordBatch) -> EventColumns:
    """The events of a batch as the reference audit takes them."""
    kinds = [event in KINDS for event in batch.column(EVENT).to_pylist()]
    batch = batch.select(COLUMNS).filter(pa.array(kinds, pa.bool_()))
    return {column: batch.column(column).to_pylist() for column in COLUMNS}


def _as_recorded(row: RunRow, run: RunColumns) -> RunColumns:
    if row[ABORTED] and not run.stopped:
        # A narrow recording tells that the group was given up, but not by whom.
        return replace(run, stopped=frozenset(range(run.nodes)))
    return run


def _add_good(run: RunColumns, promises: Sequence[Property], verdict: Verdict) -> None:
    """What the reference would add of a run in which everything holds."""
    verdict.runs += 1
    verdict.deliveries += int(run.happened[EventKind.DELIVER].node.size)
    for promise in promises:
        if promise in TRUTHS and not run.levels_recorded:
            verdict.not_recorded[promise.__name__] += 1
        else:
            verdict.findings.setdefault(promise.__name__, Finding()).runs += 1


def add_verdict(total: Verdict, other: Verdict) -> None:
    """Adds what was found of a run to what was found of those before it."""
    total.runs += other.runs
    total.deliveries += other.deliveries
    total.not_recorded.update(other.not_recorded)
    for name, finding in other.findings.items():
        known = total.findings.setdefault(name, Finding())
        known.runs += finding.runs
        known.violations += finding.violations
        known.at_least |= finding.at_least
        known.witnesses += finding.witnesses[: MOST_WITNESSES - len(known.witnesses)]
