"""The events of a run's event queue: inputs of machines, units in flight, and faults of nodes."""

from functools import lru_cache

from ordercast.model.faults import NodeFault
from ordercast.model.machine import Drained, Enter, Input, Receive, Send, TimerFired
from ordercast.model.units import Unit


class Lost:
    """A lost unit would have arrived now: it is recorded."""

    __slots__ = ("cause", "unit")

    def __init__(self, unit: Unit, cause: str) -> None:
        self.unit, self.cause = unit, cause


class AtLine:
    """A unit reaches the line to a node, which transmits one unit after the other, or drops it."""

    __slots__ = ("size", "what")

    def __init__(self, what: "Arrival | Receive", size: int) -> None:
        self.what, self.size = what, size


class Arrival:
    """A unit reaches a node with a receive buffer, which takes or drops it."""

    __slots__ = ("event",)

    def __init__(self, event: Receive) -> None:
        self.event = event


class Departure:
    """A node has finished sending a unit, which took time: the unit leaves it."""

    __slots__ = ("output",)

    def __init__(self, output: Send) -> None:
        self.output = output


class LoopBack:
    """A unit that a node sent to itself, without the network, is handed to it."""

    __slots__ = ("event",)

    def __init__(self, event: Receive) -> None:
        self.event = event


class DiskSynced:
    """The disk of a node has all that was written to its log."""

    __slots__ = ()


class StartAgain:
    """The process of a node starts again, as another node."""

    __slots__ = ("old",)

    def __init__(self, old: int) -> None:
        self.old = old


PendingEvent = Input | Lost | AtLine | Arrival | Departure | LoopBack | NodeFault | Enter | DiskSynced | StartAgain
DRAINED = Drained()


@lru_cache(maxsize=1 << 12)
def timer(name: str) -> TimerFired:
    """The input of a timer of this name."""
    return TimerFired(name)
