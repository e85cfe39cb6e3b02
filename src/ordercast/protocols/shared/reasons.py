"""Why a node stopped or discarded a unit, and timers, as traces name them; the names are part of the trace format."""

GAP = "gap"
"""A number was skipped."""
INFERRED_LOSS = "hearsay"
"""A peer acknowledges what this node lacks: the papers' word. Also the timer after which its source is asked."""
STOPPED_BY_PEER = "told"
"""Another node has stopped, and asks this one to stop too."""
