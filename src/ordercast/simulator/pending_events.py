"""What waits on the heap of a run for its time: inputs of machines, units under way, and faults of nodes."""

from functools import lru_cache

from ordercast.model.faults import Crash, Pause
from ordercast.model.machine import Drained, Input, Receive, Send, TimerFired
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


class Departure:
    """A node that takes its time to send has got so far: the unit leaves it."""

    __slots__ = ("output",)

    def __init__(self, output: Send) -> None:
        self.output = output


class LoopBack:
    """A unit that a node sent itself, which never touched the network, is handed to it."""

    __slots__ = ("event",)

    def __init__(self, event: Receive) -> None:
        self.event = event


PendingEvent = Input | Lost | Arrival | Departure | LoopBack | Pause | Crash
DRAINED = Drained()


@lru_cache(maxsize=1 << 12)
def timer(name: str) -> TimerFired:
    """The input that a timer of this name becomes."""
    return TimerFired(name)
