"""Delivery by priority, in runs that markers end: the policy of PriTO and PriO (sections 4.1 and 5 of the paper).

A packet that is pre-acknowledged is put before all waiting packets of lower priority; the first is delivered when it is
acknowledged. An acknowledged packet may be overtaken again and again (starvation). When it has waited for `timing.run`,
its node sends a **marker**. At the marker's position in the common sequence every node delivers the packets that have
waited too long, with the acknowledged ones before them: that ends the run. A second marker for the same packets finds
nothing left to do. A lost marker is not repeated: its loss causes a recovery, and the new epoch acknowledges everything
that is kept, so that nothing waits any more.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import ClassVar, Final

from ordercast.model.config import GroupConfig
from ordercast.model.declared_state import Unordered
from ordercast.model.machine import Level, Output, Reached
from ordercast.model.units import Packet
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.to.delivery import Deliveries, DeliveryPolicy
from ordercast.protocols.to.units import Heading, PolicyUnit

ACKNOWLEDGED = Level.ACKNOWLEDGED


class PriorityOrder(DeliveryPolicy):
    """Higher priorities first, within runs."""

    units: ClassVar[frozenset[type[PolicyUnit]]] = frozenset({RunMarker})
    timer: ClassVar[str] = "run"

    run_timeout: Final[int]
    """How long an acknowledged packet may wait before a marker is sent for it; 0: markers are never sent."""
    by_priority: Unordered[list[tuple[int, int, Packet]]]
    """PRL: pre-acknowledged and not delivered, as a heap of (-PRI, position in the common sequence, packet)."""
    overtaken: set[int]
    """The positions of the packets that are acknowledged and not delivered."""
    covered_below: int
    """Packets at positions below this are covered by a marker that this node sent or accepted."""
    run_timer: bool
    """It runs while something acknowledged is not delivered: then a marker is sent."""

    def __init__(self, config: GroupConfig, deliveries: Deliveries) -> None:
        super().__init__(config, deliveries)
        self.run_timeout = config.timing.run if config.priority.synchronises else 0
        self.by_priority, self.overtaken = [], set()
        self.covered_below, self.run_timer = 0, False

    # --- the order of delivery (4.1) ---

    def enter(self, packet: Packet, position: int) -> None:
        """Priority insertion: before all packets of lower priority, behind all others."""
        heappush(self.by_priority, (-packet.priority, position, packet))

    def acknowledge(self, packets: Sequence[Packet], out: list[Output]) -> None:
        """ACK: the first is delivered if it is acknowledged, then the next, and so on."""
        for packet in packets:
            self.overtaken.add(self.acknowledged_count)
            self.acknowledged_count += 1
            out.append(Reached(ACKNOWLEDGED, packet))
        waiting = self.by_priority
        while waiting and waiting[0][1] < self.acknowledged_count:
            _, position, packet = heappop(waiting)
            self.overtaken.remove(position)
            self.deliveries.deliver(packet, out)

    # --- the end of a run (5) ---

    def is_possible(self, unit: PolicyUnit, known_below: int) -> bool:
        """A marker cannot cover positions that no packet has taken yet."""
        assert isinstance(unit, RunMarker)
        return unit.covered_below <= known_below

    def accepted(self, unit: PolicyUnit) -> None:
        """No node sends a marker for packets that this one covers."""
        assert isinstance(unit, RunMarker)
        self.covered_below = max(self.covered_below, unit.covered_below)

    def reached(self, unit: PolicyUnit, out: list[Output]) -> None:
        """The position of a marker."""
        assert isinstance(unit, RunMarker)
        self.end_run(unit.covered_below, out)

    def end_run(self, below: int, out: list[Output]) -> None:
        """Delivers the packets at positions below `below`, and those before them, as far as they are acknowledged."""
        waiting = sorted(self.by_priority)
        end = max([number for number, (_, place, _) in enumerate(waiting, start=1) if place < below], default=0)
        for _, position, packet in waiting[:end]:
            if position < self.acknowledged_count:
                self.overtaken.remove(position)
                self.deliveries.deliver(packet, out)
        self.by_priority = [  # sorted, hence a heap
            entry for number, entry in enumerate(waiting) if number >= end or entry[1] >= self.acknowledged_count
        ]

    def timer_to_set(self) -> int:
        """The timer runs while a packet is overtaken that no marker covers."""
        if self.overtaken and not self.run_timer and self.run_timeout and self.has_unit():
            self.run_timer = True
            return self.run_timeout
        return 0

    def timer_fired(self) -> None:
        """Its timer has fired."""
        self.run_timer = False

    def has_unit(self) -> bool:
        """Whether a packet is overtaken that no marker covers."""
        return any(position >= self.covered_below for position in self.overtaken)

    def make_unit(self, heading: Heading) -> PolicyUnit:
        """A marker that covers everything acknowledged so far."""
        self.covered_below = self.acknowledged_count
        return RunMarker(heading, self.acknowledged_count)

    # --- inspection ---

    def held(self, unacknowledged: int) -> int:
        """Those that are not acknowledged, and those that are overtaken."""
        return unacknowledged + len(self.overtaken)

    def waits_for(self) -> tuple[str, ...]:
        """What packets wait for besides acknowledgment, as text."""
        if not self.overtaken:
            return ()
        return (f"{len(self.overtaken)} acknowledged packets wait behind more urgent ones",)
