"""A group of machines on a table: what is sent waits on its link until the test says who hears it and who loses it.

Packets have letters, destinations are digits: "23" is {E2, E3}, as in the papers. A request for retransmission is
called "RETRANS E3" after its sender, a status without data "RR E3". Links keep their order (the papers' MC service):
what waits before the unit named must be heard or lost first.

With `lenient=True` a story that was written for other rules can be told again: `hear` passes over what was never
sent, and hears what waits before the unit named. What is lost must be there to be lost.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, Generic, TypeVar

from ordercast.audit.logs import RunLogs
from ordercast.audit.services import PROMISES
from ordercast.model.config import MICROSECOND, GroupConfig, LossInference, PaperRules
from ordercast.model.machine import (
    CancelTimer,
    Deliver,
    Echo,
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
from ordercast.model.units import Packet, Unit
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import Data, Ready
from tests.audit.figures import Row, logs_from

E1, E2, E3 = range(3)
TRANSIT = 50 * MICROSECOND
_EVENTS = {Level.ACCEPTED: "accept", Level.PREACKNOWLEDGED: "preack", Level.ACKNOWLEDGED: "ack"}

M = TypeVar("M", bound=Machine)


def nodes_of(digits: str) -> tuple[int, ...]:
    """The nodes of "23"."""
    return tuple(int(digit) - 1 for digit in digits)


class Group(Generic[M]):
    """Some machines, the links between them, and a record of all that happened."""

    def __init__(
        self, machine: Callable[[int, GroupConfig], M], *, nodes: int = 3, lenient: bool = False, **settings: Any
    ) -> None:
        self.lenient = lenient
        self.nodes = range(nodes)
        self.machines = [machine(me, GroupConfig(nodes=nodes, **settings)) for me in self.nodes]
        self.echoes = self.machines[0].echo is not Echo.NONE
        self.links: dict[tuple[int, int], deque[Unit]] = {
            (sender, receiver): deque()
            for sender in self.nodes
            for receiver in self.nodes
            if sender != receiver or self.echoes
        }
        self.timers: list[dict[str, int]] = [{} for _ in self.nodes]
        """Running, by name: when they are due."""
        self.now = 0
        self.submitted: dict[str, tuple[int, str]] = {}
        """By letter: source and destinations."""
        self.letters: dict[tuple[int, int], str] = {}
        """By source and message number."""
        self.sent: dict[str, Data] = {}
        """First transmissions."""
        self.copies: list[str] = []
        self.requests: list[tuple[int, Unit]] = []
        self.outputs: list[tuple[int, Output]] = []
        self.lost: list[tuple[int, str]] = []
        self.levels: list[dict[str, Level]] = [{} for _ in self.nodes]
        self.delivered: list[list[str]] = [[] for _ in self.nodes]
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

    def hear(self, node: int, *labels: str) -> None:
        """A node hears units, one after the other. Without an echo its own ones do not come."""
        for label in labels:
            unit = self._take(node, label, optional=self.lenient or (self._source(label) == node and not self.echoes))
            if unit is not None:
                self.handle(node, Receive(unit))

    def all_hear(self, *labels: str) -> None:
        """Everybody hears the units, the sender too."""
        for label in labels:
            for node in self.nodes:
                self.hear(node, label)

    def lose(self, node: int, *labels: str) -> None:
        """A node does not hear units that reached it."""
        for label in labels:
            self._take(node, label, optional=False)
            self.lost.append((node, label))

    def expire(self, node: int) -> None:
        """All timers that run at a node now fire."""
        for name in sorted(self.timers[node]):
            if name in self.timers[node]:
                self._fire(node, name)

    def settle(self, rounds: int = 400, lossy: Random | None = None) -> bool:
        """Time passes, and nothing is lost, or only by chance, every fourth time; says whether silence came."""
        for _ in range(rounds):
            under_way = [(key, link) for key, link in self.links.items() if link]
            timers = [(due, node, name) for node in self.nodes for name, due in self.timers[node].items()]
            if not under_way and not timers:
                return True
            self.now = self.now + TRANSIT if under_way else max(self.now, min(timers)[0])
            for due, node, name in sorted(timers):
                if due <= self.now and name in self.timers[node]:
                    self._fire(node, name)
            for (sender, node), link in under_way:
                for _ in range(len(link)):
                    unit = link.popleft()
                    if lossy and sender != node and lossy.random() < 0.25:
                        self.lost.append((node, self.label(unit)))
                    else:
                        self.handle(node, Receive(unit))
        return False

    def wander(self, chance: Random, steps: int, to: str | None = None) -> None:
        """So many times something happens: a packet is sent (to these, or to some), heard or lost, or a timer fires."""
        for _ in range(steps):
            under_way = [key for key, link in self.links.items() if link]
            kind = chance.random()
            if kind < 0.12 or not under_way:
                some = "".join(str(node + 1) for node in self.nodes if chance.random() < 0.6)
                self.submit(chance.choice(self.nodes), f"p{len(self.submitted)}", to or some or "2")
            elif kind < 0.18:
                running = [(node, name) for node in self.nodes for name in sorted(self.timers[node])]
                if running:
                    self._fire(*chance.choice(running))
            else:
                sender, node = chance.choice(under_way)
                unit = self.links[sender, node].popleft()
                if kind > 0.96 and sender != node:
                    self.lost.append((node, self.label(unit)))
                else:
                    self.handle(node, Receive(unit))

    def handle(self, node: int, event: Input) -> None:
        """One input, and all that follows from it."""
        self._moment += 1
        if isinstance(event, Receive) and isinstance(event.unit, Data):
            self._record(node, "receive", event.unit.packet)
        for output in self.machines[node].handle(event):
            self.outputs.append((node, output))
            self._carry_out(node, output)

    # --- what came of it ---

    def label(self, unit: Unit) -> str:
        """What a unit is called."""
        if isinstance(unit, Data):
            return self.letters[unit.packet.source, unit.packet.first]
        return f"{'RR' if isinstance(unit, Ready) and not unit.missing else 'RETRANS'} {name_of(unit.source)}"

    def under_way(self, source: int, node: int) -> list[str]:
        """What waits on a link."""
        return [self.label(unit) for unit in self.links[source, node]]

    def delivered_of(self, node: int, source: int) -> list[str]:
        """The receipt sublog RL_kj, as far as the application has it."""
        return [letter for letter in self.delivered[node] if self.submitted[letter][0] == source]

    def complete(self) -> bool:
        """Whether every node was given what was for it, once, each sender's in the order in which it was submitted."""
        return all(
            self.delivered_of(node, source)
            == [letter for letter, (by, to) in self.submitted.items() if by == source and node in nodes_of(to)]
            for node in self.nodes
            for source in self.nodes
        )

    def logs(self) -> RunLogs:
        """All that happened, for the audit."""
        return logs_from(len(self.nodes), self._rows)

    def broken_promises(self) -> set[str]:
        """The promises of the SPO service that the audit finds broken."""
        logs = self.logs()
        return {promise.__name__ for promise in PROMISES[Service.SELECTIVE_PARTIAL] if any(promise(logs))}

    # --- inside ---

    def _source(self, label: str) -> int:
        return int(label[-1]) - 1 if " " in label else self.submitted[label][0]

    def _take(self, node: int, label: str, *, optional: bool) -> Unit | None:
        source = self._source(label)
        link = self.links.get((source, node), deque())
        waiting = [self.label(unit) for unit in link]
        if label not in waiting:
            assert optional, f"{label} is not on its way to {name_of(node)}, but {waiting}"
            return None
        while self.label(link[0]) != label:
            assert self.lenient, f"{self.label(link[0])} comes before {label}"
            self.handle(node, Receive(link.popleft()))
        return link.popleft()

    def _fire(self, node: int, name: str) -> None:
        del self.timers[node][name]
        self.handle(node, TimerFired(name))

    def _carry_out(self, node: int, output: Output) -> None:
        if isinstance(output, Send):
            self._send(node, output)
        elif isinstance(output, SetTimer):
            self.timers[node][output.name] = self.now + output.after
        elif isinstance(output, CancelTimer):
            del self.timers[node][output.name]
        elif isinstance(output, Numbered):
            self._record(node, "send", output.packet)
        elif isinstance(output, Reached):
            self.levels[node][self.letters[output.packet.source, output.packet.first]] = output.level
            self._record(node, _EVENTS[output.level], output.packet)
        elif isinstance(output, Deliver):
            self.delivered[node].append(self.letters[output.packet.source, output.packet.first])
            self._record(node, "deliver", output.packet)

    def _send(self, node: int, output: Send) -> None:
        label = self.label(output.unit)
        if output.again:
            self.copies.append(label)
        elif isinstance(output.unit, Data):
            self.sent[label] = output.unit
        elif label.startswith("RETRANS"):
            self.requests.append((node, output.unit))
        for (sender, receiver), link in self.links.items():
            if sender == node and output.to in {None, receiver}:
                link.append(output.unit)

    def _record(self, node: int, kind: str, packet: Packet) -> None:
        to = members(packet.destinations)
        self._rows.append((node, len(self._rows), self._moment, kind, packet.source, packet.first, to, None))


def paper_group(
    condition_2: LossInference = LossInference.ALL, *, paper: dict[str, Any] | None = None, **settings: Any
) -> Group[SpoPaper]:
    """A group under the printed rules, with one of their readings."""
    return Group(SpoPaper, paper=PaperRules(condition_2=condition_2, **paper or {}), **settings)
