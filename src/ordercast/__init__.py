"""ordercast: ordered group communication over networks that lose messages.

`join` makes this process a member of a group. Besides, here are the values that people write down: configurations and
errors. What works with them has a room of its own: `ordercast.simulator.simulate` runs a configuration,
`ordercast.audit.audit` judges its trace.
"""

from typing import TYPE_CHECKING, Any

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
from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Miss, Pause, Split, UnitKind
from ordercast.model.runs import Channel, Network, Pattern, Record, RunConfig, Workload
from ordercast.model.services import Service

if TYPE_CHECKING:
    from ordercast.live.events import Message, Receipt
    from ordercast.live.group import Group
    from ordercast.live.joining import join
    from ordercast.live.stats import Stats

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
    "Record",
    "Recovery",
    "Rules",
    "RunConfig",
    "SequencerConfig",
    "SequencerReadings",
    "Service",
    "Split",
    "Stats",
    "Timing",
    "TraceError",
    "UnitKind",
    "Workload",
    "__version__",
    "join",
]

_LIVE = {"Group": "group", "Message": "events", "Receipt": "events", "Stats": "stats", "join": "joining"}


def __getattr__(name: str) -> Any:
    """Live groups are loaded when they are asked for: sockets and protocols are nothing that a simulation needs."""
    if name not in _LIVE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    found = getattr(import_module(f"ordercast.live.{_LIVE[name]}"), name)
    globals()[name] = found
    return found
