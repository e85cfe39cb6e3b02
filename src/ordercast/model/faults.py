"""Faults of a simulated run, as data. `simulator.fault_rules` and `simulator.simulation` apply them.

Times are virtual nanoseconds from the start. A fault with `until` stops then.
"""

from enum import Enum

from ordercast.model.config import ConfigValue, require


class UnitKind(Enum):
    """The kind of unit that a scripted fault affects."""

    DATA = "data"
    """First transmissions of data units."""
    COPY = "copy"
    """Retransmissions."""
    CONTROL = "control"
    """Units without data."""
    ANY = "any"


class Loss(ConfigValue, tag="loss", frozen=True, kw_only=True):
    """Each receiver loses each unit with this probability; `shared`: all receivers of a unit lose it together."""

    rate: float
    shared: bool = False
    until: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.rate < 1, f"the loss rate must be at least 0 and below 1, not {self.rate:g}")


class Bursts(ConfigValue, tag="bursts", frozen=True, kw_only=True):
    """Gilbert–Elliott loss: each receiver alternates between a good and a bad state of random duration."""

    well: int
    """Mean duration of the good state, without loss."""
    bad: int
    """Mean duration of the bad state."""
    rate: float = 1.0
    """The probability of loss in the bad state."""
    until: int | None = None

    def __post_init__(self) -> None:
        require(self.well > 0 and self.bad > 0, f"bursts need positive mean times, not well={self.well} bad={self.bad}")
        require(0 < self.rate <= 1, f"the loss rate of bursts must be above 0 and at most 1, not {self.rate:g}")


class Duplicates(ConfigValue, tag="duplicates", frozen=True, kw_only=True):
    """Each receiver receives each unit twice with this probability."""

    rate: float
    until: int | None = None

    def __post_init__(self) -> None:
        require(0 <= self.rate <= 1, f"the rate of duplicates must be from 0 to 1, not {self.rate:g}")


class Miss(ConfigValue, tag="miss", frozen=True, kw_only=True):
    """Scripted loss: a node loses the nth unit of a kind from a source, counted from 1 in the order transmitted."""

    node: int
    source: int
    nth: int
    kind: UnitKind = UnitKind.DATA

    def __post_init__(self) -> None:
        require(self.nth >= 1, f"`nth` counts units from 1, not {self.nth}")


class Twice(ConfigValue, tag="twice", frozen=True, kw_only=True):
    """Scripted duplicate: a node receives the nth unit of a kind from a source twice, counted as for `Miss`."""

    node: int
    source: int
    nth: int
    kind: UnitKind = UnitKind.DATA

    def __post_init__(self) -> None:
        require(self.nth >= 1, f"`nth` counts units from 1, not {self.nth}")


class Pause(ConfigValue, tag="pause", frozen=True, kw_only=True):
    """A node does nothing for a while; arriving units wait."""

    node: int
    at: int
    lasting: int

    def __post_init__(self) -> None:
        require(
            self.at >= 0 and self.lasting > 0,
            f"a pause needs `at` >= 0 and `lasting` > 0, not at={self.at} lasting={self.lasting}",
        )


class Split(ConfigValue, tag="split", frozen=True, kw_only=True):
    """A network partition: no unit crosses between one side and the rest; `one_way`: none that the side sends."""

    side: tuple[int, ...]
    at: int
    lasting: int
    one_way: bool = False

    def __post_init__(self) -> None:
        require(self.side, "a split needs at least one node in `side`")
        require(
            self.at >= 0 and self.lasting > 0,
            f"a split needs `at` >= 0 and `lasting` > 0, not at={self.at} lasting={self.lasting}",
        )


class Crash(ConfigValue, tag="crash", frozen=True, kw_only=True):
    """A node stops permanently."""

    node: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a crash needs `at` >= 0, not {self.at}")


class Join(ConfigValue, tag="join", frozen=True, kw_only=True):
    """A node that is no founder of the group starts, and joins it."""

    node: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a join needs `at` >= 0, not {self.at}")


class Leave(ConfigValue, tag="leave", frozen=True, kw_only=True):
    """A node sends no more, and leaves the group when its messages have arrived."""

    node: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a leave needs `at` >= 0, not {self.at}")


class Quit(ConfigValue, tag="quit", frozen=True, kw_only=True):
    """The host of a node gives the group up: it delivers what is certain, and takes part no more."""

    node: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a quit needs `at` >= 0, not {self.at}")


class Return(ConfigValue, tag="return", frozen=True, kw_only=True):
    """The process of a node starts again and joins under its old name, as a new node; if it still ran, it ends first.

    The new nodes are the last ones of the run: see `returned_nodes`.
    """

    node: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a return needs `at` >= 0, not {self.at}")


class Restart(ConfigValue, tag="restart", frozen=True, kw_only=True):
    """A node with a log is killed, and started again with what is on its disk, as a new node.

    The new nodes are the last ones of the run, with those of `Return`: see `returned_nodes`.
    """

    node: int
    at: int
    after: int
    """How long later it starts again."""
    power: bool = True
    """Its machine loses power: what was not synced may be on the disk, in any part and order. Otherwise only the
    process is killed, and the disk has all that it wrote."""

    def __post_init__(self) -> None:
        require(
            self.at >= 0 and self.after > 0,
            f"a restart needs `at` >= 0 and `after` > 0, not at={self.at} after={self.after}",
        )


class DiskFailure(ConfigValue, tag="disk", frozen=True, kw_only=True):
    """From a time on every write and sync of a node's disk fails, having done some of its work; it leaves the group."""

    node: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a failing disk needs `at` >= 0, not {self.at}")


class Suspicion(ConfigValue, tag="suspect", frozen=True, kw_only=True):
    """A node suspects another one, whether that has failed or not."""

    node: int
    by: int
    at: int

    def __post_init__(self) -> None:
        require(self.at >= 0, f"a suspicion needs `at` >= 0, not {self.at}")
        require(self.node != self.by, "a node does not suspect itself: `node` and `by` must differ")


Scripted = Miss | Twice
"""Faults that affect one unit on its way to one node."""
LogFault = Restart | DiskFailure
"""Faults that only groups with logs have."""
MembershipFault = Join | Leave | Quit | Return | Suspicion | LogFault
"""Faults that only groups with views have."""
NodeFault = Pause | Crash | Join | Leave | Quit | Return | Suspicion | LogFault
"""Faults that happen to nodes, at a time."""
Fault = (
    Loss
    | Bursts
    | Duplicates
    | Miss
    | Twice
    | Pause
    | Split
    | Crash
    | Join
    | Leave
    | Quit
    | Return
    | Suspicion
    | LogFault
)
"""A fault of a simulated run: any of these."""


def nodes_named(fault: Fault) -> tuple[int, ...]:
    """The nodes that a fault names."""
    match fault:
        case Miss(node=node, source=source) | Twice(node=node, source=source):
            return (node, source)
        case Pause(node=node) | Crash(node=node) | Join(node=node) | Leave(node=node) | Return(node=node):
            return (node,)
        case Restart(node=node) | DiskFailure(node=node) | Quit(node=node):
            return (node,)
        case Suspicion(node=node, by=by):
            return (node, by)
        case Split(side=side):
            return side
    return ()


def back_at(fault: Return | Restart) -> int:
    """When the new node starts."""
    return fault.at + fault.after if isinstance(fault, Restart) else fault.at


def returned_nodes(faults: tuple[Fault, ...], nodes: int) -> dict[int, Return | Restart]:
    """By node: the return or restart that it comes from. The earliest one has the lowest of the last nodes."""
    returns = sorted((fault for fault in faults if isinstance(fault, Return | Restart)), key=back_at)
    return dict(enumerate(returns, start=nodes - len(returns)))


def founders_of(faults: tuple[Fault, ...], nodes: int) -> tuple[int, ...]:
    """The nodes that found the group: all that neither join nor return."""
    later = {fault.node for fault in faults if isinstance(fault, Join)} | returned_nodes(faults, nodes).keys()
    return tuple(node for node in range(nodes) if node not in later)


def start_times(faults: tuple[Fault, ...], nodes: int) -> dict[int, int]:
    """When those start that do not found the group, by node."""
    joins = {fault.node: fault.at for fault in faults if isinstance(fault, Join)}
    return joins | {node: back_at(fault) for node, fault in returned_nodes(faults, nodes).items()}
