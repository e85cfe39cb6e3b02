"""Random runs by the thousand: drawn, judged, and what fails made as small as it can be."""

from ordercast.swarm.draw import draw_config
from ordercast.swarm.judging import Failure, failures_of
from ordercast.swarm.shrink import Shrunk, shrink

__all__ = ["Failure", "Shrunk", "draw_config", "failures_of", "shrink"]
