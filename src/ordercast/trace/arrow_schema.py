"""The schema of a trace as Arrow schemas, derived from `schema`."""

from collections.abc import Sequence

import pyarrow as pa

from ordercast.trace.schema import EVENT_COLUMNS, RUN_COLUMNS, Column, ColumnType

_TYPES = {
    ColumnType.STRING: pa.string(),
    ColumnType.INT32: pa.int32(),
    ColumnType.INT64: pa.int64(),
    ColumnType.BOOL: pa.bool_(),
    ColumnType.INT32_LIST: pa.list_(pa.int32()),
}


def _schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, _TYPES[column.type], column.nullable) for column in columns])


EVENTS = _schema(EVENT_COLUMNS)
RUNS = _schema(RUN_COLUMNS)
OPTIONAL_EVENT_COLUMNS = frozenset(column.name for column in EVENT_COLUMNS if column.optional)
OPTIONAL_RUN_COLUMNS = frozenset(column.name for column in RUN_COLUMNS if column.optional)
