"""A group of machines on one channel (the papers' 1C service), moved by hand.

What is sent gets its place on the channel at once. Each node hears the channel from the first unit to the last, one
after the other, or misses some; how far it has come is the test's choice. Packets have letters, destinations are
digits: "23" is {E2, E3}, as in the papers. Other units are called by their kind and sender: "RR E1", "RST E3".
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Generic, TypeVar

from ordercast.audit.logs import RunLogs
from ordercast.audit.services import PROMISES
from ordercast.model.config import MICROSECOND, GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
    Drained,
    Input,
    Level,
    Machine,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    Submit,
    TimerFired,
)
from ordercast.model.nodes import mask_of, members, name_of
from ordercast.model.services import Service
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.units import (
    PacketPosition,
    PlacedCopy,
    PlacedData,
    PlacedReady,
    Reset,
    ResetAgreement,
    ResetOrder,
    ResetReply,
)
from tests.audit.figures import Row, logs_from

E1, E2, E3, E4 = range(4)
TRANSIT = 20 * MICROSECOND
_EVENTS = {Level.ACCEPTED: "accept", Level.PREACKNOWLEDGED: "preack", Level.ACKNOWLEDGED: "ack"}
_KINDS: dict[type[Unit], str] = {
    Ready: "RR",
    Reset: "RST",
    ResetAgreement: "RST_PAK",
    ResetOrder: "RST_ACK",
    ResetReply: "RST_PAK",
    PlacedReady: "RR",
    PacketPosition: "place",
}

M = TypeVar("M", bound=Machine)


def nodes_of(digits: str) -> tuple[int, ...]:
    """The nodes of "23"."""
    return tuple(int(digit) - 1 for digit in digits)


class OneChannel(Generic[M]):
    """Some machines, the channel, how far each has heard it, and a record of all that happened."""

    def __init__(self, machine: Callable[[int, GroupConfig], M], *, nodes: int = 3, **settings: Any) -> None:
        self.nodes = range(nodes)
        self.machines = [machine(me, GroupConfig(nodes=nodes, **settings)) for me in self.nodes]
        self.channel: list[Unit] = []
        self.places = [0] * nodes
        """By node: what of the channel it has heard or missed."""
        self.missed: list[tuple[int, str]] = []
        self.now = 0
        self.timers: list[dict[str, int]] = [{} for _ in self.nodes]
        """Running, by name: when they are due."""
        self.submitted: dict[str, tuple[int, str]] = {}
        """By letter: source and destinations."""
        self.letters: dict[tuple[int, int], str] = {}
        """By source and message number."""
        self.copies: list[str] = []
        self.levels: list[dict[str, Level]] = [{} for _ in self.nodes]
        self.delivered: list[list[str]] = [[] for _ in self.nodes]
        self.discarded: list[list[tuple[str, str]]] = [[] for _ in self.nodes]
        self.aborted: dict[int, str] = {}
        self._rows: list[Row] = []
        self._moment = 0

    # --- steps ---

    def submit(self, node: int, letter: str, to: str) -> None:
        """The application at a node sends a packet."""
        assert letter not in self.submitted
        number = sum(source == node for source, _ in self.submitted.values())
        self.letters[node, number] = letter
        self.submitted[letter] = node, to
        self.handle(node, Submit(mask_of(nodes_of(to)), (1,), letter[:1].encode()))

    def submit_all(self, words: str) -> None:
        """Several packets, as in "a1:23 x3:123": the letter, the source, the destinations."""
        for word in words.split():
            head, to = word.split(":")
            self.submit(int(head[-1]) - 1, head[:-1], to)

    def hear(self, node: int, *labels: str) -> None:
        """A node hears the next units of the channel."""
        for label in labels:
            self.handle(node, Receive(self._next(node, label)))

    def all_hear(self, *labels: str) -> None:
        """Everybody hears these next, one unit after the other."""
        for label in labels:
            for node in self.nodes:
                self.hear(node, label)

    def miss(self, node: int, *labels: str) -> None:
        """A node does not hear the next units of the channel."""
        for label in labels:
            self._next(node, label)
            self.missed.append((node, label))

    def hear_rest(self, *nodes: int) -> None:
        """Nodes hear all that there is, one after the other; without any named, all of them, until nothing is left."""
        for node in nodes or self.nodes:
            while self.places[node] < len(self.channel):
                self._hear_next(node)
        if not nodes and self._behind():
            self.hear_rest()

    def hear_late(self, node: int, label: str) -> None:
        """A node hears a unit that it had missed."""
        self.missed.remove((node, label))
        self.handle(node, Receive(next(unit for unit in self.channel if self.label(unit) == label)))

    def drain(self, lost: Iterable[tuple[int, str]]) -> None:
        """Everybody hears the channel as far as it goes now, but for what is lost."""
        losses = set(lost)
        end = len(self.channel)
        while any(place < end for place in self.places):
            for node in self.nodes:
                if self.places[node] < end:
                    label = self.label(self.channel[self.places[node]])
                    if (node, label) in losses:
                        losses.remove((node, label))
                        self.miss(node, label)
                    else:
                        self._hear_next(node)
        assert not losses, f"never sent: {losses}"

    def fire(self, node: int, name: str) -> None:
        """A timer that runs comes to its end."""
        del self.timers[node][name]
        self.handle(node, TimerFired(name))

    def settle(self, budget: int = 3_000, lossy: Callable[[int, str], bool] | None = None) -> bool:
        """Time passes, timers fire, nothing is lost but what `lossy` says; whether silence came."""
        for _ in range(budget):
            behind = self._behind()
            running = [(due, node, name) for node in self.nodes for name, due in self.timers[node].items()]
            if not behind and not running:
                return True
            self.now = self.now + TRANSIT if behind else max(self.now, min(running)[0])
            for node in behind:
                label = self.label(self.channel[self.places[node]])
                if lossy is not None and lossy(node, label):
                    self.miss(node, label)
                else:
                    self._hear_next(node)
                if self.places[node] == len(self.channel):
                    self.handle(node, Drained())
            for due, node, name in sorted(running):
                if due <= self.now and self.timers[node].get(name) == due:
                    self.fire(node, name)
        return False

    def wander(self, chance: Random, steps: int, losses: int) -> None:
        """So many times something happens: a packet is sent, heard or missed (at most so often), or a timer fires."""
        for _ in range(steps):
            behind, kind = self._behind(), chance.random()
            if kind < 0.12 or not behind:
                some = "".join(str(node + 1) for node in self.nodes if chance.random() < 0.6)
                self.submit(chance.choice(self.nodes), f"p{len(self.submitted)}", some or "2")
            elif kind < 0.2:
                running = [(node, name) for node in self.nodes for name in sorted(self.timers[node])]
                if running:
                    self.fire(*chance.choice(running))
            else:
                node = chance.choice(behind)
                if kind > 0.95 and len(self.missed) < losses:
                    self.miss(node, self.label(self.channel[self.places[node]]))
                else:
                    self._hear_next(node)

    def handle(self, node: int, event: Input) -> list[Output]:
        """One input, and all that follows from it."""
        self._moment += 1
        if isinstance(event, Receive) and isinstance(event.unit, DataUnit):
            self._record(node, "receive", event.unit.packet)
        outputs = self.machines[node].handle(event)
        for output in outputs:
            self._carry_out(node, output)
        return outputs

    # --- what came of it ---

    def label(self, unit: Unit) -> str:
        """What a unit is called."""
        if isinstance(unit, Data | PlacedData):
            return self.letter(unit.packet)
        if isinstance(unit, PlacedCopy):
            return f"copy {self.letter(unit.packet)}"
        return f"{_KINDS.get(type(unit), type(unit).__name__)} {name_of(unit.source)}"

    def letter(self, packet: Packet) -> str:
        """What a packet is called."""
        return self.letters[packet.source, packet.first]

    def said(self, label: str) -> Any:
        """The unit of this name; there must be just one."""
        (unit,) = [unit for unit in self.channel if self.label(unit) == label]
        return unit

    def labels(self) -> list[str]:
        """All that was sent, in the order of the channel."""
        return [self.label(unit) for unit in self.channel]

    def logs(self) -> RunLogs:
        """All that happened, for the audit."""
        return logs_from(len(self.nodes), self._rows)

    def broken_promises(self) -> set[str]:
        """The promises of the ST service that the audit finds broken."""
        logs = self.logs()
        return {promise.__name__ for promise in PROMISES[Service.SELECTIVE_TOTAL] if any(promise(logs))}

    def together(self) -> list[str]:
        """What each node was given, one string for each."""
        return [" ".join(letters) for letters in self.delivered]

    # --- inside ---

    def _behind(self) -> list[int]:
        return [node for node in self.nodes if self.places[node] < len(self.channel)]

    def _next(self, node: int, label: str) -> Unit:
        unit = self.channel[self.places[node]] if self.places[node] < len(self.channel) else None
        found = unit and self.label(unit)
        assert unit is not None, f"{label} is not on the channel"
        assert found == label, f"{found} comes to {name_of(node)} before {label}"
        self.places[node] += 1
        return unit

    def _hear_next(self, node: int) -> None:
        unit = self.channel[self.places[node]]
        self.places[node] += 1
        self.handle(node, Receive(unit))

    def _carry_out(self, node: int, output: Output) -> None:
        match output:
            case Send(unit=unit, again=again):
                self.channel.append(unit)
                if again:
                    self.copies.append(self.label(unit))
            case SetTimer(name=name, after=after):
                self.timers[node][name] = self.now + after
            case CancelTimer(name=name):
                self.timers[node].pop(name, None)
            case Numbered(packet=packet):
                self._record(node, "send", packet)
            case Reached(level=level, packet=packet):
                self.levels[node][self.letter(packet)] = level
                self._record(node, _EVENTS[level], packet)
            case Deliver(packet=packet):
                self.delivered[node].append(self.letter(packet))
                self._record(node, "deliver", packet)
            case Discard(unit=unit, why=why):
                self.discarded[node].append((self.label(unit), why))
            case Abort(why=why):
                self.aborted[node] = why

    def _record(self, node: int, kind: str, packet: Packet) -> None:
        to = members(packet.destinations)
        self._rows.append((node, len(self._rows), self._moment, kind, packet.source, packet.first, to, None))
