"""Audits tables on Spark: DataFrames in, DataFrames out."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ordercast.audit.logs import ALL_COLUMNS, KINDS
from ordercast.audit.run_rows import require_nothing_sent, runs_by_name
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.verdict_table import (
    NUMBER,
    PROPERTY,
    VERDICTS,
    WITNESSES,
    row_of_error,
    row_of_failure,
    rows_of,
)
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.schema import ABORTED, COMPLETE, CONFIG, DETAIL, ERROR, EVENT, NODE, NODES, PROTOCOL, RUN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RUN_COLUMNS = (RUN, PROTOCOL, NODES, NODE, COMPLETE, ABORTED, CONFIG, ERROR, "sent", "delivered")


class VerdictTables(NamedTuple):
    """The result of `audit_tables`."""

    verdicts: "DataFrame"
    """run, property, recorded, holds, violations, at_least, deliveries, error: a row for each run and property."""
    witnesses: "DataFrame"
    """run, property, sentence, messages, nodes, places: the first few violations of each."""


def audit_tables(events: "DataFrame", runs: "DataFrame", service: Service | None = None) -> VerdictTables:
    """Audits all runs of two tables, `events` and `runs` of a trace; `service` replaces the one that each run promises.

    A run that cannot be audited, because it is inconsistent or incomplete, has one row without a property, whose
    `error` says why; so has a failed run of a sweep, and its `holds` is null. The events of a run are shuffled into one
    task: for runs of many millions of events, which may not fit there, use `audit`.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - whoever passes tables has loaded it

    if DETAIL not in events.columns:  # tables of other programs may lack it
        events = events.withColumn(DETAIL, sql.lit(None).cast("string"))
    wanted = events.select(RUN, *ALL_COLUMNS).where(sql.col(EVENT).isin(*sorted(KINDS)))
    known = [sql.col(name) if name in runs.columns else sql.lit(None).alias(name) for name in _RUN_COLUMNS]
    together = wanted.groupBy(RUN).cogroup(runs.select(*known).groupBy(RUN))
    found = together.applyInArrow(_auditing(service), spark_schema(VERDICTS))
    witnesses = found.select(RUN, PROPERTY, sql.explode(WITNESSES).alias("witness"))
    return VerdictTables(found.drop(NUMBER, WITNESSES), witnesses.select(RUN, PROPERTY, "witness.*"))


def _auditing(service: Service | None) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def work(events: pa.Table, runs: pa.Table) -> pa.Table:
        name = (events if events.num_rows else runs).column(RUN)[0].as_py()
        failures = runs.column(ERROR).drop_null().to_pylist()
        try:
            if failures and not events.num_rows:
                found = [row_of_failure(0, name, failures[0])]
            else:
                found = list(rows_of(0, name, _verdict(name, events, runs, service)))
        except TraceError as error:
            found = [row_of_error(0, name, error)]
        return pa.Table.from_pylist(found, schema=VERDICTS)

    return work


def _verdict(name: str, events: pa.Table, runs: pa.Table, service: Service | None) -> Verdict:
    from ordercast.pipeline.audit.run import audit_run  # noqa: PLC0415 - the kernel, only where the task runs

    rows = runs_by_name(runs.to_pylist())
    if name not in rows:
        raise TraceError(f"run {name} has events but no row in runs: pass the whole trace")
    if not events.num_rows:
        require_nothing_sent(rows[name])
    return audit_run(rows[name], events.combine_chunks().to_batches(), service)
