"""Filters of a query that are applied where its rows are made: a column is one of some values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import EqualTo, Filter, In


@dataclass(frozen=True)
class RowFilter:
    """The rows in which a column has one of these values."""

    column: str
    values: tuple[Any, ...]


def row_filter(asked: Filter, schema: pa.Schema) -> RowFilter | None:
    """A filter of Spark as one of ours; None if it is of another kind, or about what is no plain column."""
    if not isinstance(asked, EqualTo | In) or len(asked.attribute) != 1:
        return None
    [column] = asked.attribute
    if column not in schema.names or pa.types.is_nested(schema.field(column).type):
        return None
    values = (asked.value,) if isinstance(asked, EqualTo) else tuple(asked.value)
    return None if None in values else RowFilter(column, values)


def filtered(batch: pa.RecordBatch, filters: Sequence[RowFilter]) -> pa.RecordBatch:
    """The rows that pass all of them."""
    for one in filters:
        kind = batch.schema.field(one.column).type
        batch = batch.filter(pc.is_in(batch.column(one.column), pa.array(one.values).cast(kind)))
    return batch
