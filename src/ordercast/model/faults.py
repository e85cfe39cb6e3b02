"""The faults that a run can be told to suffer, as data. What they do is the simulator's.

Times are virtual nanoseconds from the start. A fault with `until` stops then.
"""

from enum import Enum

from ordercast.model.config import ConfigValue, require


class UnitKind(Enum):
    """What a scripted fault waits for."""

    DATA = "data"
    """First transmissions of data units."""
    COPY = "copy"
    """Retransmissions."""
    CONTROL = "control"
    """Everything else."""
    ANY = "any"


class Loss(ConfigValue, tag="loss", frozen=True, kw_only=True):
    """Each receiver loses each unit with this chance; `shared`: all receivers of a unit lose it together."""

    rate: float
    shared: bool = False
    until: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.rate < 1, f"the loss rate must be at least 0 and below 1, not {self.rate:g}")


class Bursts(ConfigValue, tag="bursts", frozen=True, kw_only=True):
    """Gilbert–Elliott loss, stepped by time: each receiver is well or bad for times drawn around these means."""

    well: int
    """Mean time without loss."""
    bad: int
    """Mean length of a burst."""
    rate: float = 1.0
    """The chance of loss while bad."""
    until: int | None = None

    def __post_init__(self) -> None:
        require(self.well > 0 and self.bad > 0, "bursts need positive mean times `well` and `bad`")
        require(0 < self.rate <= 1, "the loss rate of bursts must be above 0 and at most 1")


class Duplicates(ConfigValue, tag="duplicates", frozen=True, kw_only=True):
    """Each receiver gets each unit twice with this chance."""

    rate: float
    until: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.rate <= 1, "the rate of duplicates must be from 0 to 1")


class Miss(ConfigValue, tag="miss", frozen=True, kw_only=True):
    """Scripted: a node misses the nth unit of a kind from a source, counted from 1 in the order transmitted."""

    node: int
    source: int
    nth: int
    kind: UnitKind = UnitKind.DATA

    def __post_init__(self) -> None:
        require(self.nth >= 1, "a missed unit is counted from 1")


class Twice(ConfigValue, tag="twice", frozen=True, kw_only=True):
    """Scripted: a node gets the nth unit of a kind from a source twice, counted like what is missed."""

    node: int
    source: int
    nth: int
    kind: UnitKind = UnitKind.DATA

    def __post_init__(self) -> None:
        require(self.nth >= 1, "a unit that comes twice is counted from 1")


class Pause(ConfigValue, tag="pause", frozen=True, kw_only=True):
    """A node does nothing for a while; what arrives waits."""

    node: int
    at: int
    lasting: int

    def __post_init__(self) -> None:
        require(self.at >= 0 and self.lasting > 0, "a pause needs `at` from 0 on and a positive `lasting`")


class Split(ConfigValue, tag="split", frozen=True, kw_only=True):
    """The nodes of one side and the rest lose what they send each other; `one_way`: only what the side sends out."""

    side: tuple[int, ...]
    at: int
    lasting: int
    one_way: bool = False

    def __post_init__(self) -> None:
        require(self.side, "a split needs at least one node on its side")
        require(self.at >= 0 and self.lasting > 0, "a split needs `at` from 0 on and a positive `lasting`")


class Crash(ConfigValue, tag="crash", frozen=True, kw_only=True):
    """A node stops for ever."""

    node: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, "a crash needs `at` from 0 on")


Scripted = Miss | Twice
"""What befalls one unit on its way to one node."""
Fault = Loss | Bursts | Duplicates | Miss | Twice | Pause | Split | Crash


def nodes_named(fault: Fault) -> tuple[int, ...]:
    """The nodes that a fault names."""
    match fault:
        case Miss(node=node, source=source) | Twice(node=node, source=source):
            return (node, source)
        case Pause(node=node) | Crash(node=node):
            return (node,)
        case Split(side=side):
            return side
    return ()
