"""What applications were told of messages: the levels of those that they got, and what became of their own."""

from collections.abc import Collection, Iterator

from ordercast.model.machine import Deliver, Level, NotSent, Reached
from ordercast.model.nodes import name_of
from ordercast.model.units import Packet

_Name = tuple[int, int]
"""Source and first message."""


class Receipts:
    """By node: what it was told."""

    def __init__(self, nodes: int) -> None:
        self._told: list[set[tuple[_Name, Level]]] = [set() for _ in range(nodes)]
        self._delivered: list[set[_Name]] = [set() for _ in range(nodes)]
        self._own: list[set[_Name]] = [set() for _ in range(nodes)]  # that a receipt is waited for

    def number(self, node: int, packet: Packet) -> None:
        """A node sends a packet."""
        self._own[node].add((packet.source, packet.first))

    def reach(self, node: int, output: Reached) -> None:
        """A level is told."""
        self._told[node].add(((output.packet.source, output.packet.first), output.level))

    def deliver(self, node: int, output: Deliver) -> None:
        """A packet was delivered."""
        self._delivered[node].add((output.packet.source, output.packet.first))

    def not_sent(self, node: int, output: NotSent) -> None:
        """The sender is told that none of the destinations is left."""
        if output.first is not None:
            self._own[node].discard((node, output.first))

    def lacking(self, nodes: Collection[int], due: Collection[Level]) -> Iterator[str]:
        """A sentence for each of these nodes that was not told what it should be told of all that it got or sent."""
        for node in nodes:
            for level in due:
                wanted = set(self._delivered[node])
                if level is Level.STABLE:
                    wanted |= self._own[node]
                untold = sorted(name for name in wanted if (name, level) not in self._told[node])
                if untold:
                    source, first = untold[0]
                    name = f"{name_of(source)}#{first}"
                    yield f"{name_of(node)} is never told that {name} is {level.name.lower()} ({len(untold):,} in all)"
                    break
