"""Semantic mutants of the printed SPO: each breaks one condition or action of the papers."""

from collections.abc import Callable
from typing import Any

from ordercast.model.nodes import everybody
from ordercast.protocols.spo.paper import SpoPaper
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.spo.paper")
Method = Callable[..., Any]


@MUTANTS.add("the flow condition divides integers")
def _divides_integers() -> None:
    def buffers(self: SpoPaper) -> int:
        return int(min(self.free_buffers) // (self.config.paper.buffer_divisor * self.config.nodes**2))

    replace(SpoPaper, "_buffers_for_me", buffers)


@MUTANTS.add("acceptance asks for the total number only: without (1-2)")
def _asks_for_the_total_number() -> None:
    def around(is_acceptable: Method) -> Method:
        def changed(self: SpoPaper, unit: Any) -> bool:
            return unit.packet.seq == self.expected[unit.source] and bool(is_acceptable(self, unit))

        return changed

    wrap(SpoPaper, "_is_acceptable", around)


@MUTANTS.add("pre-acknowledgment waits for all nodes instead of the destinations")
def _waits_for_all() -> None:
    def can_preacknowledge(self: SpoPaper, unit: Any) -> bool:
        return bool(unit.packet.seq < min(self.accepted_below[unit.source]))

    replace(SpoPaper, "_can_preacknowledge", can_preacknowledge)


@MUTANTS.add("acknowledgment follows from AL instead of PAL")
def _acknowledges_by_acceptance() -> None:
    replace(SpoPaper, "_can_acknowledge", SpoPaper._can_preacknowledge)


@MUTANTS.add("what all destinations have accepted stays in SL")
def _never_releases() -> None:
    def around(accept: Method) -> Method:
        def changed(self: SpoPaper, unit: Any) -> Any:
            sent = list(self.sent)
            out = accept(self, unit)
            self.sent = sent
            return out

        return changed

    wrap(SpoPaper, "_accept", around)


@MUTANTS.add("a loss is not inferred from peers' acknowledgments: without failure condition (2)")
def _infers_nothing() -> None:
    replace(SpoPaper, "_loss_inferred_from_peers", lambda *_: [])


@MUTANTS.add("the next unit of a source does not stop its waiting timer")
def _never_stops_timers() -> None:
    replace(SpoPaper, "_stop_timer", lambda *_: [])


@MUTANTS.add("a request is answered with what is to anybody")
def _resends_everything() -> None:
    def around(resend: Method) -> Method:
        def changed(self: SpoPaper, request: Any) -> Any:
            asked = [unit for unit in self.sent if unit.packet.seq >= request.expects[self.me]]
            sends = resend(self, request)
            return [type(sends[0])(unit, again=True) for unit in asked] if sends else sends

        return changed

    wrap(SpoPaper, "_resend", around)


@MUTANTS.add("numbers to each node count all packets")
def _counts_everything() -> None:
    def around(send: Method) -> Method:
        def changed(self: SpoPaper, event: Any) -> Any:
            out = send(self, event)
            for node in range(self.config.nodes):
                if not event.destinations >> node & 1 and event.destinations != everybody(self.config.nodes):
                    self.next_seq_to[node] += 1
            return out

        return changed

    wrap(SpoPaper, "_send", around)
