"""A group whose members change, with the orders' own machines and nothing else: a view is ended by hand.

Nodes are numbered for ever, places are those of a view. What is sent gets to whom it is for, in the order that the
order needs, or is lost. Some members stop, one after the other, while the others go on; the cut of those that stopped
is made, and they finish, while those that are gone still go on with each other. Then a view begins with those that
stay and with new ones. Everything that happens is drawn from one seed.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Drained,
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
from ordercast.model.nodes import mask_of, members
from ordercast.model.runs import Channel
from ordercast.model.units import Packet, Unit
from ordercast.protocols.membership.epoch import Cut, EpochReport, Flush
from ordercast.protocols.registry import flush_class, make_machine
from ordercast.protocols.st.machine import St
from ordercast.protocols.st.place.machine import StPlace
from ordercast.protocols.to.machine import TotalOrderBroadcast
from ordercast.protocols.to.recovery import Mode

Message = tuple[int, int]
"""A batch by the node that submitted it and the number of its first message."""
SELECTIVE = ("spo", "st")
ONE_ORDER = ("to", "prito", "prio", "sequencer")
PRIORITIES = ("prito", "prio")


def quorums(nodes: int) -> list[tuple[int, ...]]:
    """More than half of a view, or half of it with place 0."""
    sets = [places for size in range(1, nodes + 1) for places in combinations(range(nodes), size)]
    return [places for places in sets if 2 * len(places) > nodes or (2 * len(places) == nodes and 0 in places)]


@dataclass
class Node:
    """One node, in all its views."""

    number: int
    submitted: dict[int, Submit] = field(default_factory=dict)
    """By first message number, with destinations as nodes."""
    deliveries: list[tuple[int, Message]] = field(default_factory=list)
    """View and message."""
    acknowledged: list[tuple[int, Message]] = field(default_factory=list)
    views: list[int] = field(default_factory=list)
    closed: set[int] = field(default_factory=set)
    """The views that it finished."""


class View:
    """The machines of one view, and the network between them."""

    def __init__(self, protocol: str, number: int, nodes: list[Node], chance: Random, **settings: Any) -> None:
        self.protocol, self.number, self.nodes, self.chance = protocol, number, nodes, chance
        self.config = GroupConfig(nodes=len(nodes), views=True, **settings)
        self.machines: list[Machine] = [make_machine(protocol, place, self.config) for place in range(len(nodes))]
        self.flushes: list[Flush] = [flush_class(protocol)(machine) for machine in self.machines]
        self.timers: list[set[str]] = [set() for _ in nodes]
        self.queues: dict[tuple[int, int], deque[Unit]] = {}
        """By receiver and sender, or by receiver alone on one channel."""
        self.levels: list[dict[Message, Level]] = [{} for _ in nodes]
        self.own: list[list[int]] = [[] for _ in nodes]
        """By place: what was submitted in this view, by first message number."""
        self.next_message: list[int] = [0] * len(nodes)
        self.skips: list[int] = [0] * len(nodes)
        self.stopped: set[int] = set()
        for node in nodes:
            node.views.append(number)

    def enter(self, place: int, next_message: int, left_over: list[Submit], skips: int) -> None:
        """A member that comes from the view before; until then it takes part in nothing."""
        self.stopped.discard(place)
        self.flushes[place].start(next_message)
        self.next_message[place] = next_message
        for event in left_over:
            self.submit(place, event)
        self.skips[place] = skips

    # --- inputs ---

    def submit(self, place: int, event: Submit) -> None:
        """With destinations as places; message numbers that the view before left to be skipped are skipped."""
        event = Submit(
            event.destinations, event.lengths, event.payload, event.priority, event.skips + self.skips[place]
        )
        self.skips[place] = 0
        node, first = self.nodes[place], self.next_message[place] + event.skips
        self.next_message[place] = first + len(event.lengths)
        to = mask_of(self.nodes[each].number for each in members(event.destinations))
        again = node.submitted.get(first)
        assert again is None or (again.lengths, again.payload, again.priority) == event_of(event)
        node.submitted[first] = Submit(to, event.lengths, event.payload, event.priority)
        self.own[place].append(first)
        self.give(place, event)

    def give(self, place: int, event: Input) -> None:
        assert place not in self.stopped
        self.carry_out(place, self.machines[place].handle(event))

    def carry_out(self, place: int, outputs: Iterable[Output], *, finishing: bool = False) -> None:
        for output in outputs:
            if isinstance(output, Deliver):
                self.deliver(place, output.packet)
            elif isinstance(output, Reached):
                self.reach(place, output.level, output.packet)
            else:
                assert not finishing, output
                assert not isinstance(output, Abort), output
                if isinstance(output, Send):
                    self.send(place, output)
                elif isinstance(output, SetTimer):
                    self.timers[place].add(output.name)
                elif isinstance(output, CancelTimer):
                    self.timers[place].discard(output.name)
                elif isinstance(output, Numbered):
                    assert self.message(output.packet)[1] in self.nodes[place].submitted

    def message(self, packet: Packet) -> Message:
        return self.nodes[packet.source].number, packet.first

    def deliver(self, place: int, packet: Packet) -> None:
        message = self.message(packet)
        submitted = self.nodes[packet.source].submitted[packet.first]
        assert event_of(submitted) == (packet.lengths, packet.payload, packet.priority)
        assert packet.destinations >> place & 1
        self.nodes[place].deliveries.append((self.number, message))

    def reach(self, place: int, level: Level, packet: Packet) -> None:
        message, levels = self.message(packet), self.levels[place]
        before = levels.get(message, 0)
        assert before < level or (self.protocol in {"st", "to", *PRIORITIES} and level is Level.ACCEPTED), (
            f"{message} reached {level!r} again, after {before!r}"
        )
        levels[message] = max(level, Level(before or 1))
        if level is Level.ACKNOWLEDGED:
            self.nodes[place].acknowledged.append((self.number, message))

    def send(self, place: int, output: Send) -> None:
        machine = self.machines[place]
        to = [output.to] if output.to is not None else range(len(self.nodes))
        for receiver in to:
            if receiver != place or machine.echo is not Echo.NONE:
                sender = -1 if machine.needs is Channel.ONE else place
                self.queues.setdefault((receiver, sender), deque()).append(output.unit)

    # --- steps ---

    def step(self, loss: float) -> None:
        """One thing happens to a machine that has not stopped, if anything can."""
        chance, ready = self.chance, [key for key, queue in self.queues.items() if queue and self.runs(key[0])]
        fired = [(place, name) for place in self.running() for name in sorted(self.timers[place])]
        if ready and (not fired or chance.random() < 0.85):
            self.receive(chance.choice(ready), loss)
        elif fired:
            self.fire(*chance.choice(fired))

    def running(self) -> list[int]:
        return [place for place in range(len(self.nodes)) if self.runs(place)]

    def runs(self, place: int) -> bool:
        return place not in self.stopped

    def receive(self, key: tuple[int, int], loss: float) -> None:
        queue, receiver = self.queues[key], key[0]
        if self.machines[receiver].needs is Channel.ANY:
            queue.rotate(self.chance.choice([0, 0, 0, -1, -2]))
        unit = queue.popleft()
        if self.chance.random() < loss:
            return
        self.give(receiver, Receive(unit))
        if not any(queue for (to, _), queue in self.queues.items() if to == receiver) and self.chance.random() < 0.5:
            self.give(receiver, Drained())

    def fire(self, place: int, name: str) -> None:
        self.timers[place].discard(name)
        self.give(place, TimerFired(name))

    def settle(self, rounds: int = 400) -> None:
        """Without loss, until nobody waits for anything."""
        for _ in range(rounds):
            for _ in range(rounds):
                for key in [key for key, queue in self.queues.items() if queue and self.runs(key[0])]:
                    if self.queues[key]:
                        self.receive(key, 0)
            if not any(self.machines[place].waits_for() for place in self.running()):
                return
            for place in self.running():
                for name in sorted(self.timers[place]):
                    self.fire(place, name)
        waiting = {place: self.machines[place].waits_for() for place in self.running()}
        raise AssertionError(f"still waiting: {waiting}")

    def recovers(self) -> bool:
        """Whether a machine is in the middle of a recovery of its own."""
        return any(recovering(machine) for machine in self.machines)

    def is_between_rounds(self) -> bool:
        """Whether some have completed a recovery, or know a generation, that others have not or do not."""
        placing = {machine.generations.known for machine in self.machines if isinstance(machine, StPlace)}
        return len(placing) > 1 or len({flush.report().round for flush in self.flushes}) > 1

    def has_carried(self) -> bool:
        """Whether a round of TO that not all have begun begins with packets that were carried into it."""
        machines = [machine for machine in self.machines if isinstance(machine, TotalOrderBroadcast)]
        waiting = [machine for machine in machines if machine.recovery.mode is Mode.INSTALLED]
        return any(machine.reception.accepted.entries for machine in waiting)

    # --- the end ---

    def cut_of(self, places: Iterable[int]) -> Cut:
        reports: dict[int, EpochReport] = {place: self.flushes[place].report() for place in places}
        kind = type(self.flushes[0])
        assert all(kind.is_report(report, len(self.nodes)) for report in reports.values())
        assert kind.agree(reports)
        return kind.cut(reports, len(self.nodes))

    def finish(self, places: Iterable[int], cut: Cut) -> None:
        """Those that stopped deliver what is below the cut; what they lack they fetch."""
        places = list(places)
        for place in places:
            flush = self.flushes[place]
            supplied = {}
            assert flush.problem(cut) is None
            for start, stop in flush.lacks(cut):
                for number in range(start, stop):
                    found = [each for holder in places for each in self.flushes[holder].supply(((number, number + 1),))]
                    supplied[number] = found[0][1]
            left, following = flush.left_over(cut), flush.next_message(cut)
            self.carry_out(place, flush.finish(cut, supplied), finishing=True)
            assert (flush.left_over(cut), flush.next_message(cut)) == (left, following)
            self.nodes[place].closed.add(self.number)


def event_of(event: Submit) -> tuple[tuple[int, ...], bytes, int]:
    return event.lengths, event.payload, event.priority


def recovering(machine: object) -> bool:
    """Whether a machine of ST or TO is in a recovery."""
    if isinstance(machine, St):
        return machine.recovery.active
    if isinstance(machine, StPlace):
        return machine.requests.anything() or bool(machine.logs.kept)
    return isinstance(machine, TotalOrderBroadcast) and machine.recovery.mode is not Mode.NORMAL
