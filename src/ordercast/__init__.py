"""ordercast: ordered group communication over networks that lose messages.

`join` makes this process a member of a group. Besides, here are the values that people write down: configurations and
errors. What works with them has a room of its own: `ordercast.simulator.simulate` runs a configuration,
`ordercast.audit.audit` judges its trace.
"""

from typing import TYPE_CHECKING, Any

from ordercast.model.errors import (
    ConfigError,
    GroupAborted,
    GroupClosed,
    GroupError,
    JoinError,
    LocalProtocolError,
    OrdercastError,
    TraceError,
)

if TYPE_CHECKING:
    from ordercast.live.group import Group, Message
    from ordercast.live.joining import join
    from ordercast.live.parcels import Receipt
    from ordercast.live.stats import Stats
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
    from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Miss, Pause, Split, UnitKind
    from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload
    from ordercast.model.services import Service

__version__ = "0.1.0"
__all__ = [
    "Bursts",
    "Channel",
    "ConfigError",
    "Crash",
    "Duplicates",
    "Fault",
    "Group",
    "GroupAborted",
    "GroupClosed",
    "GroupConfig",
    "GroupError",
    "HearsayRule",
    "JoinError",
    "LocalProtocolError",
    "Loss",
    "Message",
    "Miss",
    "Network",
    "OrdercastError",
    "PaperRules",
    "Pattern",
    "Pause",
    "PriorityConfig",
    "PriorityReadings",
    "Receipt",
    "Recovery",
    "Rules",
    "RunConfig",
    "SequencerConfig",
    "SequencerReadings",
    "Service",
    "Split",
    "Stats",
    "Timing",
    "TraceDetail",
    "TraceError",
    "UnitKind",
    "Workload",
    "__version__",
    "join",
]

_MODULES = {
    "Bursts": "model.faults",
    "Channel": "model.runs",
    "Crash": "model.faults",
    "Duplicates": "model.faults",
    "Fault": "model.faults",
    "Group": "live.group",
    "GroupConfig": "model.config",
    "HearsayRule": "model.config",
    "Loss": "model.faults",
    "Message": "live.group",
    "Miss": "model.faults",
    "Network": "model.runs",
    "PaperRules": "model.config",
    "Pattern": "model.runs",
    "Pause": "model.faults",
    "PriorityConfig": "model.config",
    "PriorityReadings": "model.config",
    "Receipt": "live.parcels",
    "Recovery": "model.config",
    "Rules": "model.config",
    "RunConfig": "model.runs",
    "SequencerConfig": "model.config",
    "SequencerReadings": "model.config",
    "Service": "model.services",
    "Split": "model.faults",
    "Stats": "live.stats",
    "Timing": "model.config",
    "TraceDetail": "model.runs",
    "UnitKind": "model.faults",
    "Workload": "model.runs",
    "join": "live.joining",
}


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used: `ordercast --help` needs none of them."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    found = getattr(import_module(f"ordercast.{_MODULES[name]}"), name)
    globals()[name] = found
    return found
