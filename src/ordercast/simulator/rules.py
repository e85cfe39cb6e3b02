"""Faults as rules outside the machines: each looks at a unit on its way to one node and says what becomes of it.

All rules are asked about every unit, so that the draws and counts of one do not depend on the others. The first that
answers decides, but what is lost does not arrive twice.
"""

from collections import Counter
from typing import Protocol

from ordercast.model.faults import Bursts, Crash, Duplicates, Fault, Loss, Miss, Pause, Split, UnitKind
from ordercast.simulator.chance import exponential, stream

DUPLICATED = "duplicated"
"""The verdict of a rule that lets a unit arrive twice; every other verdict is the cause of a loss."""


class Flight:
    """A unit on its way, as a rule sees it."""

    __slots__ = ("control", "copy", "number", "sender", "time")

    def __init__(self, number: int, time: int, sender: int, *, control: bool, copy: bool) -> None:
        self.number = number  # counts transmissions
        self.time = time
        self.sender = sender
        self.control = control
        self.copy = copy


class Rule(Protocol):
    """A fault at work."""

    def judge(self, flight: Flight, receiver: int) -> str | None:
        """What becomes of a unit on its way to a receiver; None: nothing that this rule knows of."""
        ...


class LossRule:
    """Independent loss, or loss shared by all receivers of a unit."""

    def __init__(self, fault: Loss, seed: int, place: int) -> None:
        self._fault, self._chance = fault, stream(seed, f"loss/{place}")
        self._judged, self._lost = -1, False

    def judge(self, flight: Flight, receiver: int) -> str | None:
        """A draw for each receiver; shared: one for each unit."""
        del receiver
        fault = self._fault
        if fault.until is not None and flight.time >= fault.until:
            return None
        if not fault.shared:
            return "loss" if self._chance.random() < fault.rate else None
        if self._judged != flight.number:
            self._judged, self._lost = flight.number, self._chance.random() < fault.rate
        return "shared loss" if self._lost else None


class BurstsRule:
    """Gilbert–Elliott loss: each receiver goes to and fro between well and bad as time passes."""

    def __init__(self, fault: Bursts, seed: int, place: int, nodes: int) -> None:
        self._fault, self._chance = fault, stream(seed, f"bursts/{place}")
        self._bad = [False] * nodes
        self._change_at = [exponential(self._chance, fault.well) for _ in range(nodes)]

    def judge(self, flight: Flight, receiver: int) -> str | None:
        """Lost while the receiver is bad, with the burst's rate."""
        fault = self._fault
        if fault.until is not None and flight.time >= fault.until:
            return None
        while self._change_at[receiver] <= flight.time:
            self._bad[receiver] = not self._bad[receiver]
            mean = fault.bad if self._bad[receiver] else fault.well
            self._change_at[receiver] += 1 + exponential(self._chance, mean)
        return "burst" if self._bad[receiver] and self._chance.random() < fault.rate else None


class DuplicatesRule:
    """A unit arrives twice."""

    def __init__(self, fault: Duplicates, seed: int, place: int) -> None:
        self._fault, self._chance = fault, stream(seed, f"duplicates/{place}")

    def judge(self, flight: Flight, receiver: int) -> str | None:
        """A draw for each receiver."""
        del receiver
        if self._fault.until is not None and flight.time >= self._fault.until:
            return None
        return DUPLICATED if self._chance.random() < self._fault.rate else None


class MissRule:
    """Scripted: one node misses one unit."""

    def __init__(self, fault: Miss) -> None:
        self._fault = fault
        self._counted, self._last = 0, -1

    def judge(self, flight: Flight, receiver: int) -> str | None:
        """Counts the source's units of the kind; the nth is missed."""
        fault = self._fault
        if flight.sender != fault.source or not self._of_kind(flight):
            return None
        if flight.number != self._last:
            self._last = flight.number
            self._counted += 1
        return "scripted" if receiver == fault.node and self._counted == fault.nth else None

    def _of_kind(self, flight: Flight) -> bool:
        match self._fault.kind:
            case UnitKind.DATA:
                return not flight.control and not flight.copy
            case UnitKind.COPY:
                return flight.copy
            case UnitKind.CONTROL:
                return flight.control
            case UnitKind.ANY:
                return True


class SplitRule:
    """Two sides do not hear each other for a while, or one of them is not heard by the other."""

    def __init__(self, fault: Split) -> None:
        self._fault, self._side = fault, frozenset(fault.side)

    def judge(self, flight: Flight, receiver: int) -> str | None:
        """Lost if it would cross."""
        fault = self._fault
        if not fault.at <= flight.time < fault.at + fault.lasting:
            return None
        out, into = flight.sender in self._side, receiver in self._side
        if out == into or (fault.one_way and not out):
            return None
        return "split"


def verdict(rules: list[Rule], flight: Flight, receiver: int) -> str | None:
    """What becomes of a unit on its way to a receiver."""
    decided = None
    for rule in rules:
        answer = rule.judge(flight, receiver)
        if answer is not None and (decided is None or decided == DUPLICATED):
            decided = answer
    return decided


def rules_for(faults: tuple[Fault, ...], seed: int, nodes: int) -> list[Rule]:
    """The rules for the faults that concern units under way; pauses and crashes concern nodes."""
    rules: list[Rule] = []
    places: Counter[type[Fault]] = Counter()  # a stream belongs to a place among faults of its kind, whatever else is
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
            case Miss():
                rules.append(MissRule(fault))
            case Split():
                rules.append(SplitRule(fault))
            case Pause() | Crash():
                pass
    return rules
