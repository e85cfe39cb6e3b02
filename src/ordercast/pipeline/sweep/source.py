"""The data source `ordercast`: simulations as a DataFrame. `spark.read.format("ordercast")` simulates its options.

The same name as the sink of a stream sends what it makes into a live group: see `ordercast.pipeline.log_stream.sink`.

    register(spark)
    spark.read.format("ordercast").option("protocol", "spo").option("nodes", 4).option("seeds", 10).load()

Options are the keys of a grid (see `ordercast.pipeline.sweep.grid`), with lists written as in TOML: "[4, 8]".
`grid` names a file instead; `table` is `events` (default) or `runs`. A failed run has its row in `runs`; reading its
events fails.
"""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamWriter, InputPartition
from pyspark.sql.types import StructType

from ordercast.model.errors import ConfigError, PipelineError
from ordercast.model.runs import RunConfig
from ordercast.pipeline.log_stream.sink import BatchWriter, sink_options
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.sweep.chunks import in_chunks
from ordercast.pipeline.sweep.grid import grid_of, read_grid
from ordercast.pipeline.sweep.worker import run_one
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.files import events_batch, runs_table
from ordercast.trace.schema import ERROR, EVENTS_FOLDER, RUNS_FOLDER

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
        """Simulates the runs."""
        del schema  # always our own
        return _Reader(_table(self.options), _configs(self.options))

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
    def __init__(self, table: str, configs: list[RunConfig]) -> None:
        self._table, self._configs = table, configs

    def partitions(self) -> list[InputPartition]:
        return [_Runs([self._configs[place].to_json() for place in places]) for places in in_chunks(self._configs)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Runs)
        for text in partition.configs:
            config = RunConfig.from_json(text)
            yield from _events(config) if self._table == EVENTS_FOLDER else runs_table([run_one(config)]).to_batches()


def _events(config: RunConfig) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = []
    name = config.name()
    row = run_one(config, lambda rows: batches.append(events_batch(name, rows)))
    if row.get(ERROR) is not None:
        raise PipelineError(f"run {name} failed: {row[ERROR]}")
    return batches


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
