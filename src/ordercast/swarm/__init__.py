"""Random runs by the thousand: generated, audited, and those that fail shrunk."""

from ordercast.swarm.draw import draw_config
from ordercast.swarm.run_audit import Failure, failures_of
from ordercast.swarm.shrink import Shrunk, shrink

__all__ = ["Failure", "Shrunk", "draw_config", "failures_of", "shrink"]
