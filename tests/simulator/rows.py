"""Small runs and their rows, with names for the columns."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

from ordercast.model.config import GroupConfig
from ordercast.model.faults import Fault
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.simulator import RunResult, simulate
from ordercast.trace.schema import EventRow

Message = tuple[int | None, int | None]
"""The name of a message: source and number; of none, two times nothing."""


class Row(NamedTuple):
    """A row of a trace, in the order of its columns."""

    node: int
    step: int
    time: int
    event: str
    source: int | None
    seq: int | None
    destinations: tuple[int, ...] | None
    priority: int | None
    size: int | None
    detail: str | None
    transmission: int | None

    @property
    def message(self) -> Message:
        """The message meant."""
        return self.source, self.seq


def make_config(
    nodes: int,
    *,
    faults: Iterable[Fault] = (),
    network: Network | None = None,
    workload: Workload | None = None,
    seed: int = 1,
    **more: Any,
) -> RunConfig:
    """A run of SPO; `more` are fields of its group."""
    return RunConfig(
        protocol="spo",
        group=GroupConfig(nodes=nodes, **more),
        network=network or Network(),
        workload=workload or Workload(messages=10),
        faults=tuple(faults),
        seed=seed,
    )


def run(config: RunConfig) -> tuple[RunResult, list[Row]]:
    """A run and its rows."""
    kept: list[EventRow] = []
    result = simulate(config, rows=kept)
    return result, [Row(*row) for row in kept]


def by_node(rows: Iterable[Row]) -> dict[int, list[Row]]:
    """Each node's rows, in the order recorded."""
    ordered = sorted(rows, key=lambda row: row.node)  # sorting keeps the order of equals
    return {node: list(group) for node, group in groupby(ordered, key=lambda row: row.node)}


def of(rows: Iterable[Row], *events: str) -> list[Row]:
    """The rows of some kinds."""
    return [row for row in rows if row.event in events]
