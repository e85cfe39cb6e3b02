"""Simulations: configurations of runs, the simulator, and the audit of traces.

    from ordercast.simulation import GroupConfig, RunConfig, simulate

    result = simulate(RunConfig(protocol="st", group=GroupConfig(nodes=3)))

On Spark: `ordercast.pipeline`.
"""

from ordercast.audit import Verdict, audit
from ordercast.model.config import (
    GroupConfig,
    HearsayRule,
    PaperRules,
    PriorityConfig,
    PriorityReadings,
    Recovery,
    Rules,
    SequencerConfig,
    SequencerReadings,
    Timing,
)
from ordercast.model.errors import ConfigError, OrdercastError, TraceError
from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Miss, Pause, Split, UnitKind
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, Sending, Workload
from ordercast.model.runs import Record as TraceDetail
from ordercast.model.services import Service
from ordercast.simulator import RunResult, simulate

__all__ = [
    "Bursts",
    "Channel",
    "ConfigError",
    "Crash",
    "Duplicates",
    "Fault",
    "GroupConfig",
    "HearsayRule",
    "Loss",
    "Miss",
    "Network",
    "OrdercastError",
    "PaperRules",
    "Pattern",
    "Pause",
    "PriorityConfig",
    "PriorityReadings",
    "Recovery",
    "Rules",
    "RunConfig",
    "RunResult",
    "Sending",
    "SequencerConfig",
    "SequencerReadings",
    "Service",
    "Split",
    "Timing",
    "TraceDetail",
    "TraceError",
    "UnitKind",
    "Verdict",
    "Workload",
    "audit",
    "simulate",
]
