"""Every schedule of a small group, on the machines themselves: what a proof on paper would have to cover."""

from ordercast.explorer.explore import Report, Search
from ordercast.explorer.scenario import Promise, Scenario

__all__ = ["Promise", "Report", "Scenario", "Search"]
