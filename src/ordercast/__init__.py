"""ordercast: ordered group communication over networks that lose messages.

Here are the values that people write down: configurations and errors. What works with them has a room of its own:
`ordercast.simulator.simulate` runs a configuration, `ordercast.audit.audit` judges its trace.
"""

from ordercast.model.config import (
    GroupConfig,
    HearsayRule,
    PaperRules,
    PriorityConfig,
    Recovery,
    Rules,
    SequencerConfig,
    SequencerReadings,
    Timing,
)
from ordercast.model.errors import ConfigError, LocalProtocolError, OrdercastError, TraceError
from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Miss, Pause, Split, UnitKind
from ordercast.model.runs import Channel, Network, Pattern, Record, RunConfig, Workload
from ordercast.model.services import Service

__version__ = "0.1.0"
__all__ = [
    "Bursts",
    "Channel",
    "ConfigError",
    "Crash",
    "Duplicates",
    "Fault",
    "GroupConfig",
    "HearsayRule",
    "LocalProtocolError",
    "Loss",
    "Miss",
    "Network",
    "OrdercastError",
    "PaperRules",
    "Pattern",
    "Pause",
    "PriorityConfig",
    "Record",
    "Recovery",
    "Rules",
    "RunConfig",
    "SequencerConfig",
    "SequencerReadings",
    "Service",
    "Split",
    "Timing",
    "TraceError",
    "UnitKind",
    "Workload",
    "__version__",
]
