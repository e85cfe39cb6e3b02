"""The format `ordercast`: what it reads is what the simulator writes."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In
from pyspark.sql.types import IntegerType, StructField, StructType

from ordercast.model.runs import RunConfig
from ordercast.pipeline import register
from ordercast.pipeline.schema import spark_schema
from ordercast.pipeline.sweep import simulated_runs
from ordercast.pipeline.sweep.grid import grid_of
from ordercast.pipeline.sweep.source import OrdercastSource
from ordercast.pipeline.sweep.worker import run_one
from ordercast.simulator import simulate
from ordercast.trace.arrow_schema import EVENTS, RUNS
from ordercast.trace.recorder import Sink
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


def reader(table: str = "events", columns: tuple[str, ...] = (), **options: Any) -> Any:
    given = {name: str(value) for name, value in {**OPTIONS, "table": table, **options}.items()}
    source = OrdercastSource(given)
    fields = {field.name: field for field in source.schema().fields}
    asked = StructType([fields[name] for name in columns]) if columns else source.schema()
    return source.reader(asked)


def rows_of(one: Any) -> list[dict[str, Any]]:
    return [row for part in one.partitions() for batch in one.read(part) for row in batch.to_pylist()]


def test_runs_that_no_row_is_asked_of_are_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[int] = []
    monkeypatch.setattr(simulated_runs, "_kept", OrderedDict())

    def simulate_one(config: RunConfig, *_: object) -> dict[str, object]:
        simulated.append(config.seed)
        return row_of(config)

    monkeypatch.setattr(simulated_runs, "run_one", simulate_one)
    asked = reader("runs", seeds=5)
    names = [run(seed).name() for seed in range(5)]
    filters: list[Filter] = [
        In(("run",), (names[1], names[3], "another")),
        GreaterThan(("sent",), 3),
        EqualTo(("nodes",), 3),
    ]
    assert list(asked.pushFilters(filters)) == [filters[1]]
    assert {row["run"] for row in rows_of(asked)} == {names[1], names[3]}
    assert sorted(simulated) == [1, 3]
    assert list(asked.pushFilters([EqualTo(("run",), names[2])])) == []
    assert rows_of(asked) == []


def row_of(config: RunConfig) -> dict[str, object]:
    return {"run": config.name(), "protocol": config.protocol, "nodes": config.group.nodes, "complete": True}


def test_filters_and_columns_are_applied_where_the_rows_are_made() -> None:
    asked = reader(columns=("seq", "event", "node"), seed=7)
    left = list(asked.pushFilters([EqualTo(("event",), "deliver"), In(("node",), (0, 2)), EqualTo(("seq",), None)]))
    assert len(left) == 1
    found = rows_of(asked)
    assert found == [
        {"seq": row[6], "event": row[4], "node": row[1]}
        for row in expected()
        if row[4] == "deliver" and row[1] in {0, 2}
    ]
    assert found
    with pytest.raises(ValueError, match="the table events has no column seq of type int; it has run string, node int"):
        OrdercastSource({"protocol": "spo"}).reader(StructType([StructField("seq", IntegerType())]))


def test_a_run_is_simulated_once_for_both_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[int] = []

    def simulate_one(config: RunConfig, sink: Sink | None) -> dict[str, object]:
        simulated.append(config.seed)
        return run_one(config, sink)

    monkeypatch.setattr(simulated_runs, "_kept", OrderedDict())
    monkeypatch.setattr(simulated_runs, "run_one", simulate_one)
    events = rows_of(reader(seeds=3))
    assert [row["sent"] for row in rows_of(reader("runs", seeds=3))] == [15] * 3
    assert rows_of(reader(seeds=3)) == events
    assert simulated == [0, 1, 2]
    monkeypatch.setattr(simulated_runs, "MOST_BYTES", 1)  # only the latest is kept
    assert rows_of(reader(seeds=3)) == events
    assert simulated == [0, 1, 2, 1, 2]


def test_spark_hands_filters_and_columns_on(spark: SparkSession) -> None:
    """The rows are those of a query that filters for itself, and the plan has no filter that Spark applies."""
    events = read(spark, seeds=2)
    one = run(seed=1).name()
    filtered = events.where((events.run == one) & (events.event == "deliver"))
    found = filtered.collect()
    assert found == [row for row in events.collect() if row.run == one and row.event == "deliver"]
    assert found
    register(spark)
    text = {name: str(value) for name, value in {**OPTIONS, "seed": 7}.items()}
    narrow = spark.read.schema("node int, seq bigint").format("ordercast").options(**text).load()
    assert [tuple(row) for row in narrow.collect()] == [(row[1], row[6]) for row in expected()]
