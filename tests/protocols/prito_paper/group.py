"""The paper's entities on one channel: priorities, slots as the golden file writes them, and recovery step by step."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ordercast.audit.services import PROMISES
from ordercast.model.config import GroupConfig
from ordercast.model.machine import Machine, Receive, Submit
from ordercast.model.nodes import everybody, name_of
from ordercast.model.services import Service
from ordercast.model.units import DataUnit, Packet, Unit
from ordercast.protocols.prito.machine import Prito
from ordercast.protocols.prito.paper.machine import PritoPaper
from ordercast.protocols.prito.paper.state import Entry
from ordercast.protocols.prito.paper.units import Lost, PrintedReady, Rejected, RunSync, RunSyncAck, RunSyncPack
from ordercast.protocols.to.machine import TotalOrderBroadcast
from ordercast.protocols.to.units import OrderedReady
from tests.audit.figures import golden
from tests.protocols.one_channel import OneChannel

GOLDEN: dict[str, Any] = golden("golden-prito-seq.json")["prito"]

_KINDS: dict[type[Unit], str] = {
    PrintedReady: "RR",
    Lost: "LOST",
    Rejected: "REJECTED",
    OrderedReady: "RR",
    RunSync: "Run-Sync",
    RunSyncPack: "Run-Sync-Pack",
    RunSyncAck: "Run-Sync-Ack",
}

M = TypeVar("M", bound=Machine)


class PriorityChannel(OneChannel[M]):
    """A group in which everything goes to everybody, and has a priority."""

    def __init__(self, machine: Callable[[int, GroupConfig], M], *, nodes: int = 3, **settings: Any) -> None:
        super().__init__(machine, nodes=nodes, **{"first_seq": (1,) * nodes} | settings)

    def send(self, node: int, letter: str, priority: int = 1) -> None:
        """The application at a node sends a packet."""
        number = sum(source == node for source, _ in self.submitted.values())
        self.letters[node, number] = letter
        self.submitted[letter] = node, ""
        self.handle(node, Submit(everybody(len(self.nodes)), (1,), letter[:1].encode(), priority))

    def label(self, unit: Unit) -> str:
        if isinstance(unit, DataUnit):
            return self.letter(unit.packet)
        return f"{_KINDS.get(type(unit), type(unit).__name__)} {name_of(unit.source)}"

    def broken_promises(self) -> set[str]:
        """The promises of the PriTO service that the audit finds broken."""
        logs = self.logs().addressed_to_everybody()
        return {promise.__name__ for promise in PROMISES[Service.PRIORITY_TOTAL] if any(promise(logs))}

    def hear_up_to(self, node: int, place: int, lost: Sequence[tuple[int, int]] = ()) -> None:
        """A node hears the channel up to a place, but for what it loses: node and place."""
        while self.places[node] < place:
            here = self.places[node]
            if (node, here) in lost:
                self.miss(node, self.label(self.channel[here]))
            else:
                self.places[node] += 1
                self.handle(node, Receive(self.channel[here]))

    def ready(self, node: int) -> None:
        """A node speaks, without data and at a place of the channel that counts."""
        raise NotImplementedError

    def play(self, slots: Sequence[Sequence[int]], lost: Sequence[Sequence[int]] = ()) -> None:
        """Slots of the channel, each [source from 1 on, slots that it has taken by then, priority or 0 for an RR].

        Data are called d and their slot, from 0 on; who loses what is [entity, slot]. In the end all hear all.
        """
        losses = [(entity - 1, slot) for entity, slot in lost]
        for slot, (entity, taken, priority) in enumerate(slots):
            self.take(slot, entity - 1, taken, f"d{slot}" if priority else "", priority, losses)
        for node in self.nodes:
            self.hear_up_to(node, len(slots), losses)

    def take(
        self, slot: int, node: int, taken: int, letter: str, priority: int, lost: Sequence[tuple[int, int]] = ()
    ) -> None:
        """A node that has taken so many slots takes one itself: for data, or without a letter for an RR."""
        self.hear_up_to(node, taken, lost)
        if letter:
            self.send(node, letter, priority)
        else:
            self.ready(node)
        assert len(self.channel) == slot + 1, "nobody says anything else"

    def _record(self, node: int, kind: str, packet: Packet) -> None:
        to = tuple(self.nodes)
        row = (node, len(self._rows), self._moment, kind, packet.source, packet.first, to, packet.priority)
        self._rows.append(row)


class PaperGroup(PriorityChannel[PritoPaper]):
    """A group under the printed rules."""

    def __init__(
        self, nodes: int = 3, machine: Callable[[int, GroupConfig], PritoPaper] = PritoPaper, **how: Any
    ) -> None:
        super().__init__(machine, nodes=nodes, **how)

    def ready(self, node: int) -> None:
        """A node has been silent for a while, and somebody wants to hear of it."""
        self.machines[node].pending = True
        self.timers[node].setdefault("ready", 0)
        self.fire(node, "ready")

    def recover(self, speaks: int, order: Sequence[int]) -> None:
        """One speaks, and so shows a loss; in the end the nodes go back, and broadcast again, in this order."""
        self.ready(speaks)
        self.recover_from_now(order)

    def recover_from_now(self, order: Sequence[int] = ()) -> None:
        """What is on the channel shows a loss; as `recover`, which says the rest."""
        while sum(isinstance(unit, Rejected) for unit in self.channel) < len(self.nodes):
            behind = [node for node in self.nodes if self.places[node] < len(self.channel)]
            assert behind, "nobody noticed a loss"
            for node in behind:
                self.hear_up_to(node, self.places[node] + 1)
        last = max(place for place, unit in enumerate(self.channel) if isinstance(unit, Rejected))
        for node in self.nodes:
            self.hear_up_to(node, last)
        for node in order or self.nodes:
            self.hear_up_to(node, last + 1)


class SoundGroup(PriorityChannel[TotalOrderBroadcast]):
    """A group under the sound rules."""

    def __init__(
        self, nodes: int = 3, machine: Callable[[int, GroupConfig], TotalOrderBroadcast] = Prito, **how: Any
    ) -> None:
        super().__init__(machine, nodes=nodes, **how)

    def ready(self, node: int) -> None:
        """A node has been silent for a while, and what it has accepted must be said in sequence."""
        reception = self.machines[node].reception
        reception.pending = reception.pending_in_sequence = True
        self.timers[node].setdefault("status", 0)
        self.fire(node, "status")


def receipt_log(group: PriorityChannel[PritoPaper], node: int) -> str:
    """PRL and RRL of a node, as in "z p p* | z* RR*": pseudo-PDUs have stars."""

    def words(log: list[Entry]) -> str:
        return " ".join(group.label(entry.unit).split()[0] + "*" * entry.pseudo for entry in log)

    machine = group.machines[node]
    return f"{words(machine.preacknowledged)} | {words(machine.accepted)}".strip()


def ready(source: int, seq: int, *expects: int) -> PrintedReady:
    """An RR, from nowhere."""
    return PrintedReady(source, seq, expects)
