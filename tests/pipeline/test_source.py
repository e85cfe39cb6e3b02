"""The format `ordercast`: what it reads is what the simulator writes."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ordercast.model.runs import RunConfig
from ordercast.pipeline import register
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.sweep.grid import grid_of
from ordercast.pipeline.sweep.source import OrdercastSource
from ordercast.simulator import simulate
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.schema import EventRow

OPTIONS = {"protocol": "spo", "nodes": 3, "messages": 5, "loss": 0.2, "group.timing.poll": "1ms"}


def read(spark: SparkSession, **options: Any) -> DataFrame:
    register(spark)
    return spark.read.format("ordercast").options(**{**OPTIONS, **options}).load()


def expected() -> list[tuple[Any, ...]]:
    rows: list[EventRow] = []
    config = run(seed=7)
    simulate(config, rows=rows)
    return [(config.name(), *row) for row in rows]


def run(seed: int) -> RunConfig:
    [config] = grid_of({**OPTIONS, "seed": seed}, "here")
    return config


def test_events_are_those_of_the_simulator(spark: SparkSession) -> None:
    events = read(spark, seed=7)
    assert events.schema == spark_schema(EVENTS)
    found = [tuple(tuple(value) if isinstance(value, list) else value for value in row) for row in events.collect()]
    assert found == expected()


def test_runs_of_several_seeds_with_one_that_fails(spark: SparkSession) -> None:
    runs = read(spark, table="runs", seed=f"[1, 2, {2**63}]")
    assert runs.schema == spark_schema(RUNS)
    rows = {row.run: row for row in runs.collect()}
    assert set(rows) == {run(seed).name() for seed in (1, 2, 2**63)}
    assert rows[run(1).name()].sent == 15
    assert rows[run(1).name()].error is None
    assert "64 bits" in rows[run(2**63).name()].error


def test_what_is_wrong_is_told_in_a_sentence(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="options of the format ordercast, key nodes: a group has 2 to 1024"):
        read(spark, nodes=1).collect()


def test_options_are_read_as_a_grid_is(tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text('protocol = "spo"\nseeds = 3\n')
    source = OrdercastSource({"grid": str(grid), "table": "runs"})
    assert source.schema() == spark_schema(RUNS)
    assert len(source.reader(spark_schema(RUNS)).partitions()) == 3
    with pytest.raises(ValueError, match="names a file with all runs; omit nodes"):
        OrdercastSource({"grid": str(grid), "nodes": "4"}).reader(spark_schema(RUNS))
    with pytest.raises(ValueError, match="invalid option table='moons'; choose one of: events, runs"):
        OrdercastSource({"table": "moons"}).schema()
