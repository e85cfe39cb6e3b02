"""Verdicts as tables: one row for each run and property; and back to one verdict over all runs."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ordercast.audit.verdict import MOST_WITNESSES, Finding, Verdict, Witness
from ordercast.audit.violations import Violation
from ordercast.model.errors import TraceError

NUMBER, RUN, PROPERTY, RECORDED, HOLDS = "number", "run", "property", "recorded", "holds"
VIOLATIONS, AT_LEAST, DELIVERIES = "violations", "at_least", "deliveries"
WITNESSES, EXCUSED, ERROR = "witnesses", "excused", "error"
SENTENCE, MESSAGES, NODES, PLACES = "sentence", "messages", "nodes", "places"

_MESSAGE = pa.struct([pa.field("source", pa.int32()), pa.field("seq", pa.int64())])
_WITNESS = pa.struct(
    [
        pa.field(SENTENCE, pa.string()),
        pa.field(MESSAGES, pa.list_(_MESSAGE)),
        pa.field(NODES, pa.list_(pa.int32())),
        pa.field(PLACES, pa.list_(pa.int64())),
    ]
)
VERDICTS = pa.schema(
    [
        pa.field(NUMBER, pa.int64()),  # position of the run in the verdict
        pa.field(RUN, pa.string(), nullable=False),
        pa.field(PROPERTY, pa.string()),  # null if there is an error
        pa.field(RECORDED, pa.bool_()),  # false: the run did not record enough to check the property
        pa.field(HOLDS, pa.bool_()),  # null if it was not recorded
        pa.field(VIOLATIONS, pa.int64()),
        pa.field(AT_LEAST, pa.bool_()),  # true: counted in some partitions of a long run only
        pa.field(DELIVERIES, pa.int64()),
        pa.field(WITNESSES, pa.list_(_WITNESS)),  # the first few
        pa.field(EXCUSED, pa.string()),  # who need not have everything, and why; null if nobody
        pa.field(ERROR, pa.string()),  # why the run cannot be audited
    ]
)


def rows_of(number: int, run: str, verdict: Verdict) -> Iterator[dict[str, Any]]:
    """The rows of one run's verdict."""
    excused = verdict.excused[0].removeprefix(f"run {run}: ") if verdict.excused else None
    common = {NUMBER: number, RUN: run, DELIVERIES: verdict.deliveries, EXCUSED: excused, ERROR: None}
    for name, finding in verdict.findings.items():
        witnesses = [_as_row(witness.violation) for witness in finding.witnesses]
        result = {
            HOLDS: finding.holds,
            VIOLATIONS: finding.violations,
            AT_LEAST: finding.at_least,
            WITNESSES: witnesses,
        }
        yield {**common, PROPERTY: name, RECORDED: True, **result}
    for name in verdict.not_recorded:
        yield {**common, PROPERTY: name, RECORDED: False, HOLDS: None, WITNESSES: []}


def row_of_error(number: int, run: str, error: TraceError) -> dict[str, Any]:
    """The row of a run that cannot be audited."""
    return {NUMBER: number, RUN: run, HOLDS: False, WITNESSES: [], ERROR: str(error)}


def row_of_failure(number: int, run: str, error: str) -> dict[str, Any]:
    """The row of a failed run, which has no events."""
    return {NUMBER: number, RUN: run, WITNESSES: [], ERROR: f"the run failed: {error}"}


def _as_row(violation: Violation) -> dict[str, Any]:
    messages = [{"source": source, "seq": seq} for source, seq in violation.messages]
    return {
        SENTENCE: violation.sentence,
        MESSAGES: messages,
        NODES: list(violation.nodes),
        PLACES: list(violation.places),
    }


def verdict_of(rows: Iterable[dict[str, Any]]) -> Verdict:
    """The verdict over all runs, from their rows in any order.

    Raises `TraceError` if a run cannot be audited: for the first one, as the reference audit would.
    """
    verdict = Verdict()
    known: set[int] = set()
    for row in sorted(rows, key=lambda row: int(row[NUMBER])):  # a stable sort: properties stay in their order
        if row[ERROR] is not None:
            raise TraceError(row[ERROR])
        if row[NUMBER] not in known:
            known.add(row[NUMBER])
            verdict.runs += 1
            verdict.deliveries += row[DELIVERIES]
            verdict.excuse(row[RUN], row[EXCUSED] or "")
        if not row[RECORDED]:
            verdict.not_recorded[row[PROPERTY]] += 1
            continue
        finding = verdict.findings.setdefault(row[PROPERTY], Finding())
        finding.runs += 1
        finding.violations += row[VIOLATIONS]
        finding.at_least |= row[AT_LEAST]
        room = MOST_WITNESSES - len(finding.witnesses)
        finding.witnesses += [Witness(row[RUN], _violation(row[PROPERTY], result)) for result in row[WITNESSES][:room]]
    return verdict


def _violation(breaks: str, row: dict[str, Any]) -> Violation:
    messages = tuple((message["source"], message["seq"]) for message in row[MESSAGES])
    return Violation(breaks, row[SENTENCE], messages, tuple(row[NODES]), tuple(row[PLACES]))
