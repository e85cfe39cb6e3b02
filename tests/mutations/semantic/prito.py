"""Semantic mutants of `protocols.prito.delivery`, the policy of PriTO and PriO."""

from collections.abc import Callable, Sequence
from heapq import heappush
from typing import Any

from ordercast.model.machine import Output
from ordercast.model.units import Packet
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.prito.units import RunMarker
from ordercast.protocols.to.machine import TotalOrderBroadcast
from ordercast.protocols.to.units import Heading
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.prito.delivery")


def _ranks(rank: Callable[[Packet, int], int]) -> None:
    def enter(self: PriorityOrder, packet: Packet, position: int) -> None:
        heappush(self.by_priority, (rank(packet, position), position, packet))

    replace(PriorityOrder, "enter", enter)


@MUTANTS.add("priorities are ignored")
def _() -> None:
    _ranks(lambda *_: 0)


@MUTANTS.add("lower priorities go first")
def _() -> None:
    _ranks(lambda packet, _: packet.priority)


@MUTANTS.add("the last of equal priorities goes first")
def _() -> None:
    _ranks(lambda packet, position: -1000 * packet.priority - position)


@MUTANTS.add("of several packets that are acknowledged at once only the last is")
def _() -> None:
    def around(acknowledge: Callable[..., None]) -> Callable[..., None]:
        def late(self: PriorityOrder, packets: Sequence[Packet], out: list[Output]) -> None:
            acknowledge(self, packets[-1:], out)

        return late

    wrap(PriorityOrder, "acknowledge", around)


@MUTANTS.add("delivers one level too early: the first goes when it is pre-acknowledged")
def _() -> None:
    def around(acknowledge: Callable[..., None]) -> Callable[..., None]:
        def early(self: PriorityOrder, packets: Sequence[Packet], out: list[Output]) -> None:
            acknowledge(self, packets, out)
            for _, _, packet in sorted(self.by_priority):
                self.deliveries.deliver(packet, out)
            self.by_priority.clear()
            self.overtaken.clear()

        return early

    wrap(PriorityOrder, "acknowledge", around)


@MUTANTS.add("a run never ends: a marker does nothing at its position")
def _() -> None:
    replace(PriorityOrder, "end_run", lambda *_: None)


@MUTANTS.add("no marker is ever sent")
def _() -> None:
    replace(PriorityOrder, "timer_to_set", lambda _: 0)


@MUTANTS.add("markers are sent where runs are not to be ended")
def _() -> None:
    def timer_to_set(self: PriorityOrder) -> int:
        if self.overtaken and not self.run_timer and self.has_unit():
            self.run_timer = True
            return self.run_timeout or 1
        return 0

    replace(PriorityOrder, "timer_to_set", timer_to_set)


@MUTANTS.add("a run ends when the timer fires")
def _() -> None:
    def around(fire: Callable[..., None]) -> Callable[..., None]:
        def at_once(self: TotalOrderBroadcast, name: str, out: list[Output]) -> None:
            fire(self, name, out)
            if name == "run" and isinstance(self.policy, PriorityOrder):
                self.policy.end_run(self.policy.acknowledged_count, out)

        return at_once

    wrap(TotalOrderBroadcast, "fire", around)


@MUTANTS.add("a marker covers nothing")
def _() -> None:
    def make_unit(self: PriorityOrder, heading: Heading) -> RunMarker:
        self.covered_below = self.acknowledged_count
        return RunMarker(heading, 0)

    replace(PriorityOrder, "make_unit", make_unit)


@MUTANTS.add("the markers of others are ignored")
def _() -> None:
    replace(PriorityOrder, "accepted", lambda *_: None)


@MUTANTS.add("a marker may cover packets that nobody has sent")
def _() -> None:
    replace(PriorityOrder, "is_possible", lambda *_: True)


@MUTANTS.add("a marker delivers what is not acknowledged too")
def _() -> None:
    def around(end_run: Callable[..., None]) -> Callable[..., None]:
        def all_of_it(self: PriorityOrder, below: int, out: list[Output]) -> None:
            known, self.acknowledged_count = self.acknowledged_count, 1 << 60
            self.overtaken |= {position for _, position, _ in self.by_priority}
            end_run(self, below, out)
            self.acknowledged_count = known
            self.overtaken &= {position for _, position, _ in self.by_priority if position < known}

        return all_of_it

    wrap(PriorityOrder, "end_run", around)


@MUTANTS.add("a group that is given up delivers what is pre-acknowledged")
def _() -> None:
    def all_of_it(_: Any, preacknowledged: list[Packet]) -> list[Packet]:
        return preacknowledged

    replace(PriorityOrder, "delivered_on_abort", all_of_it)
