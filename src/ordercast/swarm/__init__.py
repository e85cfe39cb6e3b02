"""Random runs by the thousand: drawn, judged, and what fails made as small as it can be."""

from ordercast.swarm.draw import draw_config
from ordercast.swarm.judging import Failure, failures_of

__all__ = ["Failure", "draw_config", "failures_of"]
