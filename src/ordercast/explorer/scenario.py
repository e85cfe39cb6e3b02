"""A scenario: a group of machines, what their applications send, what is promised, and the budget of faults."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ordercast.model.config import GroupConfig, require
from ordercast.model.machine import Echo, Level, Submit
from ordercast.model.nodes import mask_of, members, name_of
from ordercast.model.runs import Channel
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.registry import MachineClass

_MOST = 1_000_000  # maximum of each budget
_ITEM = re.compile(r"(\w+)(?:\[(\d+)\])?(?:\{(\d+(?:,\d+)*)\})?")


def scripts(*lines: str) -> tuple[tuple[Submit, ...], ...]:
    """What each node sends, in the papers' notation.

    "x{2,3} y{1}" is x to E2 and E3, then y to E1; "z" is z to all nodes, and "h[5]" has priority 5.
    """
    return tuple(tuple(_submission(item, len(lines)) for item in line.split()) for line in lines)


def format_script(script: Iterable[Submit]) -> str:
    """A script in this notation."""
    return " ".join(map(format_submission, script))


def format_submission(submission: Submit) -> str:
    """One item of a script."""
    return _format_item(submission.payload, submission.priority, submission.destinations)


def format_packet(packet: Packet) -> str:
    """A packet, which need not be in a script."""
    carried = _format_item(packet.payload or b"nothing", packet.priority, packet.destinations)
    return f"{carried} as message {packet.first} of {name_of(packet.source)}"


def _format_item(payload: bytes, priority: int, destinations: int) -> str:
    nodes = ",".join(str(node + 1) for node in members(destinations))
    urgency = f"[{priority}]" if priority else ""
    return f"{payload.decode(errors='replace')}{urgency}{{{nodes}}}"


def _submission(item: str, nodes: int) -> Submit:
    match = _ITEM.fullmatch(item)
    require(match, f"{item!r} is not an item of a script; write x{{2,3}}, or z for all nodes, or h[5] with a priority")
    assert match is not None
    name, priority, named = match.groups()
    to = [int(node) for node in named.split(",")] if named else list(range(1, nodes + 1))
    require(all(1 <= node <= nodes for node in to), f"{item!r} goes to a node that is not one of E1 to E{nodes}")
    require(len(priority or "") <= 3 and int(priority or 0) <= 255, f"{item!r} has a priority above 255")
    return Submit(mask_of(node - 1 for node in to), (len(name),), name.encode(), int(priority or 0))


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a service promises, besides delivering to each node all and only what is addressed to it, once."""

    sender_order: bool = True
    """Each sender's order is kept."""
    urgent_first: bool = False
    """Of what is pre-acknowledged, higher priorities are delivered first, unless a marker ends the run; each sender's
    order is kept within one priority only."""
    one_order: bool = False
    """The orders of delivery of all nodes together have no cycle."""
    in_pairs: bool = False
    """Only in pairs: any two nodes deliver what is addressed to both in the same order."""
    ladder: bool = True
    """Pre-acknowledged means accepted by every destination, acknowledged pre-acknowledged by every destination."""
    delivers_at: Level = Level.ACKNOWLEDGED
    """With `ladder`: the level that a packet has when it is delivered."""
    liveness_goal: Level | None = Level.ACKNOWLEDGED
    """Liveness: the level that every message reaches once no more units are lost; the highest level includes
    delivery. None: liveness is not checked."""
    never_less: tuple[str, ...] = ()
    """Vectors of the machine that never decrease, such as the papers' TREQ."""
    never_discards: tuple[str, ...] = ()
    """Reasons for which a machine never discards a unit."""
    views: bool = False
    """The group goes on without nodes that fail: promises hold for the survivors, in one order. Pre-acknowledged means
    accepted by all members of a node's view; there is no level above it."""
    most_under_way: int = 0
    """Maximum number of units in flight to one node; 0: unlimited."""
    uniform: bool = False
    """Uniform agreement: nodes that failed delivered a prefix of what the survivors deliver."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A group, its scripts, its channel, its promises, and its budget of faults: what a search searches.

    `scenario` makes one; its fields are not part of the public interface.
    """

    machine: MachineClass
    group: GroupConfig
    scripts: tuple[tuple[Submit, ...], ...]
    promise: Promise
    channel: Channel = Channel.MANY
    losses: int = 0
    loses: tuple[str, ...] = ()
    """Units that may be lost: "a", a message; "a at E3", there; "status", a unit without data. Empty: all."""
    duplicates: int = 0
    firings: int = 0
    """Timers that fire during the search; in the fair continuations they fire without limit."""
    fires: tuple[str, ...] = ()
    """Timers that fire during the search; empty: all."""
    patient: bool = False
    """Timers fire only when no unit is in flight: fewer schedules."""
    drained: bool = False
    """A machine may get the input `Drained`: no unit is waiting for it."""
    crashes: int = 0
    """Nodes that crash."""
    suspicions: int = 0
    """With views: suspicions, right or wrong, of any member by any other."""
    at_once: int = 1
    """How many members one suspicion may name."""
    suspects: tuple[str, ...] = ()
    """Suspicions that may occur, such as "E2 suspects E1"; empty: all."""
    leaves: int = 0
    """With membership: members that leave."""
    give_ups: int = 0
    """Nodes whose hosts give the group up: they deliver what is certain, and take part no more."""
    joins: int = 0
    """With membership: nodes behind the founders, so many of them, found the group not, but join it."""
    returns: tuple[str, ...] = ()
    """With membership: founders, such as "E3", that may crash (besides `crashes`) and then return under their names:
    the last nodes are their new incarnations, in this order. These may be named, too: then they crash again."""
    logs: bool = False
    """With membership: members have durable logs. They are synced at any moment, a crash leaves any beginning of
    what was not synced, and those that return do so with what their disk has."""
    damages: int = 0
    """With logs: disks that are damaged or lost in a crash."""
    rounds: int = 40
    """Rounds of timers within which a fair continuation must reach the goal."""

    def __post_init__(self) -> None:
        for name in ("losses", "duplicates", "firings", "crashes", "suspicions", "leaves", "damages", "give_ups"):
            require(getattr(self, name) <= _MOST, f"`{name}` must be at most {_MOST:,}, not {getattr(self, name):,}")
        for name in ("leaves", "joins"):
            require(self.group.views or not getattr(self, name), f"`{name}` needs a group with views (--views)")
        require(
            self.group.views or self.promise.views or not self.suspicions,
            "`suspicions` needs a group with views (--views)",
        )
        require(
            not self.give_ups or self.group.views or self.promise.views or self.promise.liveness_goal is None,
            "`give_ups` needs a group with views (--views), or --liveness-goal nothing: others wait for a node that "
            "gives up",
        )
        require(self.at_once >= 1, f"`at_once` must be at least 1, not {self.at_once}")
        require(self.joins < self.group.nodes, f"`joins` must be less than the number of nodes, not {self.joins}")
        require(self.group.views or not self.returns, "`returns` needs a group with views (--views)")
        require(self.group.views or not self.logs, "`logs` needs a group with views (--views)")
        require(self.logs or not self.damages, "`damages` needs nodes with logs (--logs)")
        first = self.group.nodes - len(self.returns)
        for at, name in enumerate(self.returns):
            names = [name_of(node) for node in (*range(self.founders()), *range(first, first + at))]
            require(
                name in names and self.returns.count(name) == 1,
                f"`returns` names founders, and those that return before, each once, such as "
                f"{names[-1] if names else 'E1'!r}, not {name!r}",
            )

    def founders(self) -> int:
        """The nodes that found the group: the first ones."""
        return self.group.nodes - self.joins - len(self.returns)

    @cached_property
    def returning(self) -> dict[int, int]:
        """Nodes that are new incarnations, and of which nodes."""
        return dict(returning(self.returns, self.group.nodes))

    def process(self, node: int) -> int:
        """The first node that was the process of this one."""
        while node in self.returning:
            node = self.returning[node]
        return node

    @cached_property
    def items(self) -> tuple["Item", ...]:
        """All submissions of the scripts; an item's index is its number."""
        found: list[Item] = []
        for source, script in enumerate(self.scripts):
            first, earlier = 0, [0] * self.group.nodes
            for submission in script:
                number = len(found)
                found.append(Item(number, source, first, submission, tuple(earlier)))
                for node in members(submission.destinations):
                    earlier[node] |= 1 << number
                first += len(submission.lengths)
        return tuple(found)

    @cached_property
    def of_priority(self) -> dict[int, int]:
        """By priority: its items, as a bit mask."""
        found: dict[int, int] = {}
        for item in self.items:
            priority = item.submission.priority
            found[priority] = found.get(priority, 0) | 1 << item.number
        return found

    @cached_property
    def _by_first(self) -> dict[tuple[int, int], "Item"]:
        return {(item.source, item.first): item for item in self.items}

    def item_of(self, packet: Packet) -> "Item | None":
        """The item that a packet carries; None if its content was not submitted."""
        item = self._by_first.get((packet.source, packet.first))
        if item is None:
            return None
        submitted = item.submission
        to = packet.destinations  # with membership: those that are members
        extra = to & ~submitted.destinations if self.group.views else to ^ submitted.destinations
        carried = (packet.lengths, packet.payload, packet.priority)
        asked = (submitted.lengths, submitted.payload, submitted.priority)
        return item if carried == asked and not extra else None

    def may_lose(self, unit: Unit, node: int) -> bool:
        """True if a unit may be lost on its way to a node."""
        return not self.loses or bool({unit_name(unit), f"{unit_name(unit)} at {name_of(node)}"} & set(self.loses))

    def echo(self) -> Echo:
        """How the machines receive their own units."""
        made: Any = self.machine(0, self.group)
        echo: Echo = made.echo
        return echo


def returning(names: Sequence[str], nodes: int) -> tuple[tuple[int, int], ...]:
    """The new incarnations of nodes with these names, the last ones of so many nodes, and which these are."""
    known = {name_of(node): node for node in range(nodes)}
    return tuple((nodes - len(names) + at, known.get(name, -1)) for at, name in enumerate(names))


def unit_name(unit: Unit) -> str:
    """The name of a unit: of a message its payload, else its kind."""
    if isinstance(unit, DataUnit):
        return unit.packet.payload.decode() or "nothing"
    return "request" if unit.asks_for() else unit.label()


@dataclass(frozen=True)
class Item:
    """One submission of a script, and the packet that carries it."""

    number: int
    source: int
    first: int
    submission: Submit
    earlier_to: tuple[int, ...]
    """By node: earlier items of the same source to that node, as a bit mask."""

    @cached_property
    def destinations(self) -> tuple[int, ...]:
        """The nodes that it is addressed to."""
        return members(self.submission.destinations)

    def __str__(self) -> str:
        return format_submission(self.submission)

    def describe(self) -> str:
        """With its source."""
        return f"{self} of {name_of(self.source)}"
