"""The data pipeline on Spark: sweeps of simulations, audits of traces of any size.

Every function takes the session as an argument; only the command line opens one. What is named here is imported when
it is asked for: parts of this room judge traces without Spark, and should not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordercast.pipeline.auditing import Judged, audit, audit_folders
    from ordercast.pipeline.grid import read_grid
    from ordercast.pipeline.measuring import measure
    from ordercast.pipeline.source import register
    from ordercast.pipeline.sweeping import SweepResult, require_sweepable, sweep

__all__ = [
    "Judged",
    "SweepResult",
    "audit",
    "audit_folders",
    "measure",
    "read_grid",
    "register",
    "require_sweepable",
    "sweep",
]

_MODULES = {
    "auditing": ("Judged", "audit", "audit_folders"),
    "grid": ("read_grid",),
    "measuring": ("measure",),
    "source": ("register",),
    "sweeping": ("SweepResult", "require_sweepable", "sweep"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"ordercast.pipeline.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
