"""Judges traces: holds each run against the promises of its service."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from ordercast.audit.completeness import complete
from ordercast.audit.logs import COLUMNS, KINDS, RunLogs, logs_of
from ordercast.audit.records import UNSEEN, has_one_clock, told_of_records, unseen_by, with_unseen
from ordercast.audit.services import BY_PRIORITY, ORDERS, TRUTHS, Property, promised
from ordercast.audit.views import without_tails
from ordercast.audit.violations import Violation
from ordercast.model.config import Rules
from ordercast.model.errors import TraceError
from ordercast.model.services import SELECTIVE, Service
from ordercast.trace.reader import EventColumns, RunRow, read_events_by_run, read_runs
from ordercast.trace.schema import ABORTED, CONFIG, ERROR, NODE, NODES, PROTOCOL, RUN, TIME

MOST_WITNESSES = 10
"""Witnesses that are kept for each property; violations are all counted."""
_MOST_NODES = 1 << 16  # each has logs of its own, whether anything happened at it or not


@dataclass(frozen=True)
class Witness:
    """A violation, and the run that it was found in."""

    run: str
    violation: Violation


@dataclass
class Finding:
    """What was found about one property, over all runs that promise it and recorded what it is about."""

    runs: int = 0
    """Runs that were held against it."""
    violations: int = 0
    witnesses: list[Witness] = field(default_factory=list)
    """The first few."""
    at_least: bool = False
    """Whether some run was not looked into everywhere: there may be more, or some where none were found."""

    @property
    def holds(self) -> bool:
        """Whether no run broke it."""
        return not self.violations


@dataclass
class Verdict:
    """What an audit found."""

    runs: int = 0
    deliveries: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    """By the name of the property."""
    not_recorded: Counter[str] = field(default_factory=Counter)
    """Properties that some runs promise but recorded too little to be held against: in how many runs."""
    not_whole: list[str] = field(default_factory=list)
    """Of runs that several members recorded: whose record lacks, or ends early, in a sentence for each run."""

    @property
    def holds(self) -> bool:
        """Whether no run broke a promise."""
        return all(finding.holds for finding in self.findings.values())

    def as_document(self) -> dict[str, object]:
        """For JSON."""
        return {
            "holds": self.holds,
            "runs": self.runs,
            "deliveries": self.deliveries,
            "properties": {
                name: {
                    "holds": finding.holds,
                    "violations": finding.violations,
                    "witnesses": [
                        {"run": witness.run, **witness.violation.as_document()} for witness in finding.witnesses
                    ],
                    "runs": finding.runs,
                    "counts": "at least" if finding.at_least else "exact",
                }
                for name, finding in self.findings.items()
            },
            "not_recorded": dict(self.not_recorded),
            **({"not_whole": self.not_whole} if self.not_whole else {}),
        }


def audit(folders: Sequence[Path], service: Service | None = None) -> Verdict:
    """Holds all runs of some folders against their services, or against the one given.

    Raises `TraceError` for what is no trace, or not a whole one.
    """
    runs = runs_by_name(read_runs(folders))
    verdict = Verdict(not_whole=told_of_records(runs.values()))
    for name, parts in read_events_by_run(folders, COLUMNS, KINDS):
        if name not in runs:
            raise TraceError(
                f"there are events of run {name} but no row in runs/: the trace is not whole; run it again"
            )
        judge_run(runs.pop(name), parts, service, verdict)
    for row in runs.values():
        if row[ERROR] is None:  # else it came to nothing, and there is nothing to judge
            require_silence(row)
            judge_run(row, (), service, verdict)
    return verdict


def judge_run(row: RunRow, parts: Iterable[EventColumns], service: Service | None, verdict: Verdict) -> None:
    """Holds one run against the promises of its service, or of the one given, and adds what it finds to a verdict."""
    logs = logs_of(row[RUN], row[NODES], parts if has_one_clock(row) else map(_without_times, parts))
    if row[ABORTED] and not logs.stopped:
        # A narrow recording tells that the group was given up, but not by whom.
        logs = replace(logs, stopped=frozenset(range(logs.nodes)))
    asked = service or service_of(row)
    logs = replace(with_unseen(logs, row.get(UNSEEN, 0), selective=asked in SELECTIVE), uniform=is_uniform(row))
    before = verdict.findings[complete.__name__].violations if complete.__name__ in verdict.findings else 0
    judge(logs, asked, verdict)
    if verdict.findings[complete.__name__].violations == before:
        sends = len(logs.sent) + len(logs.numbered_twice)
        add_uncounted(row, sends, sum(len(log) for log in logs.delivered), verdict)


def uncounted(row: RunRow, sends: int, deliveries: int) -> str:
    """What the record of a run lacks by the run's own counters, in words; nothing if they agree, or were not kept.

    The counters of a member of a live group are about that member alone, and are not asked.
    """
    if row.get(NODE) is not None:
        return ""
    told = [
        f"the run counted {row[counter]:,} {what}, and its record has {found:,}"
        for counter, what, found in (("sent", "messages sent", sends), ("delivered", "deliveries", deliveries))
        if row.get(counter) is not None and row[counter] != found
    ]
    return "; ".join(told)


def add_uncounted(row: RunRow, sends: int, deliveries: int, verdict: Verdict) -> None:
    """Adds to a verdict, under `complete`, if a run's record lacks something by the run's own counters.

    Asked if nothing else shows that something is lacking: a message that is taken out with its send and with all its
    deliveries leaves no other trace.
    """
    sentence = uncounted(row, sends, deliveries)
    if sentence:
        finding = verdict.findings[complete.__name__]
        finding.violations += 1
        if len(finding.witnesses) < MOST_WITNESSES:
            finding.witnesses.append(Witness(row[RUN], Violation(complete.__name__, sentence)))


def _without_times(part: EventColumns) -> EventColumns:
    """Where clocks differ, all is taken to have happened at one instant: causes must have happened, at any time."""
    return {**part, TIME: [0] * len(part[TIME])}


def judge(logs: RunLogs, service: Service, verdict: Verdict) -> None:
    """Holds one run against the promises of a service, and adds what it finds to a verdict."""
    if service not in SELECTIVE:
        logs = logs.addressed_to_everybody()
    verdict.runs += 1
    verdict.deliveries += sum(len(log) for log in logs.delivered)
    levels_recorded = logs.has_levels()
    has_tails = service is Service.SEQUENCED and not logs.uniform
    for promise in promised(service, uniform=logs.uniform):
        if (promise in TRUTHS and not levels_recorded) or (promise in BY_PRIORITY and not logs.priorities_known):
            verdict.not_recorded[promise.__name__] += 1
        else:
            judged = without_tails(logs) if has_tails and promise in ORDERS else logs
            _hold_against(judged, promise, verdict.findings.setdefault(promise.__name__, Finding()))


def _hold_against(logs: RunLogs, promise: Property, finding: Finding) -> None:
    finding.runs += 1
    violations = promise(logs)
    kept = list(islice(violations, MOST_WITNESSES - len(finding.witnesses)))
    finding.witnesses += [Witness(logs.run, violation) for violation in kept]
    finding.violations += len(kept) + sum(1 for _ in violations)


def runs_by_name(rows: Sequence[RunRow]) -> dict[str, RunRow]:
    """One row for each run; members of one group have a row each, which must not contradict each other.

    Runs of a sweep that came to nothing left no events, and are left out: there is nothing to hold against anything.
    """
    runs: dict[str, RunRow] = {}
    for row in rows:
        if row.get(ERROR) is not None:
            continue
        known = runs.setdefault(row[RUN], {**row, UNSEEN: -1})
        for column in (PROTOCOL, NODES):
            if known[column] != row[column]:
                raise TraceError(
                    f"run {row[RUN]} is recorded with {column} {known[column]} and with {row[column]}; "
                    "judge folders of different groups one by one"
                )
        known[ABORTED] = known[ABORTED] or row[ABORTED]
        known["sent"] = max(known["sent"], row["sent"], key=lambda sent: -1 if sent is None else sent)
        known[UNSEEN] &= unseen_by(row)
    if rows and not runs:
        raise TraceError(f"no run came to an end, so there is nothing to judge; the first failed: {rows[0][ERROR]}")
    for row in runs.values():
        if not 1 <= row[NODES] <= _MOST_NODES:
            raise TraceError(f"run {row[RUN]} has {row[NODES]:,} nodes; a group has 1 to {_MOST_NODES:,}")
    return runs


def is_uniform(row: RunRow) -> bool:
    """Whether a run promises uniform delivery: its sequencer waits for others before anything is delivered."""
    try:
        group = json.loads(row[CONFIG] or "{}")["group"]
        return bool(group["rules"] == Rules.SOUND.value and group["sequencer"]["resilience"] >= 1)
    except (KeyError, TypeError, ValueError):  # from elsewhere: it says nothing of the kind
        return False


def service_of(row: RunRow) -> Service:
    """The service that a run promises; `TraceError` if it is none that we know."""
    try:
        return Service(row[PROTOCOL])
    except ValueError:
        known = ", ".join(service.value for service in Service)
        raise TraceError(
            f"run {row[RUN]} is of the protocol {row[PROTOCOL]!r}, whose promises are not known; "
            f"say which service to hold it against: {known}"
        ) from None


def require_silence(row: RunRow) -> None:
    """A run without events must be one in which nothing was sent; otherwise silence would pass for innocence."""
    if row["sent"] != 0:
        raise TraceError(
            f"run {row[RUN]} was recorded without its events: there is nothing to judge; record deliveries"
        )
