"""Delivery: which of the packets that all nodes know in one order is next. The policy is a parameter of the machine.

All nodes pre-acknowledge one common sequence (`reception`), each as far as it knows it. A **delivery policy** decides,
at each position of that sequence, what is delivered. As long as it depends on the sequence alone, and neither on a
clock nor on when a unit arrived, what any two nodes have delivered are prefixes of one log.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import DeclaredState
from ordercast.model.machine import Deliver, Level, Output, Reached
from ordercast.model.units import Packet
from ordercast.protocols.to.units import Heading, PolicyUnit

ACKNOWLEDGED = Level.ACKNOWLEDGED


class Deliveries(DeclaredState):
    """What is delivered here and, by their reports, elsewhere.

    Flow control by the receivers' buffers (BUF): an own packet counts against the quota until all have delivered it.
    """

    me: Final[int]
    quota: Final[int]
    count: int
    """Packets delivered here."""
    delivered_by: list[int]
    """By node: the packets that it has delivered, by its last report."""
    own_undelivered: int
    """Own packets that are not known to be delivered everywhere."""
    own_positions: deque[int]
    """Of these, the ones that are delivered here: their positions in the order of delivery."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        self.me, self.quota = me, config.quota
        self.count, self.own_undelivered = 0, 0
        self.delivered_by, self.own_positions = [0] * config.nodes, deque()

    def deliver(self, packet: Packet, out: list[Output]) -> None:
        """Delivers a packet here."""
        if packet.source == self.me:
            self.own_positions.append(self.count)
        self.count += 1
        out.append(Deliver(packet))

    def has_room(self) -> bool:
        """Whether the quota admits one more own packet."""
        if self.own_undelivered >= self.quota and self.own_positions:
            lowest = min([count for node, count in enumerate(self.delivered_by) if node != self.me])
            while self.own_positions and self.own_positions[0] < lowest:
                self.own_positions.popleft()
                self.own_undelivered -= 1
        return self.own_undelivered < self.quota

    def behind(self) -> int:
        """The set of the nodes that have delivered less than this one, by their last report."""
        return sum(1 << node for node, count in enumerate(self.delivered_by) if count < self.count)


class DeliveryPolicy(DeclaredState):
    """Decides the order of delivery. This base has no units and no timer of its own, and delivers nothing.

    A policy may own sequenced units (`units`). The machine numbers, acknowledges and recovers them like any other, and
    calls `accepted` and `reached` with them; `reached` is called at the same position of the sequence at all nodes.
    """

    units: ClassVar[frozenset[type[PolicyUnit]]] = frozenset()
    """The kinds of units that it owns."""
    timer: ClassVar[str] = ""
    """The name of its timer, if it has one."""
    deliveries: Final[Deliveries]
    acknowledged_count: int
    """Packets acknowledged so far; acknowledgment follows the common sequence."""

    def __init__(self, config: GroupConfig, deliveries: Deliveries) -> None:
        del config
        self.deliveries, self.acknowledged_count = deliveries, 0

    def enter(self, packet: Packet, position: int) -> None:
        """A packet was pre-acknowledged at this position of the common sequence."""

    def acknowledge(self, packets: Sequence[Packet], out: list[Output]) -> None:
        """These packets are acknowledged, in the order of the common sequence."""
        raise NotImplementedError

    def delivered_on_abort(self, preacknowledged: Iterable[Packet]) -> Iterable[Packet]:
        """What may still be delivered when the group is given up, of the packets that are not acknowledged."""
        del preacknowledged
        return ()

    def held(self, unacknowledged: int) -> int:
        """How many packets are pre-acknowledged and not delivered; so many of them are not acknowledged."""
        return unacknowledged

    def waits_for(self) -> tuple[str, ...]:
        """What packets wait for besides acknowledgment, as text."""
        return ()

    # --- units of its own ---

    def is_possible(self, unit: PolicyUnit, known_below: int) -> bool:
        """Whether an honest node can have sent this; positions below `known_below` are taken by packets."""
        raise NotImplementedError

    def accepted(self, unit: PolicyUnit) -> None:
        """A unit of its own was accepted here."""

    def reached(self, unit: PolicyUnit, out: list[Output]) -> None:
        """A unit of its own was pre-acknowledged: this is its position in the common sequence."""

    # --- its timer ---

    def timer_to_set(self) -> int:
        """The duration of its timer if it is to be set now, else 0."""
        return 0

    def timer_fired(self) -> None:
        """Its timer has fired."""

    def has_unit(self) -> bool:
        """Whether it wants to send a unit, now that its timer has fired."""
        return False

    def make_unit(self, heading: Heading) -> PolicyUnit:
        """The unit that it wants to send."""
        raise NotImplementedError


class ChannelOrder(DeliveryPolicy):
    """TO's policy: packets are delivered in channel order, each when it is acknowledged."""

    def acknowledge(self, packets: Sequence[Packet], out: list[Output]) -> None:
        """ACK: what is acknowledged is delivered."""
        self.acknowledged_count += len(packets)
        for packet in packets:
            out.append(Reached(ACKNOWLEDGED, packet))
            self.deliveries.deliver(packet, out)

    def delivered_on_abort(self, preacknowledged: Iterable[Packet]) -> Iterable[Packet]:
        """All of them: an exact prefix of the channel order that every node has accepted."""
        return preacknowledged
