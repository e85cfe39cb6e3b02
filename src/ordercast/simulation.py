"""Simulations: configurations of runs, the simulator, and the audit of traces.

    from ordercast.simulation import GroupConfig, RunConfig, simulate

    result = simulate(RunConfig(protocol="st", group=GroupConfig(nodes=3)))

On Spark: `ordercast.pipeline`.
"""

from ordercast.audit import ByProtocol, Finding, Names, Verdict, Violation, Witness, audit
from ordercast.model.config import (
    GroupConfig,
    LossInference,
    PaperRules,
    PriorityConfig,
    PriorityReadings,
    RecoveryPolicy,
    Rules,
    SequencerConfig,
    SequencerReadings,
    Timing,
)
from ordercast.model.errors import ConfigError, OrdercastError, TraceError
from ordercast.model.faults import (
    Bursts,
    Crash,
    DiskFailure,
    Duplicates,
    Fault,
    Join,
    Leave,
    Loss,
    Miss,
    Pause,
    Quit,
    Restart,
    Return,
    Split,
    Suspicion,
    Twice,
    UnitKind,
)
from ordercast.model.progress import Progress
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, ScriptedSend, TraceDetail, Workload
from ordercast.model.services import Service
from ordercast.simulator import RunResult, simulate
from ordercast.simulator.counters import Counters, Durations
from ordercast.trace.recorder import Sink
from ordercast.trace.schema import EventField, EventRow
from ordercast.trace.storage import Location, RemotePath, location

__all__ = [
    "Bursts",
    "ByProtocol",
    "Channel",
    "ConfigError",
    "Counters",
    "Crash",
    "DiskFailure",
    "Duplicates",
    "Durations",
    "EventField",
    "EventRow",
    "Fault",
    "Finding",
    "GroupConfig",
    "Join",
    "Leave",
    "Location",
    "Loss",
    "LossInference",
    "Miss",
    "Names",
    "Network",
    "OrdercastError",
    "PaperRules",
    "Pattern",
    "Pause",
    "PriorityConfig",
    "PriorityReadings",
    "Progress",
    "Quit",
    "RecoveryPolicy",
    "RemotePath",
    "Restart",
    "Return",
    "Rules",
    "RunConfig",
    "RunResult",
    "ScriptedSend",
    "SequencerConfig",
    "SequencerReadings",
    "Service",
    "Sink",
    "Split",
    "Suspicion",
    "Timing",
    "TraceDetail",
    "TraceError",
    "Twice",
    "UnitKind",
    "Verdict",
    "Violation",
    "Witness",
    "Workload",
    "audit",
    "location",
    "simulate",
]
