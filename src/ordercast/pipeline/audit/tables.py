"""Audits tables on Spark: DataFrames in, DataFrames out."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ordercast.audit.logs import ALL_COLUMNS, COLUMNS, KINDS
from ordercast.audit.names import names_of_run
from ordercast.audit.profiles import Asked, Profile, asked_by
from ordercast.audit.run_rows import require_nothing_sent, runs_by_name
from ordercast.audit.verdict import MOST_WITNESSES, Finding, Verdict, Witness
from ordercast.audit.violations import Violation
from ordercast.model.errors import TraceError
from ordercast.model.services import Service
from ordercast.pipeline.audit.verdict_table import (
    DELIVERIES,
    EXCUSED,
    NUMBER,
    PROPERTY,
    SENTENCE,
    VERDICTS,
    WITNESSES,
    row_of_error,
    row_of_failure,
    rows_of,
)
from ordercast.pipeline.audit.verdict_table import ERROR as FAILED
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.reader import RunRow
from ordercast.trace.schema import (
    ABORTED,
    COMPLETE,
    CONFIG,
    DESTINATIONS,
    DETAIL,
    ERROR,
    EVENT,
    EVENT_COLUMNS,
    NODE,
    NODES,
    PROTOCOL,
    RUN,
    RUN_COLUMNS,
    Column,
    ColumnType,
)
from ordercast.trace.storage import Location, location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint", "void"})
_READ_AS = {
    ColumnType.STRING: frozenset({"string", "void"}),
    ColumnType.INT32: _INTEGERS,
    ColumnType.INT64: _INTEGERS,
    ColumnType.BOOL: frozenset({"boolean", "void"}),
    ColumnType.INT32_LIST: frozenset({"void", *(f"array<{integer}>" for integer in _INTEGERS)}),
}
"""Types of Spark that hold a column without loss."""
_RUN_COLUMNS = (RUN, PROTOCOL, NODES, NODE, COMPLETE, ABORTED, CONFIG, ERROR, "sent", "delivered")


class VerdictTables(NamedTuple):
    """The result of `audit_tables`."""

    verdicts: "DataFrame"
    """run, property, recorded, holds, violations, at_least, deliveries, excused, error: for each run and property."""
    witnesses: "DataFrame"
    """run, property, sentence, messages, nodes, places: the first few violations of each."""

    def explain(self) -> str:
        """Both as text for people, as `Verdict.explain` has it.

        Computes the tables: cache `verdicts` before, if more is asked of it.
        """
        return _as_verdict(self).explain()


def audit_tables(
    events: "DataFrame",
    runs: "DataFrame",
    service: Service | Profile | str | None = None,
    *,
    scratch: Location | str | None = None,
) -> VerdictTables:
    """Audits all runs of two tables, `events` and `runs` of a trace; `service` replaces the one that each run promises.

    Raises `TraceError` for a column that is missing or of another type and `ConfigError` for an unknown service, before
    anything is computed; integers may be of any width. A run that cannot be audited, because it is inconsistent or
    incomplete or has nulls, has one row without a property, whose `error` says why; so has a failed run of a sweep, and
    its `holds` is null. The events of a run are shuffled into one task.

    `scratch`: a folder or URL that the driver and the workers can write. Runs of more than three million events are
    then counted, written there for a while, sorted, and judged in partitions, before this returns; so one long run
    among many does not have to fit into a task.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415 - whoever passes tables has loaded it

    service = _service(service)
    _require_columns("events", events.schema, EVENT_COLUMNS, (RUN, *COLUMNS))
    _require_columns("runs", runs.schema, RUN_COLUMNS, (RUN, PROTOCOL, NODES))
    if DETAIL not in events.columns:  # tables of other programs may lack it
        events = events.withColumn(DETAIL, sql.lit(None).cast("string"))
    wanted = events.select(RUN, *ALL_COLUMNS).where(sql.col(EVENT).isin(*sorted(KINDS)) | sql.col(EVENT).isNull())
    known = [sql.col(name) if name in runs.columns else sql.lit(None).alias(name) for name in _RUN_COLUMNS]
    rows, judged = runs.select(*known), None
    if scratch is not None:
        from ordercast.pipeline.audit.long_tables import judged_in_partitions, long_runs  # noqa: PLC0415 - it needs us

        long = long_runs(wanted, rows)
        if long:
            is_long = sql.coalesce(sql.col(RUN).isin(long), sql.lit(col=False))
            judged = judged_in_partitions(wanted.where(is_long), rows.where(is_long), service, location(scratch))
            wanted, rows = wanted.where(~is_long), rows.where(~is_long)
    together = wanted.groupBy(RUN).cogroup(rows.groupBy(RUN))
    found = together.applyInArrow(_auditing(service), spark_schema(VERDICTS))
    return tables_of(found.unionByName(judged) if judged is not None else found)


def tables_of(found: "DataFrame") -> VerdictTables:
    """The two tables, of the rows of verdicts."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    witnesses = found.select(RUN, PROPERTY, sql.explode(WITNESSES).alias("witness"))
    return VerdictTables(found.drop(NUMBER, WITNESSES), witnesses.select(RUN, PROPERTY, "witness.*"))


def _as_verdict(tables: VerdictTables) -> Verdict:
    """One verdict over all runs: only sums, and the first few witnesses of each property, come to the driver."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as sql  # noqa: PLC0415

    verdict = Verdict()
    each = tables.verdicts
    runs = each.groupBy(RUN).agg(
        sql.max(DELIVERIES).alias(DELIVERIES), sql.max(EXCUSED).alias(EXCUSED), sql.max(FAILED).alias(FAILED)
    )
    [total] = collected(runs.agg(sql.count("*").alias("runs"), sql.sum(DELIVERIES).alias(DELIVERIES))).to_pylist()
    verdict.runs, verdict.deliveries = total["runs"], total[DELIVERIES] or 0
    excused = runs.where(sql.col(EXCUSED).isNotNull())
    for row in collected(excused.orderBy(RUN).limit(MOST_WITNESSES)).to_pylist():
        verdict.excuse(row[RUN], row[EXCUSED])
    verdict.excused_runs = excused.count() if verdict.excused else 0
    failed = runs.where(sql.col(FAILED).isNotNull()).orderBy(RUN).limit(MOST_WITNESSES)
    verdict.incomplete_records += [f"run {row[RUN]}: {row[FAILED]}" for row in collected(failed).to_pylist()]
    judged = each.where(sql.col(PROPERTY).isNotNull()).groupBy(PROPERTY, "recorded")
    sums = judged.agg(
        sql.count("*").alias("runs"), sql.sum("violations").alias("violations"), sql.max("at_least").alias("at_least")
    )
    for row in collected(sums.orderBy(PROPERTY)).to_pylist():
        if row["recorded"]:
            verdict.findings[row[PROPERTY]] = Finding(row["runs"], row["violations"], at_least=row["at_least"])
        else:
            verdict.not_recorded[row[PROPERTY]] = row["runs"]
    place = sql.row_number().over(Window.partitionBy(PROPERTY).orderBy(RUN))
    shown = tables.witnesses.withColumn("place", place).where(sql.col("place") <= MOST_WITNESSES)
    for row in collected(shown.select(RUN, PROPERTY, SENTENCE)).to_pylist():
        violation = Violation(row[PROPERTY], row[SENTENCE])
        verdict.findings[row[PROPERTY]].witnesses.append(Witness(row[RUN], violation))
    return verdict


def _service(asked: Asked | str | None) -> Asked | None:
    """The service or profile, which may be given by its name or file, as on the command line."""
    return asked_by(asked) if isinstance(asked, str) else asked


def _require_columns(table: str, found: "StructType", columns: Sequence[Column], needed: Sequence[str]) -> None:
    """Raises `TraceError` unless a table has some columns, and all that it has of a trace in types that can be read."""
    types = {field.name: field.dataType.simpleString() for field in found.fields}
    for column in columns:
        if column.name not in types:
            if column.name in needed:
                raise TraceError(
                    f"the table {table} has no column {column.name!r}; a trace has {column.type.value} there"
                )
        elif types[column.name] not in _READ_AS[column.type]:
            raise TraceError(
                f"column {column.name!r} of the table {table} is of type {types[column.name]}; "
                f"a trace has {column.type.value} there: cast it, if that loses nothing"
            )


def _require_values(events: pa.Table) -> None:
    """Raises `TraceError` if something is null that every event has."""
    for column in EVENT_COLUMNS:
        if not column.nullable and (nulls := events.column(column.name).null_count):
            raise TraceError(f"column {column.name!r} of the table events must not be null, but {nulls} rows are")
    if events.column(DESTINATIONS).combine_chunks().flatten().null_count:
        raise TraceError(f"lists of column {DESTINATIONS!r} of the table events must not contain nulls, but some do")


def _auditing(service: Asked | None) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def work(events: pa.Table, runs: pa.Table) -> pa.Table:
        name = (events if events.num_rows else runs).column(RUN)[0].as_py()
        if name is None:
            unnamed = TraceError(f"column {RUN!r} must not be null, but {events.num_rows + runs.num_rows} rows are")
            return pa.Table.from_pylist([row_of_error(0, "", unnamed)], schema=VERDICTS)
        failures = runs.column(ERROR).drop_null().to_pylist()
        try:
            if failures and not events.num_rows:
                found = [row_of_failure(0, name, failures[0])]
            else:
                row, verdict = _verdict(name, events, runs, service)
                found = list(rows_of(0, name, verdict, names_of_run(row)))
        except TraceError as error:
            found = [row_of_error(0, name, error)]
        return pa.Table.from_pylist(found, schema=VERDICTS)

    return work


def _verdict(name: str, events: pa.Table, runs: pa.Table, service: Asked | None) -> tuple[RunRow, Verdict]:
    from ordercast.pipeline.audit.run import audit_run  # noqa: PLC0415 - the kernel, only where the task runs

    _require_values(events)
    for needed in (PROTOCOL, NODES):
        if runs.column(needed).null_count:
            raise TraceError(f"column {needed!r} of the table runs must not be null")
    rows = runs_by_name(runs.to_pylist())
    if name not in rows:
        raise TraceError(f"run {name} has events but no row in runs: pass the whole trace")
    if not events.num_rows:
        require_nothing_sent(rows[name])
    return rows[name], audit_run(rows[name], events.combine_chunks().to_batches(), service)
