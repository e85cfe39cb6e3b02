"""Audits one run whose events are in memory: vectorised if it passes, otherwise by the reference audit."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from ordercast.audit.excused import excused_by_abort
from ordercast.audit.logs import ALL_COLUMNS, KINDS
from ordercast.audit.profiles import Asked, Profile, completeness_of, promised_by
from ordercast.audit.records import UNRECORDED, has_one_clock
from ordercast.audit.reference import check_run
from ordercast.audit.run_rows import delivers_stable, is_uniform, missing_by_counters, service_of
from ordercast.audit.services import LEVEL_SOUNDNESS, Property
from ordercast.audit.shrinking_views import disagreements, minorities
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.verdict import Finding, Verdict
from ordercast.audit.virtual_synchrony import acknowledged_stays, kept
from ordercast.pipeline.audit.kernel.checks import passes
from ordercast.pipeline.audit.kernel.columns import NotVectorisableError, RunColumns, columns_of, excused_in
from ordercast.pipeline.audit.kernel.profiles import profile_passes
from ordercast.pipeline.audit.memory import BY_REFERENCE, require_memory
from ordercast.trace.reader import EventColumns, RunRow
from ordercast.trace.schema import ABORTED, COMPLETE, EVENT, NODES, RUN, EventKind


def audit_run(
    row: RunRow,
    batches: Sequence[pa.RecordBatch],
    service: Asked | None = None,
    *,
    with_details: Callable[[], Sequence[pa.RecordBatch]] | None = None,
    sharing: int = 1,
) -> Verdict:
    """The verdict on one run, given its row of `runs` and all of its events; the same as the reference audit's.

    `with_details`: reads the events again with `detail`, which the batches may lack; the reference audit needs it if
    members join. `sharing`: how many such audits may use the memory of this machine at the same time.
    Raises `TraceError` if the events are inconsistent or do not fit into memory.
    """
    asked = service or service_of(row)
    verdict = Verdict()
    try:
        run = columns_of(row[NODES], batches)
    except NotVectorisableError:
        batches = with_details() if with_details else batches
    else:
        has_logs = bool(run.events[EventKind.DURABLE].node.size)
        if not row.get(UNRECORDED) and run_passes(row, run, asked):
            promises = promised_by(
                asked,
                uniform=is_uniform(row),
                views=run.views_numbered,
                shrinking=bool(run.views),
                logs=has_logs,
            )
            _add_passed(row, run, promises, verdict)
            return verdict
        if (
            priority_order_kept in promised_by(asked, uniform=False) and with_details
        ):  # markers are known by their details
            batches = with_details()
    require_memory(row[RUN], sum(batch.num_rows for batch in batches), BY_REFERENCE, sharing=sharing)
    check_run(row, map(as_lists, batches), asked, verdict)
    return verdict


def run_passes(row: RunRow, run: RunColumns, service: Asked) -> bool:
    """True if the vectorised audit finds that a run has every property of the service, and agrees with its counters."""
    run = replace(_with_abort(row, run), delivers_stable=delivers_stable(row))
    if (run.views_numbered and row[ABORTED]) or not _views_agree(row, run):
        return False
    sends, deliveries = run.sends.seq.size, run.events[EventKind.DELIVER].node.size
    if isinstance(service, Profile):
        differs = completeness_of(service) in service.on and missing_by_counters(row, sends, deliveries)
        return not differs and profile_passes(run, service, one_clock=has_one_clock(row))
    return passes(run, service, uniform=is_uniform(row), one_clock=has_one_clock(row)) and not missing_by_counters(
        row, sends, deliveries
    )


def _views_agree(row: RunRow, run: RunColumns) -> bool:
    """True if the views of a run are as they should be, where they have no numbers."""
    views = {node: [mask for _, mask in mine] for node, mine in run.views.items()}
    wrong = disagreements(views, run.stopped, ended=bool(row.get(COMPLETE, True)))
    return next(wrong, None) is None and next(minorities(run.nodes, views), None) is None


def as_lists(batch: pa.RecordBatch) -> EventColumns:
    """The events of a batch in the form that the reference audit reads."""
    kinds = [event in KINDS for event in batch.column(EVENT).to_pylist()]
    columns = [column for column in ALL_COLUMNS if column in batch.schema.names]
    batch = batch.select(columns).filter(pa.array(kinds, pa.bool_()))
    return {column: batch.column(column).to_pylist() for column in columns}


def _with_abort(row: RunRow, run: RunColumns) -> RunColumns:
    if row[ABORTED] and not run.stopped:
        # A recording of deliveries only shows that the group was aborted, but not which node did.
        return replace(run, stopped=frozenset(range(run.nodes)))
    return run


def _add_passed(row: RunRow, run: RunColumns, promises: Sequence[Property], verdict: Verdict) -> None:
    """Adds what the reference audit would add for a run without violations."""
    verdict.runs += 1
    verdict.excuse(row[RUN], excused_in(run.nodes, run))
    if row[ABORTED] and not run.stopped:
        verdict.excuse(row[RUN], excused_by_abort())
    verdict.deliveries += int(run.events[EventKind.DELIVER].node.size)
    for promise in promises:
        about_levels = promise in LEVEL_SOUNDNESS or promise in {acknowledged_stays, priority_order_kept}
        recorded = run.levels_recorded if about_levels else True
        if promise is priority_order_kept:
            recorded = recorded and run.transmissions_recorded
        if promise is kept:
            recorded = bool(row.get(COMPLETE, True))
        if not recorded:
            verdict.not_recorded[promise.__name__] += 1
        else:
            verdict.findings.setdefault(promise.__name__, Finding()).runs += 1
