"""The data pipeline on Spark: sweeps of simulations, audits of traces of any size.

Every function takes the session as an argument; only the command line opens one.
"""

from ordercast.pipeline.audit.spark import Judged, audit, audit_folders
from ordercast.pipeline.sweep.grid import read_grid
from ordercast.pipeline.sweep.measure import measure
from ordercast.pipeline.sweep.source import register
from ordercast.pipeline.sweep.sweep import SweepResult, require_sweepable, sweep

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
