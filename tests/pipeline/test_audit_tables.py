"""Tables that are no trace: columns are refused before anything is computed, values are an `error` row of their run."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import DoubleType, StructField, StructType

from ordercast.model.errors import ConfigError, TraceError
from ordercast.pipeline.audit.tables import _auditing, audit_tables
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.arrow_schema import EVENTS, RUNS
from tests.pipeline.random_runs import batch_of, long_enough


def table(schema: StructType) -> Any:
    """As much of a DataFrame as is looked at before anything is computed."""
    return SimpleNamespace(schema=schema, columns=schema.names)


def retyped(schema: StructType, name: str) -> StructType:
    return StructType([StructField(one.name, DoubleType()) if one.name == name else one for one in schema.fields])


def test_a_number_that_would_be_truncated_is_refused() -> None:
    events, runs = spark_schema(EVENTS), spark_schema(RUNS)
    with pytest.raises(TraceError, match="column 'seq' of the table events is of type double; a trace has int64 there"):
        audit_tables(table(retyped(events, "seq")), table(runs))
    with pytest.raises(TraceError, match="column 'nodes' of the table runs is of type double"):
        audit_tables(table(events), table(retyped(runs, "nodes")))


def test_a_missing_column_is_named() -> None:
    schema = spark_schema(EVENTS)
    lacking = StructType([one for one in schema.fields if one.name != "step"])
    with pytest.raises(TraceError, match="the table events has no column 'step'; a trace has int64 there"):
        audit_tables(table(lacking), table(spark_schema(RUNS)))


def test_an_unknown_service_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="there is no service 'fifo'; choose one of spo, st"):
        audit_tables(table(spark_schema(EVENTS)), table(spark_schema(RUNS)), "fifo")


RUN_ROW = {"run": "r", "protocol": "to", "nodes": 4, "complete": True}


@pytest.mark.parametrize("column", ["node", "step", "time", "event"])
def test_a_null_is_an_error_of_its_run(column: str) -> None:
    events = pa.Table.from_batches([batch_of(long_enough("null").rows())])
    place = events.schema.get_field_index(column)
    spoilt = pa.array([None, *events.column(column).to_pylist()[1:]], events.schema.field(column).type)
    events = events.set_column(place, pa.field(column, spoilt.type), spoilt)
    [row] = _auditing(None)(events, pa.Table.from_pylist([RUN_ROW], schema=RUNS)).to_pylist()
    assert (row["run"], row["holds"]) == ("r", False)
    assert row["error"] == f"column '{column}' of the table events must not be null, but 1 rows are"


def test_rows_without_a_run_are_an_error() -> None:
    events = pa.Table.from_batches([batch_of(long_enough("null").rows())])
    events = events.set_column(0, pa.field("run", pa.string()), pa.nulls(events.num_rows, pa.string()))
    [row] = _auditing(None)(events, pa.Table.from_pylist([], schema=RUNS)).to_pylist()
    assert row["error"] == f"column 'run' must not be null, but {events.num_rows} rows are"
