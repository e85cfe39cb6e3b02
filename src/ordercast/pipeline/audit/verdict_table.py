"""Verdicts as tables: one row for each run and property; and back to one verdict over all runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from ordercast.audit.names import Names
from ordercast.audit.verdict import Finding, Verdict, Witness
from ordercast.audit.violations import Violation
from ordercast.model.errors import TraceError
from ordercast.trace.reader import RunRow

NUMBER, RUN, PROPERTY, RECORDED, HOLDS = "number", "run", "property", "recorded", "holds"
VIOLATIONS, AT_LEAST, DELIVERIES = "violations", "at_least", "deliveries"
WITNESSES, EXCUSED, ERROR, BY_NODE = "witnesses", "excused", "error", "by_node"
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
_OF_NODE = pa.struct([pa.field("node", pa.string()), pa.field(VIOLATIONS, pa.int64())])
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
        pa.field(BY_NODE, pa.list_(_OF_NODE)),  # the violations about each node
        pa.field(EXCUSED, pa.string()),  # who need not have everything, and why; null if nobody
        pa.field(ERROR, pa.string()),  # why the run cannot be audited
    ]
)


def rows_of(number: int, run: str, verdict: Verdict, names: Names | None = None) -> Iterator[dict[str, Any]]:
    """The rows of one run's verdict; `names`: for its sentences."""

    def told(sentence: str) -> str:
        return names.put_into(sentence) if names else sentence

    excused = told(verdict.excused[0].removeprefix(f"run {run}: ")) if verdict.excused else None
    common = {NUMBER: number, RUN: run, DELIVERIES: verdict.deliveries, EXCUSED: excused, ERROR: None}
    for name, finding in verdict.findings.items():
        witnesses = [_as_row(witness.violation, told) for witness in finding.witnesses]
        result = {
            HOLDS: finding.holds,
            VIOLATIONS: finding.violations,
            AT_LEAST: finding.at_least,
            WITNESSES: witnesses,
            BY_NODE: [{"node": told(node), VIOLATIONS: count} for node, count in finding.by_node.items()],
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


def _as_row(violation: Violation, told: Callable[[str], str]) -> dict[str, Any]:
    messages = [{"source": source, "seq": seq} for source, seq in violation.messages]
    return {
        SENTENCE: told(violation.sentence),
        MESSAGES: messages,
        NODES: list(violation.nodes),
        PLACES: list(violation.places),
    }


def verdict_of(found: Iterable[dict[str, Any]], runs: Mapping[int, RunRow]) -> Verdict:
    """The verdict over all runs, from its rows in any order, and the rows of `runs` by their numbers.

    Raises `TraceError` if a run cannot be audited: for the first one, as the reference audit would.
    """
    verdict = Verdict()
    for number, rows in groupby(sorted(found, key=_number), key=_number):  # stable: properties stay in their order
        verdict.add_run(runs[number], _verdict_of_run(list(rows)))
    return verdict


def _number(row: dict[str, Any]) -> int:
    return int(row[NUMBER])


def _verdict_of_run(rows: Sequence[dict[str, Any]]) -> Verdict:
    for row in rows:
        if row[ERROR] is not None:
            raise TraceError(row[ERROR])
    run = rows[0][RUN]
    verdict = Verdict(runs=1, deliveries=rows[0][DELIVERIES])
    verdict.excuse(run, rows[0][EXCUSED] or "")
    for row in rows:
        name = row[PROPERTY]
        if not row[RECORDED]:
            verdict.not_recorded[name] += 1
            continue
        verdict.findings[name] = Finding(
            runs=1,
            violations=row[VIOLATIONS],
            witnesses=[Witness(run, _violation(name, witness)) for witness in row[WITNESSES]],
            at_least=row[AT_LEAST],
            by_node=Counter({each["node"]: each[VIOLATIONS] for each in row[BY_NODE] or ()}),
        )
    return verdict


def _violation(breaks: str, row: dict[str, Any]) -> Violation:
    messages = tuple((message["source"], message["seq"]) for message in row[MESSAGES])
    return Violation(breaks, row[SENTENCE], messages, tuple(row[NODES]), tuple(row[PLACES]))
