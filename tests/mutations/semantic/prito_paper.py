"""Semantic mutants of `protocols.prito.paper.machine` and its state."""

from collections.abc import Iterable, Sequence

from ordercast.protocols.prito.paper import state
from ordercast.protocols.prito.paper.machine import PritoPaper
from ordercast.protocols.prito.paper.state import Entry
from ordercast.protocols.prito.paper.units import Printed
from tests.mutations.mutation import Mutants, replace

MUTANTS = Mutants("protocols.prito.paper.machine")


@MUTANTS.add("priorities are ignored", "protocols.prito.paper.state")
def _() -> None:
    def insert(entry: Entry, *logs: list[Entry]) -> None:
        logs[-1].append(entry)

    replace(state, "insert_by_priority", insert)


@MUTANTS.add("nothing that follows a loss is rejected", "protocols.prito.paper.state")
def _() -> None:
    def nothing(log: Iterable[Entry], expected: Sequence[int], keeps: Sequence[int]) -> tuple[int, ...]:
        del log, keeps
        return tuple(expected)

    replace(state, "first_rejected", nothing)


@MUTANTS.add("PACK one level too early: what is accepted here is pre-acknowledged")
def _() -> None:
    replace(PritoPaper, "accepted_minima", lambda self: self.expected)


@MUTANTS.add("delivers one level too early: ACK takes what is pre-acknowledged", "protocols.prito.paper.state")
def _() -> None:
    def own(self: PritoPaper, unit: Printed) -> bool:
        return unit.seq < self.own_preacknowledged_below[unit.source]

    replace(PritoPaper, "is_acknowledged", own)


@MUTANTS.add("what was rejected is never broadcast again")
def _() -> None:
    replace(PritoPaper, "_broadcast_again", lambda *_: None)


@MUTANTS.add("a run synchronisation delivers nothing")
def _() -> None:
    replace(PritoPaper, "end_run", lambda *_: None)


@MUTANTS.add("what times out begins no run synchronisation")
def _() -> None:
    replace(PritoPaper, "time_out", lambda *_: None)


@MUTANTS.add("the window never closes")
def _() -> None:
    replace(PritoPaper, "_window_is_open", lambda _: True)
