"""A group of machines on a table, moved by hand: who submits, who hears what, what is lost, which timer fires.

Packets have names, so that a test reads like an example of the papers: `submit(E1, "a", to=[E2, E3])`,
`receive(E2, "a")`, `lose(E3, "a")`. It works for every machine of the contract. Each pair of nodes has a link of its
own that keeps the order in which units were sent (the papers' MC channel); what different senders send may overtake.

The group keeps book of what the machines claim. A claim that is not borne out by the other nodes at that moment
(somebody's PREACKNOWLEDGED while a destination has not accepted, somebody's ACKNOWLEDGED while a destination has not
pre-acknowledged) does not stop it: it is kept in `unfounded`, since some tests are about those.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Discard,
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
from ordercast.model.nodes import mask_of, members, name_of
from ordercast.model.units import Data, Packet, Unit

E1, E2, E3, E4 = range(4)

M = TypeVar("M", bound=Machine)


class Group(Generic[M]):
    """Machines of one class, the links between them, their timers, and what they said and did so far."""

    def __init__(
        self, machine: Callable[[int, GroupConfig], M], nodes: int = 3, *, echo_at_once: bool = True, **config: Any
    ) -> None:
        """`echo_at_once`: a node that wants an echo hears its own units at the end of the step that sent them."""
        self.config = GroupConfig(nodes=nodes, **config)
        self.machines = [machine(me, self.config) for me in range(nodes)]
        self._echo_at_once = echo_at_once
        self.links: dict[tuple[int, int], deque[Unit]] = {
            (sender, receiver): deque() for sender in range(nodes) for receiver in range(nodes)
        }
        self.clock = 0
        self.timers: list[dict[str, int]] = [{} for _ in range(nodes)]
        """By node and name: when it is due."""
        self.submitted: dict[str, tuple[int, int]] = {}
        """By name, in the order submitted: source and destinations."""
        self.packets: dict[str, Packet] = {}
        """By name: what was numbered."""
        self.units: dict[str, Data] = {}
        """By name: the first transmission."""
        self._names: dict[tuple[int, int], str] = {}
        self._unnumbered: list[deque[str]] = [deque() for _ in range(nodes)]
        self.levels: list[dict[str, Level]] = [{} for _ in range(nodes)]
        """By node and name: the highest level reached."""
        self.accepted: list[list[str]] = [[] for _ in range(nodes)]
        """By node: the names in the order of their acceptance."""
        self.delivered: list[list[str]] = [[] for _ in range(nodes)]
        self.discarded: list[list[tuple[str, str]]] = [[] for _ in range(nodes)]
        """By node: name and why."""
        self.transmitted: list[list[Send]] = [[] for _ in range(nodes)]
        self.unfounded: list[tuple[int, Level, str]] = []
        """Claims that the other nodes did not bear out: node, level, name."""
        self.aborted: dict[int, str] = {}

    # --- steps ---

    def submit(self, node: int, name: str, to: Iterable[int]) -> list[Output]:
        """The application at a node sends; the machine may number and transmit it at once, or later."""
        assert name not in self.submitted, f"{name!r} was sent before"
        destinations = mask_of(to)
        self.submitted[name] = (node, destinations)
        self._unnumbered[node].append(name)
        payload = name.encode()
        return self._step(node, Submit(destinations, (len(payload),), payload))

    def receive(self, node: int, *names: str) -> list[Output]:
        """The node hears these data units, one after the other, and whatever control units were sent before each.

        Its own units it has heard already if it needs no echo or has them at once.
        """
        out: list[Output] = []
        for name in names:
            source = self.submitted[name][0]
            link = self.links[source, node]
            if source == node and not link:
                continue
            while link and not isinstance(link[0], Data):
                out += self.receive_next(node, source)
            self._expect(link, name)
            out += self.receive_next(node, source)
        return out

    def receive_next(self, node: int, source: int) -> list[Output]:
        """The node hears the next unit of a source, whatever it is."""
        return self._step(node, Receive(self.links[source, node].popleft()))

    def receive_all(self, node: int, source: int) -> list[Output]:
        """The node hears everything that is under way to it from a source."""
        return [output for _ in range(len(self.links[source, node])) for output in self.receive_next(node, source)]

    def lose(self, node: int, *names: str) -> None:
        """The node misses these data units, which must be the next under way to it."""
        for name in names:
            link = self.links[self.submitted[name][0], node]
            self._expect(link, name)
            link.popleft()

    def lose_all(self, node: int, source: int) -> None:
        """The node misses everything that is under way to it from a source."""
        self.links[source, node].clear()

    def fire(self, node: int, timer: str) -> list[Output]:
        """A timer that runs comes to its end."""
        self.clock = max(self.clock, self.timers[node].pop(timer))
        return self._step(node, TimerFired(timer))

    def fire_all(self, node: int) -> list[Output]:
        """All timers that run at a node come to their end."""
        return [output for timer in tuple(self.timers[node]) for output in self.fire(node, timer)]

    def everybody_receives(self, *names: str) -> None:
        """Every node hears these data units, in this order."""
        for name in names:
            for node in range(self.config.nodes):
                self.receive(node, name)

    def settle(self, budget: int = 2_000) -> bool:
        """The fair end: nothing is lost any more, and every timer fires in its time. Whether it fell silent.

        A round hears one unit from each link, or, when nothing is under way, fires the timer that is due next.
        """
        return any(not (self._receive_one_of_each() or self._fire_next()) for _ in range(budget))

    # --- what can be asked ---

    def name(self, unit: Unit) -> str:
        """How the tests call a unit: data by the name of its packet, others by their kind."""
        return self._names[unit.packet.source, unit.packet.seq] if isinstance(unit, Data) else type(unit).__name__

    def names(self, units: Iterable[Unit]) -> list[str]:
        """The names of several units."""
        return [self.name(unit) for unit in units]

    def copies(self, node: int) -> list[str]:
        """The names of all that a node has sent again."""
        return self.names(send.unit for send in self.transmitted[node] if send.again)

    def controls(self, node: int) -> list[Unit]:
        """All that a node has sent besides data."""
        return [send.unit for send in self.transmitted[node] if not isinstance(send.unit, Data)]

    def destined(self, node: int, source: int) -> list[str]:
        """What a source has been told to send to a node, in order."""
        return [name for name, (of, to) in self.submitted.items() if of == source and to >> node & 1]

    def of(self, names: Sequence[str], source: int) -> list[str]:
        """Those that came from a source."""
        return [name for name in names if self.submitted[name][0] == source]

    def assert_complete(self) -> None:
        """Everything was delivered at each of its destinations, once, in each sender's order, and nothing else."""
        waits = [line for machine in self.machines for line in machine.waits_for()]
        for node in range(self.config.nodes):
            for source in range(self.config.nodes):
                delivered = self.of(self.delivered[node], source)
                assert delivered == self.destined(node, source), f"at {name_of(node)} of {name_of(source)}: {waits}"

    def assert_accepted_are_prefixes(self) -> None:
        """Each node has accepted the beginning of what each source sent it, in order, and nothing else."""
        for node in range(self.config.nodes):
            for source in range(self.config.nodes):
                accepted = self.of(self.accepted[node], source)
                assert accepted == self.destined(node, source)[: len(accepted)]
                delivered = self.of(self.delivered[node], source)
                assert delivered == accepted[: len(delivered)]

    # --- inside ---

    def _step(self, node: int, event: Input) -> list[Output]:
        outputs = self.machines[node].handle(event)
        for output in outputs:
            self._carry_out(node, output)
        own = self.links[node, node]
        if self._echo_at_once and self.machines[node].echo is Echo.SAFE and own:
            outputs = outputs + self._step(node, Receive(own.popleft()))
        return outputs

    def _carry_out(self, node: int, output: Output) -> None:
        match output:
            case Send(unit=unit, to=to):
                self.transmitted[node].append(output)
                if isinstance(unit, Data):
                    self.units.setdefault(self.name(unit), unit)
                for receiver in range(self.config.nodes) if to is None else (to,):
                    if receiver != node or self.machines[node].echo is not Echo.NONE:
                        self.links[node, receiver].append(unit)
            case Numbered(packet=packet):
                name = self._unnumbered[node].popleft()
                self.packets[name] = packet
                self._names[node, packet.seq] = name
            case Reached(level=level, packet=packet):
                self._note_claim(node, level, packet)
            case Deliver(packet=packet):
                self.delivered[node].append(self._names[packet.source, packet.seq])
            case Discard(unit=unit, why=why):
                self.discarded[node].append((self.name(unit), why))
            case SetTimer(name=timer, after=after):
                self.timers[node][timer] = self.clock + after
            case CancelTimer(name=timer):
                self.timers[node].pop(timer, None)
            case Abort(why=why):
                self.aborted[node] = why

    def _note_claim(self, node: int, level: Level, packet: Packet) -> None:
        name = self._names[packet.source, packet.seq]
        self.levels[node][name] = level
        if level is Level.ACCEPTED:
            self.accepted[node].append(name)
            return
        below = Level(level - 1)
        if any(self.levels[other].get(name, 0) < below for other in members(packet.destinations)):
            self.unfounded.append((node, level, name))

    def _expect(self, link: deque[Unit], name: str) -> None:
        under_way = self.names(link)
        assert under_way[:1] == [name], f"{name!r} is not next: {under_way} is under way"

    def _receive_one_of_each(self) -> bool:
        ready = [link for link, units in self.links.items() if units]
        for source, node in ready:
            if self.links[source, node]:
                self.receive_next(node, source)
                if not any(self.links[other, node] for other in range(self.config.nodes)):
                    self._step(node, Drained())
        return bool(ready)

    def _fire_next(self) -> bool:
        running = [(due, node, timer) for node, timers in enumerate(self.timers) for timer, due in timers.items()]
        if running:
            _, node, timer = min(running)
            self.fire(node, timer)
        return bool(running)
