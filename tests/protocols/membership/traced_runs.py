"""Runs of changing groups in the simulator, and what the reference audit says of their traces."""

from typing import Any

import msgspec

from ordercast.audit.logs import ALL_COLUMNS
from ordercast.audit.reference import check_run
from ordercast.audit.verdict import Verdict
from ordercast.model.config import MILLISECOND, GroupConfig, SequencerConfig
from ordercast.model.faults import Crash, Loss, Split
from ordercast.model.runs import Network, RunConfig, Workload
from ordercast.protocols.membership.by_node import by_node
from ordercast.simulator.simulation import Simulation
from ordercast.trace.schema import EVENT_COLUMNS, EventRow

ORDERS = ("spo", "po", "st", "to", "prito", "prio", "sequencer")
CASES: dict[str, tuple[int | None, Any]] = {
    "a crash": (None, lambda seed: (Crash(node=seed % 4, at=2 * MILLISECOND), Loss(rate=0.05 * (seed % 4)))),
    "a split": (None, lambda _: (Split(side=(3,), at=2 * MILLISECOND, lasting=300 * MILLISECOND),)),
    "joining": (1, lambda _: (Loss(rate=0.05),)),
    "joining and a crash": (2, lambda seed: (Loss(rate=0.05), Crash(node=1 + seed % 3, at=(4 + seed) * MILLISECOND))),
}
"""How many nodes found the group, and its faults."""
_NAMES = [column.name for column in EVENT_COLUMNS[1:]]


def traced(protocol: str, seed: int, case: str) -> tuple[RunConfig, list[EventRow]]:
    """The rows of a run."""
    founders, faults = CASES[case]
    kind: Any = by_node(protocol, founders)
    config = RunConfig(
        protocol=protocol,
        group=GroupConfig(nodes=4, views=True, sequencer=SequencerConfig(resilience=4)),
        network=Network(channel=kind.needs),
        workload=Workload(messages=30, spread=0.5 if protocol in {"spo", "st"} else 1.0),
        faults=faults(seed),
        seed=seed,
    )
    rows: list[EventRow] = []
    result = Simulation(config, rows.extend, machine=kind).run()
    assert not result.stalled
    return config, rows


def run_row(config: RunConfig) -> dict[str, Any]:
    """The row of such a run, which came to its end."""
    text = msgspec.json.encode({"group": config.group}).decode()
    row = {"run": "r", "protocol": config.protocol, "nodes": config.group.nodes, "aborted": False, "complete": True}
    return {**row, "config": text, "sent": None}


def audited(config: RunConfig, rows: list[EventRow]) -> Verdict:
    """By the reference audit."""
    verdict = Verdict()
    columns = dict(zip(_NAMES, map(list, zip(*rows, strict=True)), strict=True))
    check_run(run_row(config), [{name: columns[name] for name in ALL_COLUMNS}], None, verdict)
    return verdict
