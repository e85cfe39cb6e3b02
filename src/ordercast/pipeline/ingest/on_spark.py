"""`from_log` on DataFrames: nothing but the names of sources and receivers comes to the driver."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ordercast.model.errors import TraceError
from ordercast.pipeline.ingest.names import MOST_NODES, Nodes, run_row
from ordercast.pipeline.ingest.tables import LogColumns, LogOptions, LogTables
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.schema import DESTINATIONS, EVENT, NODE, PRIORITY, RUN, SEQ, SOURCE, STEP, TIME, EventKind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_RECEIVER, _TO = "receiver", "to"


def tables_on_spark(
    received: "DataFrame", sent: "DataFrame | None", columns: LogColumns, options: LogOptions
) -> LogTables:
    """The tables of a trace, in no order: `write_trace` sorts them."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    spark = received.sparkSession
    handed = _selected("received", received, columns)
    given = _selected("sent", sent, columns) if sent is not None else None
    _require_values("received", handed)
    if given is not None:
        _require_values("sent", given)
    known = [handed, *([given] if given is not None else [])]
    sources = set().union(*(_distinct(table, SOURCE) for table in known))
    receivers = _distinct(handed, _RECEIVER) | set(options.subscriptions or ())
    if given is not None and _TO in given.columns:
        receivers |= _distinct(given.select(sql.explode(_TO).alias(_RECEIVER)), _RECEIVER)
    nodes = Nodes.of(sources, receivers)
    sends = _sends(given, nodes, options) if given is not None else _sends(_once(handed), nodes, options, distinct=True)
    events = sends.unionByName(_deliveries(handed, nodes)).withColumn(RUN, sql.lit(options.run))
    row = run_row(options.run, nodes, options.service, options.mark, one_clock=options.one_clock)
    runs = spark.createDataFrame(pa.Table.from_pylist([row], schema=RUNS), spark_schema(RUNS))
    schema = spark_schema(EVENTS)
    arranged = [
        sql.col(field.name).cast(field.dataType).alias(field.name)
        if field.name in events.columns
        else sql.lit(None).cast(field.dataType).alias(field.name)
        for field in schema.fields
    ]
    return LogTables(events.select(*arranged), runs)


def _selected(what: str, table: "DataFrame", columns: LogColumns) -> "DataFrame":
    """The columns that matter, by our names."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as sql  # noqa: PLC0415

    types = {field.name: field.dataType for field in table.schema.fields}
    needed = [*columns.source, columns.seq]
    needed += [columns.receiver, columns.order] if what == "received" else [columns.to] if columns.to else []
    for name in needed:
        if name not in types:
            raise TraceError(f"the table of what was {what} has no column {name!r}; it has {', '.join(types)}")
    first, *rest = [sql.col(name).cast("string") for name in columns.source]
    source = sql.concat(first, *(part for each in rest for part in (sql.lit("["), each, sql.lit("]"))))
    chosen: dict[str, Column] = {SOURCE: source, SEQ: _whole(what, columns.seq, types[columns.seq])}
    if columns.time in types and columns.time is not None:
        chosen[TIME] = _nanoseconds(columns.time, types[columns.time])
    if columns.key in types and columns.key is not None:
        chosen[PRIORITY] = sql.coalesce(sql.col(columns.key).cast("string"), sql.lit(""))
    if what == "received":
        chosen[_RECEIVER] = sql.col(columns.receiver).cast("string")
        if _is_whole(types[columns.order]):
            chosen[STEP] = sql.col(columns.order).cast("bigint")
        else:
            each = Window.partitionBy(columns.receiver).orderBy(columns.order)
            chosen[STEP] = sql.when(sql.col(columns.order).isNotNull(), sql.row_number().over(each)).cast("bigint")
    elif columns.to:
        chosen[_TO] = sql.col(columns.to)
    return table.select(*(column.alias(name) for name, column in chosen.items()))


def _is_whole(kind: "DataType") -> bool:
    return kind.simpleString() in {"tinyint", "smallint", "int", "bigint"}


def _whole(what: str, name: str, kind: "DataType") -> "Column":
    from pyspark.sql import functions as sql  # noqa: PLC0415

    if not _is_whole(kind):
        raise TraceError(
            f"column {name!r} of what was {what} is of type {kind.simpleString()}; numbers of messages are whole "
            "numbers of 64 bits"
        )
    return sql.col(name).cast("bigint")


def _nanoseconds(name: str, kind: "DataType") -> "Column":
    from pyspark.sql import functions as sql  # noqa: PLC0415

    return sql.unix_micros(name) * 1000 if kind.simpleString().startswith("timestamp") else sql.col(name).cast("bigint")


def _require_values(what: str, table: "DataFrame") -> None:
    from pyspark.sql import functions as sql  # noqa: PLC0415

    needed = [name for name in (_RECEIVER, SOURCE, SEQ, STEP) if name in table.columns]
    [nulls] = collected(table.agg(*(sql.count_if(sql.col(name).isNull()).alias(name) for name in needed))).to_pylist()
    for name, count in nulls.items():
        if count:
            told = {STEP: "order"}.get(name, name)
            raise TraceError(f"the column for {told} of what was {what} must not be null, but {count:,} rows are")


def _distinct(table: "DataFrame", name: str) -> set[str]:
    found: set[str] = set(collected(table.select(name).distinct().limit(MOST_NODES + 1)).column(name).to_pylist())
    return found


def _once(handed: "DataFrame") -> "DataFrame":
    """What was sent, as far as it was received."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    first = [sql.min(name).alias(name) for name in (TIME, PRIORITY) if name in handed.columns]
    return handed.groupBy(SOURCE, SEQ).agg(*first) if first else handed.select(SOURCE, SEQ).distinct()


def _lookup(table: "DataFrame", rows: list[dict[str, Any]], by: str) -> "DataFrame":
    from pyspark.sql import functions as sql  # noqa: PLC0415

    small = pa.Table.from_pylist(rows)
    if DESTINATIONS in small.column_names:
        place = small.schema.get_field_index(DESTINATIONS)
        small = small.set_column(place, DESTINATIONS, small.column(DESTINATIONS).cast(pa.list_(pa.int32())))
    return table.join(sql.broadcast(table.sparkSession.createDataFrame(small)), by)


def _from_nought(table: "DataFrame", number: str) -> "DataFrame":
    """Where there are no times: how far each node is. So rows of one period come into the same row groups."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    least = table.groupBy(NODE).agg(sql.min(number).alias("least"))
    return table.join(sql.broadcast(least), NODE).withColumn(TIME, sql.col(number) - sql.col("least")).drop("least")


def _deliveries(handed: "DataFrame", nodes: Nodes) -> "DataFrame":
    from pyspark.sql import functions as sql  # noqa: PLC0415

    first = len(nodes.sources)
    receivers = [{_RECEIVER: name, NODE: number} for number, name in enumerate(nodes.receivers, start=first)]
    sources = [{SOURCE: name, "number": number} for number, name in enumerate(nodes.sources)]
    found = _lookup(_lookup(handed, receivers, _RECEIVER), sources, SOURCE)
    found = found if TIME in found.columns else _from_nought(found, STEP)
    return found.select(
        NODE,
        STEP,
        TIME,
        sql.lit(EventKind.DELIVER.value).alias(EVENT),
        sql.col("number").alias(SOURCE),
        SEQ,
        sql.lit(None).cast("array<int>").alias(DESTINATIONS),
        sql.lit(None).cast("int").alias(PRIORITY),
    )


def _sends(given: "DataFrame", nodes: Nodes, options: LogOptions, *, distinct: bool = False) -> "DataFrame":
    """What was sent. `distinct`: no source gave one number twice, so that its numbers are positions, too."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as sql  # noqa: PLC0415

    subscribers = nodes.subscribers(options.subscriptions)
    sources = [
        {SOURCE: name, NODE: number, DESTINATIONS: subscribers[number]} for number, name in enumerate(nodes.sources)
    ]
    found = _lookup(given, sources, SOURCE)
    if _TO in given.columns:
        first = len(nodes.sources)
        numbers = {name: number for number, name in enumerate(nodes.receivers, start=first)}
        table = sql.create_map(*(sql.lit(each) for pair in numbers.items() for each in pair))
        found = found.withColumn(DESTINATIONS, sql.transform(_TO, lambda name: sql.element_at(table, name)))
    in_order = Window.partitionBy(NODE).orderBy(SEQ)
    if TIME in found.columns:
        found = found.withColumn(TIME, sql.max(TIME).over(in_order.rowsBetween(Window.unboundedPreceding, 0)))
    else:
        found = _from_nought(found, SEQ)
    if PRIORITY in found.columns:
        found = found.withColumn(PRIORITY, sql.dense_rank().over(Window.partitionBy(NODE).orderBy(PRIORITY)))
    else:
        found = found.withColumn(PRIORITY, sql.lit(None).cast("int"))
    return found.select(
        NODE,
        (sql.col(SEQ) if distinct else sql.row_number().over(in_order).cast("bigint")).alias(STEP),
        TIME,
        sql.lit(EventKind.SEND.value).alias(EVENT),
        sql.col(NODE).alias(SOURCE),
        SEQ,
        DESTINATIONS,
        PRIORITY,
    )
