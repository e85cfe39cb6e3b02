"""The data pipeline on Spark: sweeps of simulations, audits of traces of any size.

Every function takes the session as an argument; only the command line opens one.
"""

from ordercast.pipeline.grid import read_grid
from ordercast.pipeline.measuring import measure
from ordercast.pipeline.source import register
from ordercast.pipeline.sweeping import SweepResult, require_sweepable, sweep

__all__ = ["SweepResult", "measure", "read_grid", "register", "require_sweepable", "sweep"]
