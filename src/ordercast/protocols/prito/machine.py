"""PriTO: everything to everybody in one order, urgent packets first, and no packet waits for ever.

From: Nakamura and Takizawa, "Run Synchronization in the Priority-Based Broadcast Protocol", sections 3 to 5. It is `to`
with another way from pre-acknowledgment to delivery: a packet that is pre-acknowledged is put before all of lower
priority that still wait, and the first of them is delivered when it is acknowledged.

All nodes pre-acknowledge one common sequence (`to_normal`), each as far as it knows it. What is delivered is a
function of that sequence, one unit after the other, and of nothing else: not of when a unit came, and not of a clock.
So what any two nodes deliver is always the beginning of one and the same log, whatever was lost on the way.

Ending a run (5). When an acknowledged packet has been overtaken for long, its node puts a marker into the sequence. At
the marker's place everybody delivers the packets that have waited too long, with what stands before them and is
acknowledged too. A second marker that covers the same finds nothing left to do. A marker that is lost need not be
repeated: its loss sends the group back, and a new epoch acknowledges all that is kept, so nothing is left that waits.

Departures from the paper:
 1. Packets are sorted in when they are pre-acknowledged, not when they are accepted: acceptance differs between nodes
    as long as a loss is not repaired (F2).
 2. The first is looked at after *every* unit of the sequence: if several are taken at once, what is urgent among them
    overtakes what was due before it (F4), and how many are taken at once depends on losses.
 3. Nobody stops to end a run, and a clock only decides when a marker is *sent* (F6: stopping when a timer fires gives
    different runs without any loss). Markers replace the printed three rounds, which block for ever if one is lost.
 4. The marker names one place in the common sequence instead of a number for each source: acknowledgment follows the
    sequence, so what has waited longest is a beginning of it.
"""

from heapq import heappop, heappush
from typing import Any

from ordercast.model.config import GroupConfig
from ordercast.model.machine import LogSizes, Output, Reached, Send
from ordercast.model.state import Snapshot
from ordercast.model.units import Packet
from ordercast.protocols.to.machine import To
from ordercast.protocols.to.normal import ACKNOWLEDGED
from ordercast.protocols.to.state import Mode
from ordercast.protocols.to.units import RunMarker, Sequenced

_OWN = ("covered_below", "run_timer")


class Prito(To):
    """The protocol at one node."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        # PRL: pre-acknowledged and not delivered, as a heap of (-PRI, place in the common sequence, packet).
        self.by_priority: list[tuple[int, int, Packet]] = []
        self.overtaken: set[int] = set()  # the places of those that are acknowledged and still wait
        self.covered_below = 0  # a marker that I sent or accepted covers the packets at places below this
        self.run_timer = False

    # --- the way to delivery (4.1) ---

    def _enter(self, packet: Packet, seq: int, out: list[Output]) -> None:
        """Priority insertion: before all of lower priority, behind all others."""
        heappush(self.by_priority, (-packet.priority, self.preacknowledged_count, packet))
        super()._enter(packet, seq, out)

    def _acknowledge(self, risen: list[Packet], out: list[Output]) -> None:
        """ACK: the first is delivered as soon as it is acknowledged, and so on."""
        for packet in risen:
            self.moved = True
            self.overtaken.add(self.acknowledged_count)
            self.acknowledged_count += 1
            out.append(Reached(ACKNOWLEDGED, packet))
        waiting = self.by_priority
        while waiting and waiting[0][1] < self.acknowledged_count:
            _, place, packet = heappop(waiting)
            self.overtaken.remove(place)
            self._deliver(packet, out)

    # --- ending a run (5) ---

    def _close_run(self, through: int, out: list[Output]) -> None:
        """At the place of a marker: what has waited too long, and what stands before it, as far as acknowledged."""
        waiting = sorted(self.by_priority)
        end = max([number for number, (_, place, _) in enumerate(waiting, start=1) if place < through], default=0)
        for _, place, packet in waiting[:end]:
            if place < self.acknowledged_count:
                self.overtaken.remove(place)
                self._deliver(packet, out)
        self.by_priority = [  # what is sorted is a heap
            entry for number, entry in enumerate(waiting) if number >= end or entry[1] >= self.acknowledged_count
        ]

    def _accept(self, unit: Sequenced, source: int, seq: int, out: list[Output]) -> None:
        if type(unit) is RunMarker:
            self.covered_below = max(self.covered_below, unit.through)
        super()._accept(unit, source, seq, out)

    def _settle(self, out: list[Output]) -> None:
        super()._settle(out)
        if self.overtaken and not self.run_timer and self.config.priority.synchronises and self._uncovered():
            self.run_timer = True
            self._set_timer("run", self.config.timing.run, out)

    def _uncovered(self) -> bool:
        """Whether something has been overtaken that no marker covers yet."""
        return any(place >= self.covered_below for place in self.overtaken)

    def _fire(self, name: str, out: list[Output]) -> None:
        if name == "run":
            self.run_timer = False
            if self.mode is Mode.NORMAL and self._uncovered():
                self.covered_below = self.acknowledged_count
                out.append(Send(RunMarker(self._heading_in_sequence(), self.acknowledged_count)))
        else:
            super()._fire(name, out)

    def _safe(self) -> list[Packet]:
        """Nothing: something more urgent may have come before any of these at a node that knows more."""
        return []

    # --- looking at it from outside ---

    def snapshot(self) -> Snapshot:
        """The whole state as nested tuples."""
        own = tuple(getattr(self, name) for name in _OWN)
        return (*super().snapshot(), own, tuple(sorted(self.by_priority)), tuple(sorted(self.overtaken)))

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot."""
        super().restore(snapshot)
        parts: tuple[Any, ...] = snapshot
        *_, own, by_priority, overtaken = parts
        for name, value in zip(_OWN, own, strict=True):
            setattr(self, name, value)
        self.by_priority, self.overtaken = list(by_priority), set(overtaken)

    def log_sizes(self) -> LogSizes:
        """How much it holds now."""
        sizes = super().log_sizes()
        return LogSizes(sizes.waiting, sizes.sent, sizes.held, sizes.accepted, len(self.by_priority))

    def waits_for(self) -> tuple[str, ...]:
        """What this node still waits for, in words."""
        lines = super().waits_for()
        if self.overtaken and self.mode is Mode.NORMAL:
            lines += (f"{len(self.overtaken)} acknowledged packets wait behind more urgent ones",)
        return lines
