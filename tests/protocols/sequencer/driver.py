"""Drives the sequencer's machine by hand: one machine with units from correct peers, or a group without a network.

In a group every unit waits at its receiver until the test has it received or lost, in any order.
"""

from typing import Any

from ordercast.model.config import GroupConfig, SequencerConfig
from ordercast.model.machine import Deliver, Submit, ViewInstalled
from ordercast.model.nodes import members
from ordercast.model.units import Packet, Unit
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.sequencer.units import (
    Acknowledgment,
    Broadcast,
    Flush,
    NumberAnnouncement,
    Offer,
    SequencerStatus,
    Synchronise,
)
from tests.protocols.driver import E1, E2, E3, E4, E5, NamedOutputs, Seat, name_of_packet, player_of

__all__ = [
    "E1", "E2", "E3", "E4", "E5", "Group", "Node", "Outputs", "acknowledgment", "announcement",
    "broadcast", "config", "name_of_packet", "offer", "packet", "status", "synchronise",
]  # fmt: skip


def packet(source: int, seq: int, name: str, nodes: int = 3) -> Packet:
    return Packet(source, (1 << nodes) - 1, seq, (), seq, (len(name),), name.encode())


class Outputs(NamedOutputs):
    """What followed from one input, or from several."""

    def to(self, node: int | None) -> list[Unit]:
        """Units sent to one node; None: to everybody."""
        return [send.unit for send in self.sends if send.to == node]

    @property
    def copies(self) -> list[int]:
        """Sequence numbers of retransmitted broadcasts."""
        return [send.unit.number for send in self.sends if send.again and isinstance(send.unit, Broadcast)]

    @property
    def offers(self) -> list[str]:
        return [name_of_packet(unit.packet) for unit in self.of(Offer)]

    @property
    def broadcasts(self) -> list[str]:
        return [f"{unit.number}:{name_of_packet(unit.packet)}" for unit in self.of(Broadcast)]

    @property
    def everywhere(self) -> list[str]:
        return self.preacknowledged

    @property
    def told(self) -> list[str]:
        """Deliveries and views, in their order."""
        found = []
        for output in self:
            if isinstance(output, Deliver):
                found.append(name_of_packet(output.packet))
            elif isinstance(output, ViewInstalled):
                found.append(f"[{output.number}:{','.join(str(node + 1) for node in members(output.members))}]")
        return found


def config(nodes: int = 3, window: int = 8, polls_to_abort: int = 64, **options: Any) -> GroupConfig:
    views = options.pop("views", False)
    return GroupConfig(
        nodes=nodes, window=window, polls_to_abort=polls_to_abort, views=views, sequencer=SequencerConfig(**options)
    )


class Node(Seat[Outputs]):
    """A machine, and a host that keeps its timers."""

    outputs = Outputs
    machine: Sequencer

    def __init__(self, me: int, nodes: int = 3, **options: Any) -> None:
        super().__init__(player_of(Sequencer)(me, config(nodes, **options)))

    def submits(self, *names: str) -> Outputs:
        everybody = (1 << self.machine.config.nodes) - 1
        found = Outputs()
        for name in names:
            found += self.handle(Submit(everybody, (len(name),), name.encode()))
        return found


# --- units of a correct sequencer E1, or of members ---


def broadcast(number: int, name: str, source: int = E2, seq: int | None = None, **fields: Any) -> Broadcast:
    packed = packet(source, number if seq is None else seq, name, fields.pop("nodes", 3))
    commit, stable = fields.get("commit", number + 1), fields.get("stable", 0)
    return Broadcast(packed, fields.get("view", 0), fields.get("by", E1), number, commit, stable)


def offer(source: int, seq: int, name: str, received: int = 0, *, direct: bool = False, view: int = 0) -> Offer:
    return Offer(packet(source, seq, name), view, received, direct)


def acknowledgment(source: int, received: int, *missing: tuple[int, int], wants_status: bool = False) -> Acknowledgment:
    return Acknowledgment(0, source, received, missing, wants_status)


def status(number: int, *, commit: int | None = None, stable: int = 0, reply_from: int = 0) -> SequencerStatus:
    return SequencerStatus(0, E1, number, number if commit is None else commit, stable, reply_from)


def announcement(number: int, *names: tuple[int, int]) -> NumberAnnouncement:
    return NumberAnnouncement(0, E1, number, names, number + len(names), 0)


def synchronise(round_: int, phase: int, number: int, stable: int = 0, reply_from: int = 0b111) -> Synchronise:
    return Synchronise(0, E1, round_, phase, number, stable, reply_from)


class Group:
    """Machines, and what is under way to each."""

    def __init__(self, nodes: int = 3, **options: Any) -> None:
        self.nodes = [Node(me, nodes, **options) for me in range(nodes)]
        self.mail: list[list[Unit]] = [[] for _ in range(nodes)]
        self.crashed: set[int] = set()

    def put(self, sender: int, outputs: Outputs) -> Outputs:
        """Puts everything that was sent under way."""
        for send in outputs.sends:
            for receiver, mail in enumerate(self.mail):
                if receiver != sender and send.to in {None, receiver}:
                    mail.append(send.unit)
        return outputs

    def submit(self, node: int, *names: str) -> Outputs:
        return self.put(node, self.nodes[node].submits(*names))

    def fire(self, node: int, timer: str) -> Outputs:
        return self.put(node, self.nodes[node].fires(timer))

    def crash(self, node: int) -> None:
        self.crashed.add(node)
        self.mail[node] = []
        self.nodes[node].running = {}

    def lose(self, *receivers: int, kind: type[Unit] = Unit) -> None:
        """Loses what is under way to these nodes (default: to all): all units, or those of a kind."""
        for node in receivers or range(len(self.nodes)):
            self.mail[node] = [unit for unit in self.mail[node] if not isinstance(unit, kind)]

    def hear(self, node: int, kind: type[Unit] = Unit) -> Outputs:
        """The node receives what is under way to it now: all units, or those of a kind."""
        found = Outputs()
        heard = [unit for unit in self.mail[node] if isinstance(unit, kind)]
        self.mail[node] = [unit for unit in self.mail[node] if not isinstance(unit, kind)]
        for unit in heard if node not in self.crashed else ():
            found += self.put(node, self.nodes[node].hears(unit))
        return found

    def exhaust(self, *silent: int, most: int = 500) -> None:
        """Everybody but these receives everything, and what is sent in reply, until nothing is under way."""
        for node in silent:
            self.mail[node] = []
        for _ in range(most):
            if not any(self.mail):
                return
            for node in range(len(self.nodes)):
                if node in silent:
                    self.mail[node] = []
                else:
                    self.hear(node)
        raise AssertionError("replies never end")

    def settle(self, *silent: int, rounds: int = 200) -> None:
        """From here on nothing is lost except at these nodes; all timers fire in turn until none is left."""
        for _ in range(rounds):
            self.exhaust(*silent, *self.crashed)
            awake = [node for node in range(len(self.nodes)) if node not in {*silent, *self.crashed}]
            timers = [(node, timer) for node in awake for timer in tuple(self.nodes[node].running)]
            if not timers:
                return
            for node, timer in timers:
                if timer in self.nodes[node].running:
                    self.fire(node, timer)
        raise AssertionError(f"not silent: {[node.machine.waits_for() for node in self.nodes]}")

    def begins_ballot(self, node: int) -> None:
        """Its timers fire, and nothing is received, until it asks the others to stop."""
        for _ in range(50):
            for timer in ("view", "need", "status"):
                if timer in self.nodes[node].running and self.fire(node, timer).of(Flush):
                    return
        raise AssertionError(f"{self.nodes[node].machine.waits_for()}")

    def fire_until(self, node: int, timer: str, kind: type[Unit]) -> None:
        """Its timer fires until it sends a unit of a kind."""
        for _ in range(100):
            if self.fire(node, timer).of(kind):
                return
        raise AssertionError(f"{self.nodes[node].machine.waits_for()}")

    def delivered(self, *nodes: int) -> list[str]:
        """What each node delivered, in its order."""
        return [" ".join(self.nodes[node].did.delivered) for node in nodes or range(len(self.nodes))]

    def told(self, *nodes: int) -> list[str]:
        """The same, with views."""
        return [" ".join(self.nodes[node].did.told) for node in nodes or range(len(self.nodes))]
