"""A deterministic simulator of the papers' lossy channels that runs the protocols' own machines."""

from ordercast.simulator.result import RunResult
from ordercast.simulator.simulate import simulate

__all__ = ["RunResult", "simulate"]
