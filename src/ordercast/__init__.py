"""ordercast: ordered group communication over networks that lose messages.

`join` makes this process a member of a live group. The public names are those listed in `__all__` here (live groups and
errors), in `ordercast.simulation` (simulations and traces), in `ordercast.log` (durable logs), in
`ordercast.replicated` (replicated objects) and in `ordercast.pipeline` (simulations and audits on Spark); everything
else may change without notice.
"""

import os
from typing import TYPE_CHECKING

from ordercast.model.errors import (
    CommandFailed,
    ConfigError,
    Diverged,
    GroupAborted,
    GroupClosed,
    GroupError,
    JoinError,
    LocalProtocolError,
    LogDamaged,
    LogError,
    OrdercastError,
    PipelineError,
    TraceError,
    Undelivered,
)

if TYPE_CHECKING:
    from ordercast.live.events import Blocked, Excluded, Message, Receipt, Unblocked, View
    from ordercast.live.group import Group
    from ordercast.live.join import Joining, join
    from ordercast.live.log_settings import LogSettings
    from ordercast.live.metrics_server import serve_metrics
    from ordercast.live.settings import Order, Settings
    from ordercast.live.state_transfer.application import State
    from ordercast.live.stats import Stats
    from ordercast.live.sync_group import SyncGroup
    from ordercast.model.machine import Level
    from ordercast.wire.keys import GroupKeys

__version__ = "0.2.0.dev0"
__all__ = [
    "Blocked",
    "CommandFailed",
    "ConfigError",
    "Diverged",
    "Excluded",
    "Group",
    "GroupAborted",
    "GroupClosed",
    "GroupError",
    "GroupKeys",
    "JoinError",
    "Joining",
    "Level",
    "LocalProtocolError",
    "LogDamaged",
    "LogError",
    "LogSettings",
    "Message",
    "Order",
    "OrdercastError",
    "PipelineError",
    "Receipt",
    "Settings",
    "State",
    "Stats",
    "SyncGroup",
    "TraceError",
    "Unblocked",
    "Undelivered",
    "View",
    "__version__",
    "join",
    "serve_metrics",
]

if os.environ.get("ORDERCAST_PURE"):  # before anything is imported that may be compiled
    from ordercast.model.compiled import use_sources

    use_sources()

if not TYPE_CHECKING:  # type checkers see the imports above, and so report a misspelt name
    _MODULES = {
        "Blocked": "live.events",
        "Excluded": "live.events",
        "Group": "live.group",
        "GroupKeys": "wire.keys",
        "Joining": "live.join",
        "Level": "model.machine",
        "LogSettings": "live.log_settings",
        "Message": "live.events",
        "Order": "live.settings",
        "Receipt": "live.events",
        "Settings": "live.settings",
        "State": "live.state_transfer.application",
        "Stats": "live.stats",
        "SyncGroup": "live.sync_group",
        "Unblocked": "live.events",
        "View": "live.events",
        "join": "live.join",
        "serve_metrics": "live.metrics_server",
    }

    def __getattr__(name):
        """Loads what is needed for live groups when it is first used: simulations do not need it."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 (not needed before)

        found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found

    def __dir__():
        """All public names, loaded or not, and nothing that this module only uses."""
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
