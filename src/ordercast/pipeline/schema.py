"""Arrow schemas as Spark's: every schema is written once, in Arrow's types."""

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> "StructType":
    """The same columns for Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - only where Spark is used

    return from_arrow_schema(schema)
