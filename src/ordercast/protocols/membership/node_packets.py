"""Packets of epochs as packets of nodes, and what happens to them, each thing once.

In an epoch sources and destinations are places, and packets are numbered from 0. Here they are nodes, and packets are
numbered by their messages. A packet that is sent again in a later epoch reaches the lower levels again: that is not
told again.
"""

from typing import Final

from msgspec.structs import replace

from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import (
    Deliver,
    Level,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    Renumbered,
)
from ordercast.model.nodes import everybody, mask_of, members
from ordercast.model.units import Packet
from ordercast.protocols.membership.view import GroupView


def node_at(view: GroupView, place: int) -> int:
    """The node at a place: its incarnation number."""
    return view.members[place].number


def nodes_of(view: GroupView) -> tuple[int, ...]:
    """The nodes of a view, by place."""
    return tuple(member.number for member in view.members)


class NodePackets(DeclaredState):
    """What one node tells of packets."""

    everybody: Final[int | None]

    view: GroupView  # told last; the outputs of one input may belong to two views
    levels: dict[tuple[int, int], int]  # by source and first message: the level told of packets that are not delivered
    numbered_below: int  # own messages that were told to have a number

    def __init__(self, view: GroupView, nodes: int | None) -> None:
        """`nodes`: if every packet goes to all: to how many nodes; None: packets go to some."""
        self.everybody = None if nodes is None else everybody(nodes)
        self.view, self.levels, self.numbered_below = view, {}, 0

    def start_view(self, view: GroupView) -> None:
        """Packets of nodes that are gone reach no level any more."""
        self.view = view
        nodes = mask_of(nodes_of(view))
        self.levels = {key: level for key, level in self.levels.items() if nodes >> key[0] & 1}

    def translated(self, packet: Packet) -> Packet:
        """By nodes, numbered by messages. What is to all members is to all nodes, as it was submitted."""
        to = self.everybody
        if to is None:
            to = mask_of(node_at(self.view, place) for place in members(packet.destinations))
        source = node_at(self.view, packet.source)
        return replace(packet, source=source, destinations=to, seq=packet.first, seq_to=())

    def tell(self, output: Numbered | Reached | Deliver, out: list[Output], *, by_view: bool) -> None:
        """`by_view`: it is reached because the view ends."""
        packet = self.translated(output.packet)
        if isinstance(output, Deliver):
            out.append(Deliver(packet))
        elif isinstance(output, Reached):
            self._tell_level(output.level, packet, out, by_view=by_view)
        elif packet.first >= self.numbered_below:
            self.numbered_below = packet.first + len(packet.lengths)
            out.append(Numbered(packet))
        else:
            out.append(Renumbered(packet, self.view.number))

    def _tell_level(self, level: Level, packet: Packet, out: list[Output], *, by_view: bool) -> None:
        key = (packet.source, packet.first)
        if self.levels.get(key, 0) < level:
            self.levels[key] = level
            out.append(ReachedByView(level, packet) if by_view else Reached(level, packet))
        if level is Level.ACKNOWLEDGED:  # it is in the cut of this view
            del self.levels[key]
