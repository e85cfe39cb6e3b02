"""Histories of replicated objects, judged on Spark: each key in one task."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ordercast.audit.linearizability import KeyVerdict, audit_history
from ordercast.model.errors import TraceError
from ordercast.pipeline.jobs import collected
from ordercast.pipeline.schema import spark_schema
from ordercast.trace.history import SCHEMA, operations_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEY = ("run", "model", "object_name", "key")
_OPERATION = pa.struct(list(SCHEMA))
VERDICTS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _KEY),
        pa.field("operations", pa.int64()),
        pa.field("linearizable", pa.bool_()),
        pa.field("witness", pa.list_(_OPERATION)),
        pa.field("ordered", pa.int64()),
    ]
)


def audit_histories(spark: "SparkSession", paths: Sequence[Path]) -> list[KeyVerdict]:
    """The verdict for each key of each object of each run of these files and folders."""
    for path in paths:
        if not path.exists():
            raise TraceError(f"cannot read the history {path}: there is no such file or folder")
    table = spark.read.parquet(*(str(path.resolve()) for path in paths))
    missing = [name for name in SCHEMA.names if name not in table.columns]
    if missing:
        raise TraceError(f"{paths[0]} is no history: it has no column {missing[0]!r}")
    judged = table.select(*SCHEMA.names).groupBy(*_KEY).applyInArrow(_judge, spark_schema(VERDICTS))
    rows = collected(judged).to_pylist()
    found = [KeyVerdict(**{**row, "witness": tuple(operations_of(row["witness"]))}) for row in rows]
    return sorted(found, key=lambda each: each[:4])


def _judge(rows: pa.Table) -> pa.Table:
    """All operations of one key."""
    found = []
    for verdict in audit_history(operations_of(rows.to_pylist())):
        row = verdict._asdict()
        row["witness"] = [{name: getattr(each, name) for name in SCHEMA.names} for each in verdict.witness]
        found.append(row)
    return pa.Table.from_pylist(found, schema=VERDICTS)
