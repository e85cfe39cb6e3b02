"""Whether a run of a group with views is complete: those that remain have all that each view gave to their like."""

from ordercast.model.nodes import mask_of, members
from ordercast.model.units import Packet
from ordercast.simulator.completion import Completion


class ViewCompletion(Completion):
    """Follows each packet until all members of the view in which it is delivered have it, as far as it is for them."""

    def __init__(self, nodes: int, to_send: list[int], founders: tuple[int, ...]) -> None:
        super().__init__(nodes, to_send, has_views=True)
        self._views = {0: mask_of(founders)}  # members by number
        self._latest = 0
        self._places = {0: founders}  # the same in their places
        self._view_of: list[int | None] = [None] * nodes
        self._joining = 0
        self._pending: dict[tuple[int, int], _Pending] = {}  # by source and first message

    def numbered(self, packet: Packet) -> None:
        """A packet was sent."""
        self._unsent[packet.source] -= len(packet.lengths)
        self._pending[packet.source, packet.first] = _Pending(packet.destinations)

    def not_sent(self, node: int, messages: int, first: int | None) -> None:
        """None of the destinations of a submission is a member; `first`: its number if it has one."""
        if first is None:
            self._unsent[node] -= messages
        else:
            self._pending.pop((node, first), None)

    def delivered(self, node: int, packet: Packet) -> None:
        """A packet was delivered at a node."""
        key = packet.source, packet.first
        pending = self._pending.get(key)
        if pending is None:
            return
        pending.delivered |= 1 << node
        pending.view = max(pending.view, self._view_of[node] or 0)
        if not pending.destinations & self._views[pending.view] & ~pending.delivered:
            del self._pending[key]

    def joins(self, node: int) -> None:
        """A node has begun to join."""
        self._joining |= 1 << node

    def enters(self, node: int, number: int, places: tuple[int, ...]) -> None:
        """A node installed a view with these members, in their places."""
        self._views[number], self._places[number] = mask_of(places), places
        self._latest = max(self._latest, number)
        self._view_of[node] = number
        self._joining &= ~(1 << node)

    def is_blocked(self, resilience: int) -> bool:
        """True if too few remain of the latest view, or of the latest that one of them is in, to agree on a next one.

        `resilience`: of a sequencer, of whose members all but so many must answer.
        """
        gone = self._gone | self._aborted
        present = [number for node, number in enumerate(self._view_of) if number is not None and not gone >> node & 1]
        return any(not self._has_quorum(number, resilience) for number in {self._latest, max(present, default=0)})

    def _has_quorum(self, number: int, resilience: int) -> bool:
        gone, places = self._gone | self._aborted, self._places[number]
        there = [node for node in places if not gone >> node & 1]
        if resilience and len(there) < len(places) - resilience:
            return False
        return 2 * len(there) > len(places) or (2 * len(there) == len(places) and places[0] in there)

    def is_complete(self) -> bool:
        """True if the members of the latest view have sent all, and have what each view gave to its members.

        Those that stopped, left, or were excluded or refused, are not asked; what they sent last may be lost.
        """
        gone = self._gone | self._aborted
        latest = self._views[self._latest]
        remaining = latest & ~gone
        if not remaining or self._joining & ~gone or any(self._unsent[node] for node in members(remaining)):
            return False
        for (source, _), pending in self._pending.items():
            if pending.delivered & remaining:
                due = pending.destinations & self._views[pending.view]
            else:
                due = pending.destinations if remaining >> source & 1 else 0
            if due & remaining & ~pending.delivered:
                return False
        return True


class _Pending:
    """A packet that not all have yet that it is for."""

    __slots__ = ("delivered", "destinations", "view")

    def __init__(self, destinations: int) -> None:
        self.destinations = destinations
        self.delivered = 0
        self.view = 0  # the latest in which it was delivered
