"""The data source `ordercast-log`: the logs of a group's members, as a table and as a stream.

    register(spark)
    spark.readStream.format("ordercast-log").option("members", "A=/logs/A,B=/logs/B,C=http://c:7600").load()

`docs/howto/spark-streams.md` has the options. Spark compares offsets as text: one function writes them.
"""

from collections.abc import Iterator
from typing import Any, TypedDict

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ordercast.model.errors import ConfigError
from ordercast.pipeline.log_stream.columns import MESSAGES, PAYLOAD, VALUE, Rows, batch_of
from ordercast.pipeline.log_stream.ddl import struct_of
from ordercast.pipeline.log_stream.decode import Decoder
from ordercast.pipeline.log_stream.member_log import OrderPlace
from ordercast.pipeline.log_stream.options import FORMAT, LogOptions, options_of
from ordercast.pipeline.log_stream.planning import LogPlanner, Part
from ordercast.pipeline.log_stream.reading import rows_of
from ordercast.pipeline.schema import spark_schema


class LogSource(DataSource):
    """Spark's interface to the format."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """All columns, and `value` if the messages are decoded."""
        options = options_of(self.options)
        return spark_schema(pa.schema([*MESSAGES, *([pa.field(VALUE, _value_type(options))] if options.value else [])]))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The messages that there are."""
        options = options_of(self.options)
        return _Reader(options, _columns(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """The messages as they come."""
        options = options_of(self.options)
        if any(key.lower() == "endingoffsets" for key in self.options):
            raise ConfigError("endingOffsets is for tables (spark.read): a stream has no end; omit it")
        return _StreamReader(options, _columns(schema, options))


class _Partition(InputPartition):
    def __init__(self, part: Part) -> None:
        super().__init__(None)
        self.part = part


class _Columns:
    """What of each message is handed to Spark."""

    def __init__(self, columns: pa.Schema, decoder: Decoder | None) -> None:
        self._columns, self._decoder = columns, decoder

    def batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Partition)
        for rows in rows_of(partition.part):
            yield batch_of(rows, self._columns, self._value(rows))

    def _value(self, rows: Rows) -> pa.Array | None:
        return self._decoder.column(rows.column(PAYLOAD), rows.first) if self._decoder is not None else None


class _Reader(DataSourceReader):
    def __init__(self, options: LogOptions, columns: _Columns) -> None:
        self._options, self._columns = options, columns

    def partitions(self) -> list[InputPartition]:
        planner = LogPlanner(self._options)
        start = planner.boundary("earliest" if self._options.start is None else self._options.start)
        end = planner.boundary(self._options.end)
        if start.position > end.position:
            raise ConfigError(
                f"startingOffsets is position {start.position}, above endingOffsets, which is {end.position}"
            )
        return [_Partition(part) for part in planner.parts(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._columns.batches(partition)


class Offset(TypedDict):
    """As Spark keeps it; always written by `_offset`, with its keys in this order."""

    order: str
    next: int
    hash: str


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: LogOptions, columns: _Columns) -> None:
        self._options, self._columns = options, columns
        self._planner = LogPlanner(options)
        self._target: OrderPlace | None = None
        """Nothing above it is handed out, if the query ends with what there is now."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's names)
        place = self._planner.boundary("latest" if self._options.start is None else self._options.start)
        return self._offset(place)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self._options.max_offsets
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._planner.boundary("latest")

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        begin = self._place(start)
        found = self._planner.latest(begin, rows, self._target)
        return start if found.position == begin.position else self._offset(found)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return {"order": self._planner.group, "next": self._planner.seen, "hash": ""}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [_Partition(part) for part in self._planner.parts(self._place(start), self._place(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._columns.batches(partition)

    def _offset(self, place: OrderPlace) -> dict[str, Any]:
        return {"order": self._planner.group, "next": place.position, "hash": place.hash.hex()}

    def _place(self, offset: dict[str, Any]) -> OrderPlace:
        if not {"order", "next", "hash"} <= offset.keys():
            raise ConfigError(
                f"the checkpoint is none of the format {FORMAT}: {offset}; use another checkpointLocation"
            )
        self._planner.group = self._planner.group or offset["order"]
        if offset["order"] != self._planner.group:
            raise ConfigError(
                f"the checkpoint is of the group {offset['order']!r}, and the logs are of {self._planner.group!r}; use "
                "the logs of that group, or another checkpointLocation"
            )
        return OrderPlace(int(offset["next"]), bytes.fromhex(offset["hash"]))


def _columns(schema: StructType, options: LogOptions) -> _Columns:
    """Raises `ConfigError` for columns that messages do not have."""
    decoder = Decoder(options.value, _value_type(options), options.undecodable) if options.value else None
    known = pa.schema([*MESSAGES, *([pa.field(VALUE, decoder.type)] if decoder is not None else [])])
    types = {field.name: field.dataType for field in spark_schema(known)}
    for field in schema:
        if types.get(field.name) != field.dataType:
            said = f"{field.name} {field.dataType.simpleString()}"
            has = ", ".join(f"{name} {type_.simpleString()}" for name, type_ in types.items())
            raise ConfigError(f"the format {FORMAT} has no column {said}; it has: {has}")
    if not len(schema):
        raise ConfigError(f"no column is asked for; the format {FORMAT} has: {', '.join(types)}")
    names = schema.fieldNames()
    return _Columns(pa.schema([known.field(name) for name in names]), decoder if VALUE in names else None)


def _value_type(options: LogOptions) -> pa.DataType:
    if options.value == "utf8":
        return pa.string()
    assert options.value_schema is not None
    return struct_of(options.value_schema)
