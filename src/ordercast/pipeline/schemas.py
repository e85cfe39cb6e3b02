"""The schemas of Spark's tables, written down from the one schema of a trace and never inferred."""

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from ordercast.trace.arrow_schema import EVENTS, RUNS

_TYPES: dict[pa.DataType, DataType] = {
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    pa.list_(pa.int32()): ArrayType(IntegerType()),
}


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns for Spark."""
    return StructType([StructField(field.name, _TYPES[field.type], field.nullable) for field in schema])


EVENTS_TABLE = spark_schema(EVENTS)
RUNS_TABLE = spark_schema(RUNS)
