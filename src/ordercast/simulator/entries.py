"""What waits on the heap of a run for its time: inputs of machines, units under way, and faults of nodes."""

from functools import lru_cache

from ordercast.model.faults import Crash, Pause
from ordercast.model.machine import Drained, Input, Receive, TimerFired
from ordercast.model.units import Unit


class Lost:
    """The moment at which a lost unit would have arrived."""

    __slots__ = ("cause", "unit")

    def __init__(self, unit: Unit, cause: str) -> None:
        self.unit, self.cause = unit, cause


class Arrival:
    """A unit reaches a node, whose buffer takes it or not."""

    __slots__ = ("event",)

    def __init__(self, event: Receive) -> None:
        self.event = event


Entry = Input | Lost | Arrival | Pause | Crash
DRAINED = Drained()


@lru_cache(maxsize=1 << 12)
def timer(name: str) -> TimerFired:
    """The input that a timer of this name becomes."""
    return TimerFired(name)
