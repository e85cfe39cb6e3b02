"""Faults of units in flight: each rule sees a unit on its way to one node, and may lose or duplicate it.

A new fault needs more than a rule: docs/howto/add-a-fault.md lists all places. All rules are applied to every
unit, so that the draws and counts of one do not depend on the others. The first effect wins, but a loss overrides a
duplicate.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from ordercast.model.faults import (
    Bursts,
    Duplicates,
    Fault,
    Loss,
    Miss,
    NodeFault,
    Scripted,
    Split,
    Twice,
    UnitKind,
)
from ordercast.simulator.randomness import exponential, stream

DUPLICATED = "duplicated"
"""The effect of a rule that duplicates a unit; every other effect is the cause of a loss."""
OVERRUN = "overrun"
"""The cause of a loss at a full receive buffer."""
QUEUE_FULL = "queue full"
"""The cause of a loss before the medium, or before a line."""


class Flight:
    """A unit in flight, as a rule sees it."""

    __slots__ = ("control", "copy", "number", "sender", "time")

    def __init__(self, number: int, time: int, sender: int, *, control: bool, copy: bool) -> None:
        self.number = number  # counts transmissions
        self.time = time
        self.sender = sender
        self.control = control
        self.copy = copy


class Rule(Protocol):
    """The rule of a fault."""

    def apply(self, flight: Flight, receiver: int) -> str | None:
        """The effect on a unit on its way to a receiver; None: this rule does not affect it."""
        ...


class LossRule:
    """Independent loss, or loss shared by all receivers of a unit."""

    def __init__(self, fault: Loss, seed: int, place: int) -> None:
        self._fault, self._random = fault, stream(seed, f"loss/{place}")
        self._drawn, self._lost = -1, False

    def apply(self, flight: Flight, receiver: int) -> str | None:
        """A draw for each receiver; shared: one for each unit."""
        del receiver
        fault = self._fault
        if fault.until is not None and flight.time >= fault.until:
            return None
        if not fault.shared:
            return "loss" if self._random.random() < fault.rate else None
        if self._drawn != flight.number:
            self._drawn, self._lost = flight.number, self._random.random() < fault.rate
        return "shared loss" if self._lost else None


class BurstsRule:
    """Gilbert–Elliott loss: each receiver alternates between a good and a bad state."""

    def __init__(self, fault: Bursts, seed: int, place: int, nodes: int) -> None:
        self._fault, self._random = fault, stream(seed, f"bursts/{place}")
        self._bad = [False] * nodes
        self._change_at = [exponential(self._random, fault.well) for _ in range(nodes)]

    def apply(self, flight: Flight, receiver: int) -> str | None:
        """Lost while the receiver is bad, with the burst's rate."""
        fault = self._fault
        if fault.until is not None and flight.time >= fault.until:
            return None
        while self._change_at[receiver] <= flight.time:
            self._bad[receiver] = not self._bad[receiver]
            mean = fault.bad if self._bad[receiver] else fault.well
            self._change_at[receiver] += 1 + exponential(self._random, mean)
        return "burst" if self._bad[receiver] and self._random.random() < fault.rate else None


class DuplicatesRule:
    """Random duplication."""

    def __init__(self, fault: Duplicates, seed: int, place: int) -> None:
        self._fault, self._random = fault, stream(seed, f"duplicates/{place}")

    def apply(self, flight: Flight, receiver: int) -> str | None:
        """A draw for each receiver."""
        del receiver
        if self._fault.until is not None and flight.time >= self._fault.until:
            return None
        return DUPLICATED if self._random.random() < self._fault.rate else None


class UnitCounts:
    """Numbers units by source and kind, in the order transmitted, as scripted faults name them."""

    def __init__(self) -> None:
        self._counted: Counter[tuple[int, UnitKind]] = Counter()

    def names_of(self, flight: Flight) -> list[tuple[int, UnitKind, int]]:
        """Counts a unit; its names are its source, each kind that it is of, and its number among those."""
        kinds = [UnitKind.ANY]
        if flight.control:
            kinds.append(UnitKind.CONTROL)
        if flight.copy:
            kinds.append(UnitKind.COPY)
        if not flight.control and not flight.copy:
            kinds.append(UnitKind.DATA)
        names = []
        for kind in kinds:
            self._counted[flight.sender, kind] += 1
            names.append((flight.sender, kind, self._counted[flight.sender, kind]))
        return names


class ScriptedRule:
    """All scripted faults: certain nodes lose certain units, or receive them twice."""

    def __init__(self, faults: Iterable[Scripted]) -> None:
        self._counts, self._last = UnitCounts(), -1
        self._effects: dict[tuple[int, UnitKind, int], dict[int, str]] = {}  # by unit and receiver
        for fault in sorted(faults, key=lambda fault: isinstance(fault, Miss)):  # a loss overrides a duplicate
            effects = self._effects.setdefault((fault.source, fault.kind, fault.nth), {})
            effects[fault.node] = "scripted" if isinstance(fault, Miss) else DUPLICATED
        self._now: dict[int, str] = {}

    def apply(self, flight: Flight, receiver: int) -> str | None:
        """Counts the units of each source; the nth is lost or duplicated."""
        if flight.number != self._last:
            self._last = flight.number
            named = [self._effects[name] for name in self._counts.names_of(flight) if name in self._effects]
            self._now = {node: effect for effects in named for node, effect in effects.items()}
        return self._now.get(receiver)


class SplitRule:
    """A network partition: for a while no unit crosses it, or none in one direction."""

    def __init__(self, fault: Split) -> None:
        self._fault, self._side = fault, frozenset(fault.side)

    def apply(self, flight: Flight, receiver: int) -> str | None:
        """Lost if it crosses the partition."""
        fault = self._fault
        if not fault.at <= flight.time < fault.at + fault.lasting:
            return None
        out, into = flight.sender in self._side, receiver in self._side
        if out == into or (fault.one_way and not out):
            return None
        return "split"


def fault_effect(rules: list[Rule], flight: Flight, receiver: int) -> str | None:
    """The combined effect of all rules on a unit on its way to a receiver."""
    decided = None
    for rule in rules:
        answer = rule.apply(flight, receiver)
        if answer is not None and (decided is None or decided == DUPLICATED):
            decided = answer
    return decided


def rules_for(faults: tuple[Fault, ...], seed: int, nodes: int) -> list[Rule]:
    """The rules of the faults that affect units; the others affect nodes: see `Simulation`."""
    rules: list[Rule] = []
    scripted: list[Scripted] = []  # one rule for all of them: a script may be long
    places: Counter[type[Fault]] = Counter()  # each fault draws from the stream of its place among its kind
    for fault in faults:
        place = places[type(fault)]
        places[type(fault)] += 1
        match fault:
            case Loss(rate=0):
                pass
            case Loss():
                rules.append(LossRule(fault, seed, place))
            case Bursts():
                rules.append(BurstsRule(fault, seed, place, nodes))
            case Duplicates():
                rules.append(DuplicatesRule(fault, seed, place))
            case Miss() | Twice():
                if not scripted:
                    scripted = [other for other in faults if isinstance(other, Scripted)]
                    rules.append(ScriptedRule(scripted))
            case Split():
                rules.append(SplitRule(fault))
            case _:
                assert isinstance(fault, NodeFault), "all other faults are of nodes"
    return rules
