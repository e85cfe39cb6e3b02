"""The reference audit: checks each run of a trace against the properties that its service promises."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ordercast.audit.completeness import complete
from ordercast.audit.excused import excused, excused_by_abort
from ordercast.audit.logs import ALL_COLUMNS, KINDS, RunLogs, logs_of
from ordercast.audit.numbering import key_order_kept
from ordercast.audit.profiles import Asked, Profile, completeness_of, is_selective, promised_by
from ordercast.audit.records import UNRECORDED, has_one_clock, incomplete_records, with_unrecorded
from ordercast.audit.run_rows import (
    delivers_stable,
    is_uniform,
    missing_by_counters,
    require_nothing_sent,
    resilience_of,
    runs_by_name,
    service_of,
)
from ordercast.audit.services import BY_PRIORITY, LEVEL_SOUNDNESS, ORDERS, Property
from ordercast.audit.urgency import priority_order_kept
from ordercast.audit.verdict import MOST_WITNESSES, Finding, Verdict, Witness
from ordercast.audit.views import without_tails
from ordercast.audit.violations import Violation
from ordercast.audit.virtual_synchrony import acknowledged_stays, kept
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.trace.reader import EventColumns, RunRow, read_events_by_run, read_runs
from ordercast.trace.schema import ABORTED, COMPLETE, ERROR, NODES, RUN, TIME
from ordercast.trace.storage import Location


def audit(folders: Sequence[Location], service: Service | Profile | None = None) -> Verdict:
    """Audits all runs of some folders; `service`, or a profile, replaces the one that each run promises.

    This is the reference: it has a Python object for each event. `ordercast.pipeline.audit` gives the same verdict for
    traces of any size. Raises `TraceError` if a folder holds no complete trace.
    """
    runs = runs_by_name(read_runs(folders))
    verdict = Verdict(incomplete_records=incomplete_records(runs.values()))
    for name, parts in read_events_by_run(folders, ALL_COLUMNS, KINDS):
        if name not in runs:
            raise TraceError(f"run {name} has events but no row in runs/: the trace is incomplete; run it again")
        row = runs.pop(name)
        verdict.add_run(row, _verdict_on(row, parts, service))
    for row in runs.values():
        if row[ERROR] is None:  # else the run failed and has no events
            require_nothing_sent(row)
            verdict.add_run(row, _verdict_on(row, (), service))
    return verdict


def _verdict_on(row: RunRow, parts: Iterable[EventColumns], service: Asked | None) -> Verdict:
    verdict = Verdict()
    check_run(row, parts, service, verdict)
    return verdict


def check_run(row: RunRow, parts: Iterable[EventColumns], service: Asked | None, verdict: Verdict) -> None:
    """Checks one run, given its row of `runs` and its events, and adds the result to a verdict."""
    logs = logs_of(row[RUN], row[NODES], parts if has_one_clock(row) else map(without_times, parts))
    views = [] if logs.epochs else [(node, mask) for node, mine in enumerate(logs.views) for _, mask in mine]
    verdict.excuse(row[RUN], excused(logs.nodes, logs.crashed_at, logs.aborted_at, views))
    if row[ABORTED] and not logs.stopped:
        verdict.excuse(row[RUN], excused_by_abort())
        # A recording of deliveries only shows that the group was aborted, but not which node did.
        logs = replace(logs, stopped=frozenset(range(logs.nodes)))
    asked = service or service_of(row)
    logs = replace(
        with_unrecorded(logs, row.get(UNRECORDED, 0), selective=is_selective(asked)), uniform=is_uniform(row)
    )
    logs = replace(logs, ended=bool(row.get(COMPLETE, True)), delivers_stable=delivers_stable(row))
    if logs.epochs is not None:
        logs = replace(logs, resilience=resilience_of(row))
    completeness = completeness_of(asked)
    before = verdict.findings[completeness].violations if completeness in verdict.findings else 0
    check_logs(logs, asked, verdict)
    if completeness in verdict.findings and verdict.findings[completeness].violations == before:
        sends = len(logs.sent) + len(logs.numbered_twice)
        add_missing_by_counters(row, sends, sum(len(log) for log in logs.delivered), verdict, completeness)


def add_missing_by_counters(
    row: RunRow, sends: int, deliveries: int, verdict: Verdict, completeness: str = complete.__name__
) -> None:
    """Adds a violation of completeness if a run's events differ from its own counters.

    Checked if nothing else shows that something is missing: a message that is removed with its send and all its
    deliveries leaves no other trace.
    """
    sentence = missing_by_counters(row, sends, deliveries)
    if sentence:
        finding = verdict.findings[completeness]
        violation = Violation(completeness, sentence)
        finding.count(violation)
        if len(finding.witnesses) < MOST_WITNESSES:
            finding.witnesses.append(Witness(row[RUN], violation))


def without_times(part: EventColumns) -> EventColumns:
    """Where clocks differ, all events get the same time: then only the existence of a cause is checked."""
    return {**part, TIME: [0] * len(part[TIME])}


def check_logs(logs: RunLogs, service: Asked, verdict: Verdict) -> None:
    """Checks the logs of one run against the properties of a service, and adds the result to a verdict."""
    if not is_selective(service):
        logs = logs.addressed_to_everybody()
    verdict.runs += 1
    verdict.deliveries += sum(len(log) for log in logs.delivered)
    views = logs.epochs is not None
    kind = service if isinstance(service, Service) else service.service
    if views:
        logs = replace(logs, service=kind)
    has_tails = kind is Service.SEQUENCED and (views or not logs.uniform)
    shrinking = bool(logs.views) and not views
    promises = promised_by(service, uniform=logs.uniform, views=views, shrinking=shrinking, logs=bool(logs.disks))
    for promise in promises:
        if not _is_recorded(logs, promise):
            verdict.not_recorded[promise.__name__] += 1
        else:
            checked = without_tails(logs) if has_tails and promise in ORDERS else logs
            _check(checked, promise, verdict.findings.setdefault(promise.__name__, Finding()))


def _is_recorded(logs: RunLogs, promise: Property) -> bool:
    """True if the record of a run contains what a property is about."""
    if promise in LEVEL_SOUNDNESS or promise is acknowledged_stays:
        return logs.has_levels()
    if promise in BY_PRIORITY or promise is key_order_kept:
        return logs.priorities_known
    if promise is priority_order_kept:
        return logs.priorities_known and logs.has_levels() and logs.transmissions
    return promise is not kept or logs.ended


def _check(logs: RunLogs, promise: Property, finding: Finding) -> None:
    finding.runs += 1
    room = MOST_WITNESSES - len(finding.witnesses)
    for number, violation in enumerate(promise(logs)):
        if number < room:
            finding.witnesses.append(Witness(logs.run, violation))
        finding.count(violation)
