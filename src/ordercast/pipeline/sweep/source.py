"""The data source `ordercast`: simulations as a DataFrame. `spark.read.format("ordercast")` simulates its options.

The same name as the sink of a stream sends what it makes into a live group: see `ordercast.pipeline.log_stream.sink`.

    register(spark)
    spark.read.format("ordercast").option("protocol", "spo").option("nodes", 4).option("seeds", 10).load()

Options are the keys of a grid (see `ordercast.pipeline.sweep.grid`), with lists written as in TOML: "[4, 8]".
`grid` names a file instead; `table` is `events` (default) or `runs`. A failed run has its row in `runs`; reading its
events fails.

Filters by `run` and other columns are applied here: a run that no row is asked of is not simulated. Spark tells a
source in Python nothing of the columns that a query needs, so they are named by a schema: `.schema("run string")`.
A process of Spark that has simulated a run keeps what came of it for a while, for the other table and further queries.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, Filter, InputPartition
from pyspark.sql.types import StructType

from ordercast.model.errors import ConfigError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.log_stream.sink import BatchWriter, sink_options
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.pipeline.sweep.grid import grid_of, read_grid
from ordercast.pipeline.sweep.pushed_filters import RowFilter, filtered, row_filter
from ordercast.pipeline.sweep.simulated_runs import simulated_run
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.schema import EVENTS_FOLDER, RUN, RUNS_FOLDER

FORMAT = "ordercast"
_TABLE, _GRID = "table", "grid"
_SCHEMAS = {EVENTS_FOLDER: EVENTS, RUNS_FOLDER: RUNS}


class OrdercastSource(DataSource):
    """Spark's interface to the format."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """The schema of the table asked for."""
        return spark_schema(_SCHEMAS[_table(self.options)])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Simulates the runs, for these columns of the table."""
        table, configs = _table(self.options), _configs(self.options)
        return _Reader(table, _columns(table, schema), configs)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, N802 (Spark's)
        """Sends each micro-batch to a live group."""
        if overwrite:
            raise ConfigError("the sink ordercast only appends: use outputMode('append')")
        return BatchWriter(sink_options(self.options), schema)


class _Runs(InputPartition):
    """The runs of a chunk, as JSON."""

    def __init__(self, configs: list[str]) -> None:
        super().__init__(None)
        self.configs = configs


class _Reader(DataSourceReader):
    def __init__(self, table: str, schema: pa.Schema, configs: list[RunConfig]) -> None:
        self._table, self._schema, self._configs = table, schema, configs
        self._filters: tuple[RowFilter, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 (Spark's)
        """Takes those that compare a column with values; Spark applies the others, which are returned."""
        for one in filters:
            known = row_filter(one, _SCHEMAS[self._table])
            if known is None:
                yield one
            else:
                self._filters += (known,)

    def partitions(self) -> list[InputPartition]:
        asked = [found.values for found in self._filters if found.column == RUN]
        configs = [one for one in self._configs if all(one.name() in values for values in asked)]
        return [_Runs([configs[place].to_json() for place in places]) for places in in_chunks(configs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for text in partition.configs if isinstance(partition, _Runs) else ():  # Spark makes one, if there are none
            simulated = simulated_run(text, with_events=self._table == EVENTS_FOLDER)
            for batch in simulated.events(text) if self._table == EVENTS_FOLDER else simulated.row.to_batches():
                found = filtered(batch, self._filters).select(self._schema.names)
                yield pa.RecordBatch.from_arrays(found.columns, schema=self._schema)


def _columns(table: str, asked: StructType) -> pa.Schema:
    """The schema that is asked for, whose columns are some of the table's."""
    known = {field.name: field.dataType for field in spark_schema(_SCHEMAS[table]).fields}
    for field in asked.fields:
        if known.get(field.name) != field.dataType:
            types = ", ".join(f"{name} {kind.simpleString()}" for name, kind in known.items())
            raise ConfigError(
                f"the table {table} has no column {field.name} of type {field.dataType.simpleString()}; it has {types}"
            )
    ours = _SCHEMAS[table]
    return pa.schema([ours.field(field.name).with_nullable(field.nullable) for field in asked.fields])


def _table(options: Mapping[str, str]) -> str:
    table = options.get(_TABLE, EVENTS_FOLDER)
    if table not in _SCHEMAS:
        raise ConfigError(f"invalid option {_TABLE}={table!r}; choose one of: {', '.join(_SCHEMAS)}")
    return table


def _configs(options: Mapping[str, str]) -> list[RunConfig]:
    keys = {key: value for key, value in options.items() if key not in {_TABLE, _GRID}}
    if _GRID not in options:
        return grid_of({key: _value(text) for key, text in keys.items()}, f"options of the format {FORMAT}")
    if keys:
        raise ConfigError(f"the option {_GRID} names a file with all runs; omit {', '.join(sorted(keys))}")
    return read_grid(Path(options[_GRID]))


def _value(text: str) -> Any:
    """A number, a boolean or a list in TOML, or else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
