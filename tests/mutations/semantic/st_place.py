"""Semantic mutants of ST that places what was lost: one for each rule that its proof needs."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ordercast.protocols.membership.epoch import Cut, EpochReport, lowest
from ordercast.protocols.shared.pending_acknowledgments import PendingAcknowledgments
from ordercast.protocols.st.place.acknowledgments import Acknowledgments
from ordercast.protocols.st.place.copies import Copies
from ordercast.protocols.st.place.flush import StPlaceFlush
from ordercast.protocols.st.place.generations import Generations
from ordercast.protocols.st.place.positions import UNKNOWN, OwnPositions
from ordercast.protocols.st.place.requests import Place, Requests
from ordercast.protocols.st.place.transmission import Transmission
from tests.mutations.mutation import Mutants, replace, wrap

_HERE = "protocols.st.place"
MUTANTS = Mutants(f"{_HERE}.machine")
Method = Callable[..., Any]


@MUTANTS.add("a packet is pre-acknowledged by its destinations only", "protocols.st.channel_logs")
def _waits_for_destinations() -> None:
    def around(initialise: Method) -> Method:
        def changed(self: Acknowledgments, *args: Any) -> None:
            initialise(self, *args)
            self.accepted = PendingAcknowledgments(2, self.accepted.acknowledged_below)

        return changed

    wrap(Acknowledgments, "__init__", around)


@MUTANTS.add("a copy whose place is not determined is put at the last possible one", f"{_HERE}.requests")
def _guesses() -> None:
    def around(place_of: Method) -> Method:
        def changed(self: Requests, unit: Any, number: int) -> Place:
            place = place_of(self, unit, number)
            return Place(max(place.first, place.last), place.last, final=True)

        return changed

    wrap(Requests, "place_of", around)


@MUTANTS.add("who has vetoed a place takes copies all the same", f"{_HERE}.requests")
def _breaks_its_veto() -> None:
    def around(keep: Method) -> Method:
        def changed(self: Requests, unit: Any, number: int) -> bool:
            self.vetoes[unit.packet.source] = False
            return bool(keep(self, unit, number))

        return changed

    wrap(Requests, "keep", around)


@MUTANTS.add("acknowledgments in another generation count", f"{_HERE}.acknowledgments")
def _counts_all_generations() -> None:
    def around(take_status: Method) -> Method:
        def changed(self: Acknowledgments, source: int, status: Any, out: Any) -> None:
            take_status(self, source, msgspec.structs.replace(status, generations=self.generations.known), out)

        return changed

    wrap(Acknowledgments, "take_status", around)


@MUTANTS.add("acknowledgments of what has moved stay", f"{_HERE}.acknowledgments")
def _keeps_acknowledgments() -> None:
    replace(Acknowledgments, "lower", lambda self, source, first, out: self._check_again(out))  # noqa: ARG005


@MUTANTS.add("the status of a packet behind a gap counts (Lemma A)", f"{_HERE}.acknowledgments")
def _believes_what_it_holds() -> None:
    def around(hold: Method) -> Method:
        def changed(self: Acknowledgments, packet: Any, count: int, status: Any, out: Any) -> None:
            hold(self, packet, count, status, out)
            self.take_status(packet.source, status, out)

        return changed

    wrap(Acknowledgments, "hold", around)


@MUTANTS.add("what has moved is after my packet, whatever was heard of it", f"{_HERE}.positions")
def _moves_what_is_unknown() -> None:
    def around(moved: Method) -> Method:
        def changed(self: OwnPositions, source: int, first: int) -> None:
            moved(self, source, first)
            for numbers in self.high.values():
                if numbers[source] == UNKNOWN:
                    numbers[source] = first

        return changed

    wrap(OwnPositions, "moved", around)


@MUTANTS.add("of several generations the start of the last counts", f"{_HERE}.generations")
def _takes_the_last_start() -> None:
    def around(first_moved: Method) -> Method:
        def changed(self: Generations, source: int, status: Any) -> Any:
            return None if first_moved(self, source, status) is None else status.starts[-1][1]

        return changed

    wrap(Generations, "first_moved", around)


@MUTANTS.add("a start is forgotten when one other node knows the generation", f"{_HERE}.generations")
def _forgets_starts() -> None:
    def around(note: Method) -> Method:
        def changed(self: Generations, source: int, status: Any) -> None:
            self.confirmed = [max(self.confirmed)] * len(self.confirmed)
            note(self, source, status)

        return changed

    wrap(Generations, "note", around)


@MUTANTS.add("numbers of one generation are compared with those of another", f"{_HERE}.requests")
def _compares_generations() -> None:
    def around(place_of: Method) -> Method:
        def changed(self: Requests, unit: Any, number: int) -> Place:
            found: Place = place_of(self, msgspec.structs.replace(unit, generations=self.generations.known), number)
            return found

        return changed

    wrap(Requests, "place_of", around)


@MUTANTS.add("the place of an earlier transmission of mine is told for the present one", f"{_HERE}.generations")
def _tells_old_places() -> None:
    replace(Generations, "own_moved_from", lambda self, generation, nothing: nothing)  # noqa: ARG005


@MUTANTS.add("a packet whose place nobody tells is never sent again", f"{_HERE}.transmission")
def _never_sends_again() -> None:
    replace(Transmission, "send_again", lambda *args: None)  # noqa: ARG005


@MUTANTS.add("a witness is silent", f"{_HERE}.copies")
def _is_silent() -> None:
    replace(Copies, "testify", lambda *args: None)  # noqa: ARG005


@MUTANTS.add("a witness tells that its packets are all before", f"{_HERE}.copies")
def _lies() -> None:
    def around(send: Method) -> Method:
        def changed(self: Transmission, packet: Any, low: list[int], high: list[int], out: Any) -> None:
            send(self, packet, [max(below, number + 1) for below, number in zip(low, high, strict=True)], high, out)

        return changed

    wrap(Transmission, "send_position", around)


@MUTANTS.add("requests are repeated while they are out", f"{_HERE}.transmission")
def _does_not_wait() -> None:
    replace(Transmission, "is_out", lambda _: False)


@MUTANTS.add("a view ends with what has moved", f"{_HERE}.flush")
def _ignores_generations() -> None:
    def changed(reports: Mapping[int, EpochReport], nodes: int) -> Cut:
        del nodes
        return Cut(lowest([report.expected for report in reports.values()]))

    StPlaceFlush.cut = staticmethod(changed)  # type: ignore[method-assign]
